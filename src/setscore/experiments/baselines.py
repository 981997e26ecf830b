"""Baselines measured as the method is: the same documents, calibrations and seeds.

A baseline that learns does so from the validation documents of each seed. A calibration fitted on scores of documents
that the baseline was trained on would trust them too much, so validation scores are cross-fitted: each fifth is scored
by a model trained on the others. The test documents are scored by one that was trained on all of them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setscore.baselines import TRAINED, Baseline, load_baseline
from setscore.calibration.folds import assign
from setscore.datasets import Dataset
from setscore.errors import SetScoreError
from setscore.experiments.evaluation import VALIDATION_SIZE, Kind, Summary, Trial, over_trials
from setscore.experiments.scored import FILE, Scored
from setscore.experiments.shortlists import Remembering
from setscore.experiments.slices import Experiment, trials
from setscore.records import FloatArray
from setscore.shortlist import load_encoder

Make = Callable[[], Baseline]
ENCODING = ("cosine", "linear")  # they only read vectors, so texts are encoded once for all folds and seeds


@dataclass(frozen=True)
class Measured:
    """`documents_per_second` counts scoring alone, not training; None where the scores were saved."""

    name: str
    dataset: str
    summaries: list[Summary]
    documents_per_second: float | None


def measure_baseline(
    name: str,
    experiment: Experiment,
    seeds: Sequence[int],
    kinds: Sequence[Kind] = ("auto",),
    *,
    checkpoint: str | None = None,
    save: Path | None = None,
) -> Measured:
    """Trained on, calibrated on and measured over each seed's documents. Scores of untrained ones are saved."""
    options = {} if checkpoint is None else {"checkpoint": checkpoint}
    load_baseline(name, **options)  # a mistake is an error before anything is read
    if name in ENCODING:
        encode = Remembering(load_encoder(*(options.values()), purpose=f"the baseline {name}"))
        made: Make = lambda: load_baseline(name, encode=encode, **options)  # noqa: E731
    else:
        made = lambda: load_baseline(name, **options)  # noqa: E731
    timer = Timer()
    if name in TRAINED:
        drawn = [_trained(made, experiment, seed, timer) for seed in seeds]
    else:
        scored = {
            part: _saved(name, made, dataset, None if save is None else save / experiment.folder / name / part, timer)
            for part, dataset in experiment.parts.items()
        }
        drawn = trials(scored, seeds)
    return Measured(name, experiment.name, over_trials(drawn, kinds), timer.rate())


class Timer:
    """Documents scored and the seconds that took."""

    def __init__(self) -> None:
        self.documents, self.seconds = 0, 0.0

    def score(self, baseline: Baseline, dataset: Dataset) -> FloatArray:
        begun = time.perf_counter()
        found = baseline.score(dataset.texts, dataset.labels).log_odds
        self.seconds += time.perf_counter() - begun
        self.documents += len(dataset)
        return found

    def rate(self) -> float | None:
        return self.documents / self.seconds if self.documents else None


def _saved(name: str, make: Make, dataset: Dataset, folder: Path | None, timer: Timer) -> Scored:
    config = {"backbone": name, "fingerprint": dataset.fingerprint}
    if folder is not None and (folder / FILE).exists() and (saved := Scored.load(folder)).config == config:
        return saved
    scored = as_scored(dataset, timer.score(make(), dataset), config)
    if folder is not None:
        scored.save(folder)
    return scored


def _trained(make: Make, experiment: Experiment, seed: int, timer: Timer) -> Trial:
    """One seed: cross-fitted on its validation documents, then trained on all of them."""
    if "pool" in experiment.parts:
        pool = experiment.parts["pool"]
        validation, test = pool.draw(min(VALIDATION_SIZE, len(pool) // 2), seed)
    else:
        validation, test = experiment.parts[f"validation-{seed}"], experiment.parts["test"]
    if len(validation) < 2:
        raise SetScoreError(f"{experiment.name} has {len(validation)} validation documents; training needs at least 2.")
    folds, crossed = assign(len(validation)), np.zeros(validation.gold.shape)
    for fold in np.unique(folds):
        rest, held = (validation.take(np.flatnonzero(which)) for which in (folds != fold, folds == fold))
        crossed[folds == fold] = timer.score(make().fit(rest.texts, rest.gold, rest.labels), held)
    whole = make().fit(validation.texts, validation.gold, validation.labels)
    config: Mapping[str, object] = {"trained_on": len(validation)}
    return Trial(seed, as_scored(validation, crossed, config), as_scored(test, timer.score(whole, test), config))


def as_scored(dataset: Dataset, log_odds: FloatArray, config: Mapping[str, object]) -> Scored:
    """Scores of anything that gives a number for each document and label."""
    return Scored(
        name=dataset.name,
        split=dataset.split,
        labels=dataset.labels.names,
        ids=dataset.ids,
        log_odds=log_odds,
        gold=dataset.gold,
        truncated=np.zeros(len(dataset), dtype=np.bool_),
        notes=dataset.notes,
        config=config,
        groups=dataset.groups,
    )
