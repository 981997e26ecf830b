"""GoEmotions: Reddit comments with 27 emotions and neutral."""

from collections.abc import Iterator
from pathlib import Path

from setscore.datasets.dataset import Dataset, Entry, assemble
from setscore.datasets.files import class_names, field, find, parquet_rows, plain_lines, read_lines, require, shards
from setscore.datasets.source import HUB_UNCHECKED, Home, Source, described
from setscore.errors import DataFileError, brief
from setscore.records import LabelSet

FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}


def read(folder: Path, split: str) -> Dataset:
    """From the official TSV files (text, label numbers, id) with their list of labels, or the Hub's Parquet files."""
    labels = described("goemotions")
    if parts := shards(folder, split):
        return assemble("goemotions", split, list(_parquet(parts, labels)), labels, origin=parts[0])
    path = require(folder, FILES[split], f"{split}-*.parquet")
    if inventory := find(folder, "labels.txt", "emotions.txt"):
        labels = described("goemotions", *(line.strip() for line in plain_lines(inventory)))
    return assemble("goemotions", split, list(_tsv(path, labels)), labels, origin=path)


def _tsv(path: Path, labels: LabelSet) -> Iterator[Entry]:
    for number, line in read_lines(path):
        where, cells = f"line {number} of {path}", line.rstrip("\r\n").split("\t")
        if len(cells) != 3:
            raise DataFileError(f"{where} has {len(cells)} cells, not the 3 of text, labels and id; it may be cut off.")
        text, numbers, name = cells
        if not all(part.strip().isdecimal() for part in numbers.split(",")):
            raise DataFileError(f"{where} has the labels {brief(numbers)}; they are numbers separated by commas.")
        indices = [int(part) for part in numbers.split(",")]
        yield Entry(name, text, class_names(indices, labels.names, where))


def _parquet(paths: list[Path], labels: LabelSet) -> Iterator[Entry]:
    for _, where, row in parquet_rows(paths, ("text", "labels", "id")):
        names = class_names(field(row, "labels", list, where), labels.names, where)
        yield Entry(field(row, "id", str, where), field(row, "text", str, where), names)


SOURCE = Source(
    name="goemotions",
    title="GoEmotions",
    folder="goemotions",
    origin="Demszky et al. 2020; Google Research",
    licence="CC BY 4.0 (the Hub's card says Apache 2.0)",
    labels=28,
    cardinality="1.18 (train and validation)",
    sizes={"train": 43410, "validation": 5426, "test": 5427},
    test_size=1500,
    read=read,
    homes=(Home("google-research-datasets/go_emotions", "simplified/{split}-*.parquet"),),
    obtain="train.tsv, dev.tsv, test.tsv and emotions.txt from the folder goemotions/data of"
    " github.com/google-research/google-research",
    differs=("The paper gives 1.8 labels per document; the public data has about 1.2.",),
    unchecked=(HUB_UNCHECKED,),
)
