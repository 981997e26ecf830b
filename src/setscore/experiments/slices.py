"""Which documents an experiment asks, and how the answers are divided into validation and test documents.

An experiment has parts, each scored on its own:

    pool                    development: for every seed 200 documents are drawn from it, the rest is evaluated
    validation-<seed>, test the paper: 200 validation documents for every seed, and the first of the test split

Scores of what was trained anew for every seed come as pool-<seed>, or validation-<seed> and test-<seed>.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from setscore.datasets import Dataset, find_source, load_dataset, paper_slices
from setscore.errors import SetScoreError, unknown_name
from setscore.experiments.evaluation import Trial, draw_trials, validation_size
from setscore.experiments.scored import Scored

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


def _pool(name: str, pool: Dataset, limit: int | None) -> Experiment:
    if limit is not None and limit < len(pool):
        pool, _ = pool.draw(limit, SEED)
    return Experiment(name, "development", f"{name}-development{_suffix(limit)}", {"pool": pool})


def _suffix(limit: int | None) -> str:
    """A quick look has a name of its own."""
    return "" if limit is None else f"-{limit}"
