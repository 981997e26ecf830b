"""Honest numbers: everything is chosen on validation documents, and measured on others.

Rows named "oracle ..." choose their thresholds on the very documents they are measured on. They are no results; they
say how much of what the scores know is lost at the threshold (the paper's appendix on calibration headroom).
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import expit

import setscore.calibration as calibrations
from setscore.calibration.folds import assign
from setscore.calibration.objectives import best_cut
from setscore.datasets import draw_rows
from setscore.errors import SetScoreError
from setscore.experiments.scored import Scored
from setscore.metrics import Interval, all_metrics, bootstrap, by_group, decision_metrics, probability_metrics
from setscore.records import BoolArray, FloatArray, IntArray

VALIDATION_SIZE = 200  # of the paper
Kind = str | calibrations.Calibration


class SameSliceWarning(UserWarning):
    """A calibration is measured on the documents it was fitted on, which flatters it."""


@dataclass(frozen=True)
class Row:
    """One way to decide, measured.

    name       of the calibration, the yardstick, or "oracle ..."
    kind       "model", "yardstick" or "oracle"
    choice     what was chosen and why
    metrics    of `all_metrics`, and "ece_raw" of the probabilities before calibration where there are any
    intervals  bootstrap intervals of micro-F1, macro-F1
    groups     of `by_group`, where the documents have groups; oracles have none
    """

    name: str
    kind: str
    choice: str
    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


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
    """A row over seeds. A group's spread is over the seeds that have a test document of the group."""

    name: str
    kind: str
    mean: Mapping[str, float]
    sd: Mapping[str, float]
    rows: Mapping[int, Row]  # by seed
    groups: Mapping[str, Spread] = field(default_factory=dict)


def evaluate(validation: Scored, test: Scored, kinds: Iterable[Kind] = ("auto", "paper")) -> list[Row]:
    """Calibrations fitted on `validation`, measured on `test`; then the oracles."""
    if validation.labels != test.labels:
        raise SetScoreError("the validation documents have other labels than the test documents.")
    return [*(_honest(validation, test, kind) for kind in kinds), *oracles(test)]


