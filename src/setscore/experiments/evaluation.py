"""Experiments: documents of a dataset or a file, asked, drawn and measured over seeds.

The numbers are honest: everything is chosen on validation documents, and measured on others.

Outcomes named "oracle ..." choose their thresholds on the very documents they are measured on. They are no results;
they say how much of what the scores know is lost at the threshold (the paper's appendix on calibration headroom).
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset, draw_rows, find_source, load_dataset, paper_slices
from setscore.errors import LabelError, SetScoreError, TruncationWarning, counted, unknown_name
from setscore.experiments.oracles import oracle_decisions
from setscore.experiments.protocol import SETSCORE, made_under
from setscore.experiments.scored import (
    Kind,
    Outcome,
    Scored,
    decided,
    describe,
    fit,
)
from setscore.metrics import (
    decision_metrics,
)
from setscore.records import BoolArray, FloatArray, LabelSet, Progress, steps

VALIDATION_SIZE = 200  # of the paper
BLOCK_QUESTIONS = 8192  # asked between two steps of the progress
PAPER_SETS = ("goemotions", "reuters", "eurlex", "ecthr-b", "jigsaw", "aapd")  # task B is nearest to the paper's ECtHR
SLICES = ("development", "paper")
SEED = 13  # draws the documents of a quick look


@dataclass(frozen=True)
class Experiment:
    """The datasets to score by the part they play; `saved_as` is the name that their scores are kept under."""

    name: str
    slices: str
    saved_as: str
    parts: Mapping[str, Dataset]


def prepare(
    name: str, slices: str, seeds: Sequence[int], *, data_dir: str | Path | None = None, limit: int | None = None
) -> Experiment:
    """The parts of an experiment on a named dataset. `limit` is for a quick look: only so many documents."""
    if slices not in SLICES:
        raise SetScoreError(unknown_name("slices", slices, SLICES))
    if slices == "development":
        return _pool(name, load_dataset(name, find_source(name).validation, data_dir), limit)
    parts = {}
    for seed in seeds:
        validation, test = paper_slices(name, seed, data_dir)
        parts[f"validation-{seed}"] = validation if limit is None else validation.head(min(limit, len(validation)))
        parts["test"] = test if limit is None else test.head(min(limit, len(test)))
    return Experiment(name, slices, f"{name}-{slices}{_suffix(limit)}", parts)


def prepare_file(dataset: Dataset, *, limit: int | None = None) -> Experiment:
    """The same for the labelled documents of a user's file."""
    return _pool(dataset.name, dataset, limit)


def asked_by(experiment: Experiment, label_text: str | None) -> Experiment:
    """Labels asked by name, description or both; None: as the dataset has them."""
    parts = {part: one.with_labels(one.labels.asked_by(label_text)) for part, one in experiment.parts.items()}
    return replace(experiment, parts=parts)


def measured_whole(experiment: Experiment) -> Experiment:
    """The documents to measure on where nothing is fitted: the pool, or the test documents."""
    part = "pool" if "pool" in experiment.parts else "test"
    return replace(experiment, parts={part: experiment.parts[part]})


def split(experiment: Experiment, seed: int) -> tuple[Dataset, Dataset]:
    """The validation and the test documents of a seed."""
    if "pool" not in experiment.parts:
        return experiment.parts[f"validation-{seed}"], experiment.parts["test"]
    pool = experiment.parts["pool"]
    return pool.draw(validation_size(pool.name, len(pool)), seed)


def _pool(name: str, pool: Dataset, limit: int | None) -> Experiment:
    if limit is not None and limit < len(pool):
        pool, _ = pool.draw(limit, SEED)
    return Experiment(name, "development", f"{name}-development{_suffix(limit)}", {"pool": pool})


def _suffix(limit: int | None) -> str:
    """A quick look has a name of its own."""
    return "" if limit is None else f"-{limit}"


def score_dataset(
    dataset: Dataset, classifier: SetScoreClassifier | None = None, *, progress: Progress | None = None
) -> Scored:
    """Asks `classifier` every label of every document; what its store holds is not asked again.

    Labels are the dataset's; a classifier with others is an error.
    """
    model = with_labels(classifier or SetScoreClassifier(), dataset.labels)
    scored = ask_dataset(dataset, model, progress)
    if cut := int(scored.truncated.sum()):
        warnings.warn(TruncationWarning.of(cut, len(dataset)), stacklevel=2)
    return scored


