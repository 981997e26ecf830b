"""What is known about a public dataset: where it comes from, how it is read, what differs from the paper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from setscore.datasets.dataset import Dataset
from setscore.datasets.labels import read_labels
from setscore.records import Label, LabelSet

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Home:
    """Where the files lie on the Hugging Face Hub. `files` is a pattern; {split} stands for the split."""

    repository: str
    files: str
    revision: str = "main"


@dataclass(frozen=True)
class Source:
    """A dataset by name.

    name         as in `load_dataset`; `folder` is where local files lie below the data folder
    read         from a folder of official files, and a split, to a Dataset
    sizes        documents of each split that it has, as published
    cardinality  labels per document, and where that was counted
    test_size    documents of the paper's test slice: the first ones of the test split
    validation   the split that the validation documents are drawn from
    obtain       how to get the files by hand
    differs      what differs from the paper, as sentences
    """

    name: str
    title: str
    folder: str
    origin: str
    licence: str
    labels: int
    cardinality: str
    sizes: Mapping[str, int]
    test_size: int
    read: Callable[[Path, str], Dataset]
    obtain: str
    home: Home | None = None
    validation: str = "validation"
    differs: tuple[str, ...] = ()


@cache
def descriptions(name: str) -> dict[str, str]:
    """The packaged label descriptions of a source, in the order of its inventory."""
    labels = read_labels(Path(__file__).parent / "descriptions" / f"{name}.yaml")
    return {label.name: label.text for label in labels.labels}


def described(source: str, *names: str) -> LabelSet:
    """An inventory with the packaged descriptions: `names`, or without them the whole packaged inventory."""
    known = descriptions(source)
    return LabelSet(tuple(Label(name, known.get(name)) for name in names or known))


def card(source: Source, *measured: Dataset) -> list[str]:
    """Lines of Markdown about a source, with the counts of the datasets that were loaded from it."""
    home = f"`{source.home.repository}`, files `{source.home.files}`" if source.home else "none; local files only"
    sizes = ", ".join(f"{split} {count:,}" for split, count in source.sizes.items())
    lines = [
        f"## {source.title} (`{source.name}`)",
        "",
        f"- Source: {source.origin}",
        f"- Licence: {source.licence}",
        f"- Documents: {sizes}",
        f"- Labels: {source.labels}; per document {source.cardinality}",
        f"- On the Hugging Face Hub: {home}",
        f"- By hand: {source.obtain}",
        f"- Test slice of the paper: the first {source.test_size:,} documents of the test split",
    ]
    lines += [f"- Differs from the paper: {sentence}" for sentence in source.differs]
    if measured:
        lines += ["", "| Loaded | Documents | Labels | Labels per document |", "|---|---|---|---|"]
        lines += [f"| {d.split} | {len(d):,} | {len(d.labels)} | {d.cardinality:.2f} |" for d in measured]
        lines += ["", *(f"- {d.split}: {note}" for d in measured for note in d.notes)]
    return lines