def draw_trials(pool: Scored, seeds: Sequence[int], size: int = VALIDATION_SIZE) -> list[Trial]:
    """For every seed `size` validation documents, those that `Dataset.draw` draws, and the rest.

    A pool of less than twice that is halved.
    """
    if len(pool) < 2:
        raise SetScoreError(f"{pool.name} has {len(pool)} documents; at least 2 are needed, to fit on some of them.")
    size = min(size, len(pool) // 2)
    made = []
    for seed in seeds:
        drawn, rest = draw_rows(len(pool), size, seed)
        note = f"{size} of {len(pool)} documents, drawn with seed {seed}."
        made.append(Trial(seed, pool.take(drawn, note), pool.take(rest, "The rest after " + note)))
    return made


def over_seeds(pool: Scored, seeds: Sequence[int], kinds: Iterable[Kind] = ("auto", "paper")) -> list[Summary]:
    """Every seed draws its validation documents from the same scores, so the model is asked once for all of them."""
    return over_trials(draw_trials(pool, seeds), kinds)


def over_trials(trials: Sequence[Trial], kinds: Iterable[Kind] = ("auto", "paper")) -> list[Summary]:
    """`evaluate` for every trial."""
    kinds = tuple(kinds)
    return summarise({trial.seed: evaluate(trial.validation, trial.test, kinds) for trial in trials})


def summarise(rows: Mapping[int, Sequence[Row]]) -> list[Summary]:
    """Rows of the same place over seeds."""
    summaries = []
    for same in zip(*rows.values(), strict=True):
        whole = Spread.of([row.metrics for row in same])
        values = sorted({value for row in same for value in row.groups})
        groups = {value: Spread.of([row.groups[value] for row in same if value in row.groups]) for value in values}
        by_seed = dict(zip(rows, same, strict=True))
        summaries.append(Summary(same[0].name, same[0].kind, whole.mean, whole.sd, by_seed, groups))
    return summaries


def measure(name: str, kind: str, choice: str, test: Scored, *, decisions: BoolArray, probabilities: FloatArray) -> Row:
    """A row of all metrics and intervals, and of each group."""
    intervals = bootstrap(test.gold, decisions)
    wanted = {key: intervals[key] for key in ("micro_f1", "macro_f1")}
    groups = by_group(test.gold, decisions, test.groups) if test.groups else {}
    return Row(name, kind, choice, all_metrics(test.gold, decisions, probabilities), wanted, groups)


def fit(validation: Scored, test: Scored, kind: Kind) -> calibrations.Calibration:
    """A calibration fitted on `validation`; a warning if those are the documents of `test`."""
    calibration = calibrations.make(kind).fit(validation.log_odds, validation.gold)
    if calibration.fitted_on(test.log_odds, test.gold):
        warnings.warn(
            SameSliceWarning(
                f"{calibration.name} is measured on the {len(test)} documents it was fitted on; that flatters it."
                " Measure on others."
            ),
            stacklevel=3,
        )
    return calibration


def _honest(validation: Scored, test: Scored, kind: Kind) -> Row:
    calibration = fit(validation, test, kind)
    decisions, probabilities = calibration.predict(test.log_odds), calibration.transform(test.log_odds)
    row = measure(
        calibration.name,
        "model",
        calibration.choice_,
        test,
        decisions=decisions,
        probabilities=probabilities,
    )
    raw = probability_metrics(test.gold, expit(test.log_odds))["ece"]
    return replace(row, metrics={**row.metrics, "ece_raw": raw})


def oracles(test: Scored) -> list[Row]:
    """Thresholds tuned on the evaluated documents themselves. Each is the best there is in the metric it tunes."""
    probabilities, asked = expit(test.log_odds), np.isfinite(test.log_odds)
    common = best_cut(probabilities[asked], test.gold[asked], int(test.gold.sum()))
    decided = {
        "oracle global": (asked & (probabilities >= common), "one threshold with the highest micro-F1"),
        "oracle per label, micro": (_best_micro(test), "a threshold per label, together with the highest micro-F1"),
        "oracle per label, macro": (_best_macro(test), "for each label the threshold with its highest F1"),
    }
    return [
        Row(name, "oracle", f"{choice}, tuned on the test documents", decision_metrics(test.gold, decisions))
        for name, (decisions, choice) in decided.items()
    ]


def _best_macro(test: Scored) -> BoolArray:
    """For each label the cut with the highest F1. One without gold documents has F1 0 everywhere: never predicted."""
    decisions = np.zeros(test.gold.shape, dtype=np.bool_)
    for i in np.flatnonzero(test.gold.any(axis=0)):
        hits, ends, order = _prefixes(test, int(i))
        best = int(np.argmax(2 * hits / (ends + test.gold[:, i].sum())))
        decisions[order[: ends[best]], i] = True
    return decisions


def _best_micro(test: Scored) -> BoolArray:
    """The cuts per label with the highest micro-F1, exactly.

    F1 = 2 tp / (predicted + gold) is a quotient, so Dinkelbach's iteration finds its maximum: for the F reached so far,
    each label takes the cut with the largest 2 tp - F predicted, until F no longer grows.
    """
    labels = [_prefixes(test, i) for i in range(test.gold.shape[1])]
    gold, reached = int(test.gold.sum()), -1.0
    f1, cuts = 0.0, [0] * len(labels)
    while f1 > reached:
        reached = f1
        found = [_largest(hits, ends, f1) for hits, ends, _ in labels]
        cuts = [cut for _, cut in found]
        f1 = 2 * sum(hits for hits, _ in found) / max(1, sum(cuts) + gold)
    decisions = np.zeros(test.gold.shape, dtype=np.bool_)
    for i, (cut, (_, _, order)) in enumerate(zip(cuts, labels, strict=True)):
        decisions[order[:cut], i] = True
    return decisions


def _prefixes(test: Scored, label: int) -> tuple[IntArray, IntArray, IntArray]:
    """Where the ranking of a label's documents can be cut: gold documents and documents before each cut, and the order.

    The first cut takes nothing; equal scores are never parted.
    """
    asked = np.flatnonzero(np.isfinite(test.log_odds[:, label]))
    order = asked[np.argsort(-test.log_odds[asked, label], kind="stable")]
    scores = test.log_odds[order, label]
    last_of_ties = np.append(scores[1:] != scores[:-1], True) if len(order) else np.zeros(0, dtype=np.bool_)
    ends = np.append(0, np.flatnonzero(last_of_ties) + 1)
    hits = np.append(0, np.cumsum(test.gold[order, label]))[ends]
    return hits, ends, order


def _largest(hits: IntArray, ends: IntArray, price: float) -> tuple[int, int]:
    """Gold documents and documents before the cut with the largest 2 tp - price predicted."""
    best = int(np.argmax(2 * hits - price * ends))
    return int(hits[best]), int(ends[best])


def cross_validated(scored: Scored, kind: Kind) -> dict[str, float]:
    """Decision metrics on documents that the calibration was not fitted on, over five folds of `scored`."""
    fold, decisions = assign(len(scored)), np.zeros(scored.gold.shape, dtype=np.bool_)
    for number in range(fold.max() + 1):
        inside = fold == number
        calibration = calibrations.make(kind).fit(scored.log_odds[~inside], scored.gold[~inside])
        decisions[inside] = calibration.predict(scored.log_odds[inside])
    return decision_metrics(scored.gold, decisions)
