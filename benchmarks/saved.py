"""Scores that `setscore evaluate NAME --save FOLDER` keeps: the one place here that knows how they lie on disk."""

from collections.abc import Sequence
from pathlib import Path

from setscore.experiments.evaluation import Trial
from setscore.experiments.scored import Scored
from setscore.experiments.slices import load_parts, saved_experiments, trials


def check_scores(folder: Path) -> None:
    """An error that says what to do where the folder holds no scores."""
    saved_experiments(folder)


def saved_pool(folder: Path, dataset: str) -> Scored:
    """All development documents of a dataset."""
    return load_parts(folder / f"{dataset}-development")["pool"]


def saved_trials(folder: Path, dataset: str, seeds: Sequence[int], blend: str | None = None) -> list[Trial]:
    """Validation and test documents of each seed; with the name of a blend, the scores that it mixes in."""
    place = folder / f"{dataset}-development"
    return trials(load_parts(place if blend is None else place / blend), seeds)
