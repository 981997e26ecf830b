"""What is known about a public dataset: where it comes from, how it is read, what differs from the paper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from setscore.datasets.dataset import Dataset
from setscore.datasets.labels import read_labels
from setscore.records import Label, LabelSet

HUB_UNCHECKED = (
    "The Hub itself could not be reached when this was written: the loader was tried on made-up files in the form that"
    " its pages and the paper's code show."
)


@dataclass(frozen=True)
class Home:
    """Where the files lie on the Hugging Face Hub. `files` is a pattern; {split} stands for the split."""

    repository: str
    files: str
    revision: str = "main"

    @classmethod
    def converted(cls, repository: str, files: str) -> "Home":
        """The Hub's own conversion to Parquet, a branch that holds <config>/<split>/0000.parquet and so on."""
        return cls(repository, files, "refs/convert/parquet")

    def title(self, split: str | None = None) -> str:
        """What lies where, in words; of one split where it is given."""
        files = self.files if split is None else self.files.replace("{split}", split)
        return f"{files} of {self.repository}" + ("" if self.revision == "main" else f" ({self.revision})")


@dataclass(frozen=True)
class Archive:
    """A ZIP file on the web, and which of its files are wanted."""

    url: str
    files: tuple[str, ...]

    def title(self, _: str | None = None) -> str:
        return self.url.removeprefix("https://")


@dataclass(frozen=True)
class Source:
    """A dataset by name.

    name         as in `load_dataset`; `title` and `origin` say what it is and where it comes from, `licence` who may
                 use it
    folder       where local files lie below the data folder
    labels       how many there are
    read         from a folder of official files, and a split, to a Dataset
    sizes        documents of each split that it has, as published
    cardinality  labels per document, and where that was counted
    test_size    documents of the paper's test slice: the first ones of the test split; None for a set that is not the
                 paper's, whose test split is taken whole
    obtain       how to get the files by hand, as the words after "Get", without a full stop
    homes        on the Hugging Face Hub or elsewhere, in the order in which they are tried; empty where nothing can be
                 fetched, and the files are only got by hand
    validation   the split that the validation documents are drawn from
    differs      what differs from the paper, as sentences; empty for a set that is not the paper's
    unchecked    what is taken from others' word, because it could not be looked at when this was written
    """

    name: str
    title: str
    folder: str
    origin: str
    licence: str
    labels: int
    cardinality: str
    sizes: Mapping[str, int]
    read: Callable[[Path, str], Dataset]
    obtain: str
    homes: tuple[Home | Archive, ...] = ()
    validation: str = "validation"
    test_size: int | None = None
    differs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


@cache
def descriptions(name: str) -> dict[str, str]:
    """The packaged label descriptions of a source, in the order of its inventory."""
    labels = read_labels(Path(__file__).parent / "descriptions" / f"{name}.yaml")
    return {label.name: label.text("description") for label in labels.labels}


def described(source: str, *names: str) -> LabelSet:
    """An inventory with the packaged descriptions: `names`, or without them the whole packaged inventory.

    It is asked by description, as in the paper: names of public sets are codes rather than words.
    """
    known = descriptions(source)
    return LabelSet(tuple(Label(name, known.get(name)) for name in names or known), "description")


def card(source: Source, *measured: Dataset) -> list[str]:
    """Lines of Markdown about a source, with the counts of the datasets that were loaded from it."""
    sizes = ", ".join(f"{split} {count:,}" for split, count in source.sizes.items())
    lines = [
        f"## {source.title} (`{source.name}`)",
        "",
        f"- Source: {source.origin}",
        f"- Licence: {source.licence}",
        f"- Documents: {sizes}",
        f"- Labels: {source.labels}; per document {source.cardinality}",
        f"- {_homes(source)}",
        f"- By hand: {source.obtain}",
    ]
    if source.test_size is not None:
        lines.append(f"- Test slice of the paper: the first {source.test_size:,} documents of the test split")
    lines += [f"- Differs from the paper: {sentence}" for sentence in source.differs]
    lines += [f"- Not checked: {sentence}" for sentence in source.unchecked]
    if measured:
        lines += ["", "| Loaded | Documents | Labels | Labels per document |", "|---|---|---|---|"]
        lines += [f"| {d.split} | {len(d):,} | {len(d.labels)} | {d.cardinality:.2f} |" for d in measured]
        lines += ["", *(f"- {d.split}: {note}" for d in measured for note in d.notes)]
    return lines


def _homes(source: Source) -> str:
    """Where its files are fetched from, as a line of its card."""
    if not source.homes:
        return "Home: none, so the files are only got by hand"
    where = "Home, not on the Hugging Face Hub" if isinstance(source.homes[0], Archive) else "On the Hugging Face Hub"
    return f"{where}: {'; else '.join(f'`{home.title()}`' for home in source.homes)}"
