"""What baselines learn from: the training split, never a text that they are measured on."""

from pathlib import Path

import numpy as np

from setscore.baselines import TRAINED
from setscore.datasets import Dataset, MissingFilesError, load_dataset
from setscore.errors import DataFileError
from setscore.experiments.evaluation import SEED, VALIDATION_SIZE, Experiment

TRAIN = ("split", "validation", "either")


def training_documents(
    baseline: str, experiment: Experiment, train: str, *, data_dir: Path | None = None, limit: int | None = None
) -> Dataset | None:
    """The training split; None to learn from validation documents, or where nothing is learned.

    "split" without a training split is an error, "either" then takes the validation documents.
    """
    if baseline not in TRAINED or train == "validation":
        return None
    try:
        return _split(experiment, load_dataset(experiment.name, "train", data_dir), limit)
    except (MissingFilesError, NoTrainingError) as error:
        if train == "either":
            return None
        raise NoTrainingError(
            f"{error} With --train validation {baseline} learns from the {VALIDATION_SIZE} validation documents of a"
            " seed."
        ) from error


class NoTrainingError(DataFileError):
    """A dataset without training documents that are not measured on."""


def _split(experiment: Experiment, whole: Dataset, limit: int | None) -> Dataset:
    """Without the texts of the experiment's documents; `limit` of them, drawn with a fixed seed."""
    measured = {text for part in experiment.parts.values() for text in part.texts}
    kept = np.array([row for row, text in enumerate(whole.texts) if text not in measured], dtype=np.int64)
    left_out = len(whole) - len(kept)
    if len(kept) < min(VALIDATION_SIZE, len(measured)):
        raise NoTrainingError(
            f"{experiment.name} has too few training documents: the texts of {left_out} of {len(whole)} in its training"
            " split are measured on."
        )
    train = whole.take(kept)
    if left_out:
        train = train.noting(
            f"{left_out} of {len(whole)} training documents have a text that is measured on; left out."
        )
    return train if limit is None or limit >= len(train) else train.draw(limit, SEED)[0]
