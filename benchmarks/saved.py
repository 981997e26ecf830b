"""Scores that `setscore evaluate NAME --save FOLDER` keeps: the one place here that knows where they are."""

from collections.abc import Sequence
from pathlib import Path

from setscore.experiments.evaluation import Trial, trials
from setscore.experiments.saved import find_saved, one_saved
from setscore.experiments.scored import Scored


def check_scores(folder: Path) -> None:
    """An error that says what to do where the folder holds no scores."""
    find_saved(folder)


def saved_pool(folder: Path, dataset: str) -> Scored:
    """All development documents of a dataset."""
    return one_saved(folder / f"{dataset}-development").parts()["pool"]


def saved_trials(folder: Path, dataset: str, seeds: Sequence[int], blend: str | None = None) -> list[Trial]:
    """Validation and test documents of each seed; with the name of a blend, the scores that it mixes in."""
    place = folder / f"{dataset}-development"
    return trials(one_saved(place if blend is None else place / blend).parts(), seeds)
