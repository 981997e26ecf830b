"""Datasets by name, from local files or their public homes, and the slices that experiments use."""

from pathlib import Path

from setscore.datasets import aapd, ecthr, eurlex, goemotions, jigsaw, reuters
from setscore.datasets.dataset import Dataset
from setscore.datasets.files import MissingFilesError
from setscore.datasets.hub import by_hand, from_home
from setscore.datasets.source import Source
from setscore.errors import DataFileError, counted, unknown_name
from setscore.records import LabelSet

DATASETS: dict[str, Source] = {
    "goemotions": goemotions.SOURCE,
    "reuters": reuters.SOURCE,
    "eurlex": eurlex.SOURCE,
    "ecthr": ecthr.SOURCE,
    "ecthr-b": ecthr.SOURCE_B,
    "jigsaw": jigsaw.SOURCE,
    "aapd": aapd.SOURCE,
}
SPLITS = ("train", "validation", "test")
VALIDATION_SIZE = 200  # of the paper
SEED = 13  # of the paper's headline numbers; 17 and 23 for replication


def find_source(name: str) -> Source:
    """What is known about a dataset."""
    if name not in DATASETS:
        raise DataFileError(unknown_name("dataset", name, DATASETS))
    return DATASETS[name]


def load_dataset(name: str, split: str, data_dir: str | Path | None = None, *, descriptions: bool = True) -> Dataset:
    """A split ("train", "validation" or "test") of a dataset.

    With `data_dir` only from its official files in its folder below data_dir (`Source.folder`), plain or compressed
    (.xz, .gz); without it from its home: on the Hugging Face Hub (extra "hub"), of AAPD on Zenodo. Labels come with
    the packaged descriptions, unless `descriptions` is False.
    """
    source = find_source(name)
    if split in SPLITS and split not in source.sizes:
        hint = "" if split != "validation" else f" Validation documents are drawn from {source.validation}."
        raise MissingFilesError(f"{name} has no {split} split, only {', '.join(source.sizes)}.{hint}")
    if split not in source.sizes:
        raise DataFileError(unknown_name(f"split of {name}", split, source.sizes))
    if data_dir is None:
        dataset = from_home(source, split)
    else:
        try:
            dataset = source.read(Path(data_dir) / source.folder, split)
        except MissingFilesError as error:
            raise MissingFilesError(f"{name} {split}: {error} {by_hand(source)}") from error
    return dataset if descriptions else dataset.with_labels(LabelSet.of(dataset.labels.names))


def paper_slices(
    name: str, seed: int = SEED, data_dir: str | Path | None = None, *, descriptions: bool = True
) -> tuple[Dataset, Dataset]:
    """The paper's slices: 200 validation documents drawn with `seed`, and the first documents of the test split.

    A test split that has fewer documents than the paper's slice is taken whole, and that is noted; so is, without a
    note, that of a set that is not the paper's.
    """
    source = find_source(name)
    validation, _ = development_slices(name, seed, data_dir, descriptions=descriptions)
    test = load_dataset(name, "test", data_dir, descriptions=descriptions)
    if source.test_size is None:
        return validation, test
    if len(test) < source.test_size:
        return validation, test.noting(
            f"The paper's slice has {source.test_size} documents; only {len(test)} are there."
        )
    return validation, test.head(source.test_size)


def development_slices(
    name: str, seed: int = SEED, data_dir: str | Path | None = None, *, descriptions: bool = True
) -> tuple[Dataset, Dataset]:
    """200 validation documents drawn with `seed`, and the rest, which is for development; no test document is read.

    Both come from the validation split, of Reuters, which has none, from the training split.
    """
    pool = load_dataset(name, find_source(name).validation, data_dir, descriptions=descriptions)
    if len(pool) < VALIDATION_SIZE:
        raise DataFileError(
            f"{name} {pool.split} has {counted(len(pool), 'document')}; {VALIDATION_SIZE} of them are drawn to fit on."
            ' With --slices development (slices = "development" below [dataset] in a config) half of them are.'
        )
    return pool.draw(VALIDATION_SIZE, seed)