def ask_dataset(
    dataset: Dataset, model: SetScoreClassifier, progress: Progress | None, *, embed: bool = False
) -> Scored:
    """The same for a classifier with the dataset's labels, and without a warning: what was cut is in the value."""
    return predict_dataset(dataset, model, progress, embed=embed).scored


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a classifier makes of a dataset: scores, and [n, m] probabilities, decisions and what is left undecided.

    `forwards` is what the scores cost, whether they were asked now or known.
    """

    scored: Scored
    probabilities: FloatArray
    decisions: BoolArray
    undecided: BoolArray | None
    forwards: int = 0


def predict_dataset(
    dataset: Dataset, model: SetScoreClassifier, progress: Progress | None, *, embed: bool = False
) -> Predicted:
    """Every document of a dataset classified, block by block; with `embed` the scores have the documents' vectors."""
    if not len(dataset):
        raise SetScoreError(f"{dataset.name} {dataset.split} has no documents to score.")
    log_odds, probabilities = np.full(dataset.gold.shape, -np.inf), np.zeros(dataset.gold.shape)
    decisions, undecided = (np.zeros(dataset.gold.shape, dtype=np.bool_) for _ in range(2))
    truncated, abstains, forwards = np.zeros(len(dataset), dtype=np.bool_), False, 0
    vectors: FloatArray | None = None
    step = steps(progress, "scoring", len(dataset))
    step(0)
    # Long documents first and blocks of like length: little padding, and the time left is never underestimated.
    order = sorted(range(len(dataset)), key=lambda row: len(dataset.texts[row]), reverse=True)
    size = max(1, BLOCK_QUESTIONS // len(dataset.labels))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        found = model.classify([dataset.texts[row] for row in rows], embed=embed).checked()
        log_odds[rows] = found.scores.log_odds
        truncated[rows] = found.scores.truncated
        forwards += found.scores.forwards
        if embed and found.scores.vectors is not None:
            vectors = np.zeros((len(dataset), found.scores.vectors.shape[1])) if vectors is None else vectors
            vectors[rows] = found.scores.vectors
        probabilities[rows] = found.probabilities
        decisions[rows] = found.decisions
        if found.undecided is not None:
            undecided[rows], abstains = found.undecided, True
        step(len(rows))
    scored = Scored.of(dataset, log_odds, describe(model, dataset), truncated=truncated, vectors=vectors)
    return Predicted(scored, probabilities, decisions, undecided if abstains else None, forwards)


def with_labels(classifier: SetScoreClassifier, labels: LabelSet) -> SetScoreClassifier:
    """A fitted classifier itself; else one like it with these labels. Other labels than these are an error."""
    known = classifier.labels_ if hasattr(classifier, "fitted_") else classifier.labels
    if known is None:
        return changed(classifier, labels=labels)
    if LabelSet.of(known) != labels:
        raise LabelError(
            "the classifier has other labels than the dataset, or in another order. Make it without labels or with"
            " dataset.labels, or give the dataset the classifier's: dataset.with_labels(classifier.labels)."
        )
    return classifier


def changed(classifier: SetScoreClassifier, **params: Any) -> SetScoreClassifier:
    """An unfitted classifier like this one, but for these parameters; a backbone that is an object is shared."""
    return SetScoreClassifier(**classifier.get_params(deep=False) | params)


def named(progress: Progress | None, where: str) -> Progress | None:
    """The same progress, told of what goes on with `where` before it."""
    if progress is None:
        return None
    return lambda what, done, total: progress(f"{where}: {what}", done, total)


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
    protocol: str = SETSCORE.name

    def under(self, dataset: str, config: Mapping[str, Any], *, prompted: bool = True) -> "Summary":
        """With the word of the protocol that it was made under; oracles and yardsticks are our own."""
        word = made_under(dataset, self.name, config, prompted=prompted) if self.kind == "model" else SETSCORE.name
        return replace(self, protocol=word)


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


def trials(parts: Mapping[str, Scored], seeds: Sequence[int]) -> list[Trial]:
    """Validation and test documents for every seed."""
    return [_trial(parts, seed) for seed in seeds]


def _trial(parts: Mapping[str, Scored], seed: int) -> Trial:
    for pool in ("pool", f"pool-{seed}"):
        if pool in parts:
            (drawn,) = draw_trials(parts[pool], [seed])
            return drawn
    test = f"test-{seed}" if f"test-{seed}" in parts else "test"
    if absent := [part for part in (f"validation-{seed}", test) if part not in parts]:
        raise SetScoreError(f"there are no scores of {', '.join(absent)}; there are {', '.join(parts) or 'none'}.")
    return Trial(seed, parts[f"validation-{seed}"], parts[test])


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


def _honest(validation: Scored, test: Scored, kind: Kind) -> Outcome:
    return decided(fit(validation, test, kind), test)


def oracles(test: Scored) -> list[Outcome]:
    """Thresholds tuned on the evaluated documents themselves."""
    return [
        Outcome(name, "oracle", f"{choice}, tuned on the test documents", decision_metrics(test.gold, decisions))
        for name, (decisions, choice) in oracle_decisions(test).items()
    ]
