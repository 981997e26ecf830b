"""Honest numbers: everything is chosen on validation documents, and measured on others.

Outcomes named "oracle ..." choose their thresholds on the very documents they are measured on. They are no results;
they say how much of what the scores know is lost at the threshold (the paper's appendix on calibration headroom).
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

import setscore.calibration as calibrations
from setscore.calibration.base import assign_folds
from setscore.datasets import draw_rows
from setscore.errors import SetScoreError, counted, plural
from setscore.experiments.oracles import oracle_decisions
from setscore.experiments.scored import Scored
from setscore.metrics import (
    Counts,
    Interval,
    all_metrics,
    bootstrap,
    by_group,
    decision_metrics,
    micro_f1,
    per_label_table,
    probability_metrics,
)
from setscore.records import BoolArray, FloatArray

VALIDATION_SIZE = 200  # of the paper
UNFITTED = "threshold 0.5"
Kind = str | calibrations.Calibration


class SameSliceWarning(UserWarning):
    """A calibration is measured on the documents it was fitted on, which flatters it."""


@dataclass(frozen=True)
class Outcome:
    """One way to decide, measured.

    name       of the calibration, the yardstick, or "oracle ..."
    kind       "model", "yardstick" or "oracle"
    choice     what was chosen and why
    metrics    of `all_metrics`, and "ece_raw" of the probabilities before calibration where there are any
    intervals  of `bootstrap`; oracles have none, nor what follows
    groups     of `by_group`, where the documents have groups
    labels     of `per_label_table`
    decisions  [n, m], for paired tests
    """

    name: str
    kind: str
    choice: str
    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    labels: Sequence[Mapping[str, Any]] = ()
    decisions: BoolArray | None = field(default=None, repr=False, compare=False)

    def without_raw(self) -> dict[str, float]:
        """The metrics without "ece_raw", for scores that were no probabilities before calibration."""
        return {key: value for key, value in self.metrics.items() if key != "ece_raw"}


@dataclass(frozen=True)
class Trial:
    """The validation and the test documents of a seed."""

    seed: int
    validation: Scored
    test: Scored


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation of every metric; without a second seed none (NaN)."""

    mean: Mapping[str, float]
    sd: Mapping[str, float]

    @classmethod
    def of(cls, found: Sequence[Mapping[str, float]]) -> "Spread":
        """Of the metrics that all of `found` have."""
        keys = [key for key in found[0] if all(key in metrics for metrics in found)]
        values = {key: np.array([metrics[key] for metrics in found]) for key in keys}
        sd = {key: float(value.std(ddof=1)) if len(value) > 1 else float("nan") for key, value in values.items()}
        return cls({key: float(value.mean()) for key, value in values.items()}, sd)


@dataclass(frozen=True)
class Summary:
    """An outcome over seeds. A group's spread is over the seeds that have a test document of the group."""

    name: str
    kind: str
    mean: Mapping[str, float]
    sd: Mapping[str, float]
    rows: Mapping[int, Outcome]  # by seed
    groups: Mapping[str, Spread] = field(default_factory=dict)


def evaluate(
    validation: Scored, test: Scored, kinds: Iterable[Kind] = ("auto", "paper"), *, with_oracles: bool = True
) -> list[Outcome]:
    """Calibrations fitted on `validation`, measured on `test`; then the oracles."""
    if validation.labels != test.labels:
        raise SetScoreError("the validation documents have other labels than the test documents.")
    return [*(_honest(validation, test, kind) for kind in kinds), *(oracles(test) if with_oracles else ())]


def draw_trials(pool: Scored, seeds: Sequence[int], size: int = VALIDATION_SIZE) -> list[Trial]:
    """For every seed `size` validation documents, those that `Dataset.draw` draws, and the rest.

    A pool of less than twice that is halved.
    """
    size = validation_size(pool.name, len(pool), size)
    made = []
    for seed in seeds:
        drawn, rest = draw_rows(len(pool), size, seed)
        note = f"{size} of {counted(len(pool), 'document')}, drawn with seed {seed}."
        made.append(Trial(seed, pool.take(drawn, note), pool.take(rest, "The rest after " + note)))
    return made


def validation_size(name: str, documents: int, size: int = VALIDATION_SIZE) -> int:
    """How many of a pool's documents are drawn to fit on: `size`, or half of a pool that has less than twice that."""
    if documents < 2:
        raise SetScoreError(
            f"{name} has {counted(documents, 'document')}; at least 2 are needed, to fit on some of them."
        )
    return min(size, documents // 2)


def over_seeds(pool: Scored, seeds: Sequence[int], kinds: Iterable[Kind] = ("auto", "paper")) -> list[Summary]:
    """Every seed draws its validation documents from the same scores, so the model is asked once for all of them."""
    return over_trials(draw_trials(pool, seeds), kinds)


def over_trials(
    trials: Sequence[Trial], kinds: Iterable[Kind] = ("auto", "paper"), *, with_oracles: bool = True
) -> list[Summary]:
    """`evaluate` for every trial."""
    kinds = tuple(kinds)
    return summarise(
        {trial.seed: evaluate(trial.validation, trial.test, kinds, with_oracles=with_oracles) for trial in trials}
    )


def summarise(outcomes: Mapping[int, Sequence[Outcome]]) -> list[Summary]:
    """Outcomes of the same place over seeds."""
    summaries = []
    for same in zip(*outcomes.values(), strict=True):
        whole = Spread.of([one.metrics for one in same])
        values = sorted({value for one in same for value in one.groups})
        groups = {value: Spread.of([one.groups[value] for one in same if value in one.groups]) for value in values}
        by_seed = dict(zip(outcomes, same, strict=True))
        summaries.append(Summary(same[0].name, same[0].kind, whole.mean, whole.sd, by_seed, groups))
    return summaries


def measure(
    name: str, kind: str, choice: str, test: Scored, *, decisions: BoolArray, probabilities: FloatArray
) -> Outcome:
    """All metrics and intervals, of each label and of each group too."""
    intervals = bootstrap(test.gold, decisions, probabilities)
    groups = by_group(test.gold, decisions, test.groups) if test.groups else {}
    metrics = all_metrics(test.gold, decisions, probabilities)
    labels = per_label_table(test.gold, decisions, test.labels)
    return Outcome(name, kind, choice, metrics, intervals, groups, labels, decisions)


def fit(validation: Scored, test: Scored, kind: Kind) -> calibrations.Calibration:
    """A calibration fitted on `validation`; a warning if those are the documents of `test`, in whatever order."""
    calibration = calibrations.make(kind).fit(validation.log_odds, validation.gold)
    if calibration.fitted_on(test.log_odds, test.gold):
        warnings.warn(SameSliceWarning(flattery(calibration, test)), stacklevel=3)
    return calibration


def flattery(calibration: calibrations.Calibration, test: Scored) -> str:
    """A sentence if the calibration was fitted on some of the documents it is measured on; else nothing."""
    name, seen = calibration.name, calibration.seen(test.log_odds, test.gold)
    if calibration.fitted_on(test.log_odds, test.gold):
        what = "document" if len(test) == 1 else f"{len(test)} documents"
        return f"{name} is measured on the {what} it was fitted on; that flatters it. Measure on others."
    if not seen:
        return ""
    return (
        f"{seen} of the {len(test)} documents that {name} is measured on {plural(seen, 'has', 'have')} scores and"
        " labels of documents it was fitted on; that flatters it. Measure on others."
    )


def decided(calibration: calibrations.Calibration, test: Scored, name: str | None = None) -> Outcome:
    """What a fitted calibration makes of `test`; its name with its options, unless another is given."""
    title = calibrations.spelt(calibration) if name is None else name
    undecided = calibration.undecided(test.log_odds) if calibration.margin else None
    decisions, probabilities = calibration.predict(test.log_odds), calibration.transform(test.log_odds)
    return measure_model(
        title, calibration.choice_, test, decisions=decisions, probabilities=probabilities, undecided=undecided
    )


def unfitted(test: Scored) -> Outcome:
    """Every label whose probability reaches 0.5, before any labelled document was seen.

    Temperature and competition are those of the model's spec, so the same weights decide the same by whatever name.
    """
    numbers = {key: test.config[key] for key in ("temperature", "competition") if key in test.config}
    return decided(calibrations.UnfittedCalibration(**numbers).for_labels(len(test.labels)), test, UNFITTED)


def _honest(validation: Scored, test: Scored, kind: Kind) -> Outcome:
    return decided(fit(validation, test, kind), test, _title(kind))


def _title(kind: Kind) -> str:
    """A calibration's name, with its options where it has any."""
    if isinstance(kind, str) and kind in calibrations.CALIBRATIONS:
        return kind
    return calibrations.spelt(calibrations.make(kind))


def measure_model(
    name: str,
    choice: str,
    test: Scored,
    *,
    decisions: BoolArray,
    probabilities: FloatArray,
    undecided: BoolArray | None,
) -> Outcome:
    """With the ECE before calibration and, where there is abstention, how much is left and how good that is."""
    found = measure(name, "model", choice, test, decisions=decisions, probabilities=probabilities)
    more = {"ece_raw": probability_metrics(test.gold, expit(test.log_odds))["ece"]}
    if undecided is not None:
        wrong, sure = decisions != test.gold, ~undecided
        more |= {
            "undecided": float(undecided.mean()),
            "undecided_documents": float(undecided.any(axis=1).mean()),
            "micro_f1_decided": float(micro_f1(Counts.of(test.gold & sure, decisions & sure))),
            "hamming_loss_decided": float(wrong[sure].mean()) if sure.any() else 0.0,
        }
    return replace(found, metrics={**found.metrics, **more})


def oracles(test: Scored) -> list[Outcome]:
    """Thresholds tuned on the evaluated documents themselves."""
    return [
        Outcome(name, "oracle", f"{choice}, tuned on the test documents", decision_metrics(test.gold, decisions))
        for name, (decisions, choice) in oracle_decisions(test).items()
    ]


def cross_validated(scored: Scored, kind: Kind) -> Outcome:
    """Measured on documents that the calibration was not fitted on, over five folds of `scored`."""
    fold, calibration = assign_folds(len(scored)), calibrations.make(kind)
    decisions, undecided = (np.zeros(scored.gold.shape, dtype=np.bool_) for _ in range(2))
    probabilities = np.zeros(scored.gold.shape)
    for number in range(fold.max() + 1):
        inside = fold == number
        calibration.fit(scored.log_odds[~inside], scored.gold[~inside])
        decisions[inside] = calibration.predict(scored.log_odds[inside])
        undecided[inside] = calibration.undecided(scored.log_odds[inside])
        probabilities[inside] = calibration.transform(scored.log_odds[inside])
    choice = f"cross-validated over {fold.max() + 1} folds"
    left = undecided if calibration.margin else None
    return measure_model(_title(kind), choice, scored, decisions=decisions, probabilities=probabilities, undecided=left)
