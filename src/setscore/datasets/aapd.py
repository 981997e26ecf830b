"""AAPD: abstracts of arXiv papers with 54 subject codes."""

from collections.abc import Iterator
from pathlib import Path

from setscore.datasets.dataset import Dataset, Entry, assemble
from setscore.datasets.files import csv_rows, field, find, jsonl_rows, plain_lines, require
from setscore.datasets.source import Archive, Source, described
from setscore.errors import DataFileError, brief
from setscore.records import LabelSet

FILES = {"train": "train", "validation": "val", "test": "test"}
TABLES = {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}  # as the record on Zenodo has them
STAND_IN = "arxiv_train_substitute.jsonl"


def read(folder: Path, split: str) -> Dataset:
    """From the official pair text_*, label_*: line by line an abstract and its codes, separated by blanks.

    Without text_*, from a CSV file with a column abstract and a column of 0 and 1 for each code.
    """
    labels, part = described("aapd"), FILES[split]
    if find(folder, f"text_{part}") is None and (path := find(folder, TABLES[split])):
        return assemble("aapd", split, list(_table(path, labels, part)), labels, origin=path)
    if split == "train" and find(folder, "text_train") is None and (path := find(folder, STAND_IN)):
        note = f"{STAND_IN} stands in for text_train: other abstracts with the same codes."
        return assemble("aapd", split, list(_stand_in(path)), labels, origin=path, notes=[note])
    path = require(folder, f"text_{part}")
    entries = list(_pairs(path, require(folder, f"label_{part}"), part))
    return assemble("aapd", split, entries, labels, origin=path)


def _pairs(text_file: Path, label_file: Path, part: str) -> Iterator[Entry]:
    texts, codes = plain_lines(text_file), plain_lines(label_file)
    if len(texts) != len(codes):
        raise DataFileError(
            f"{text_file} has {len(texts)} lines, {label_file} {len(codes)}; they belong together line by line."
            f" After line {min(len(texts), len(codes))} one of them is cut off."
        )
    for number, (text, line) in enumerate(zip(texts, codes, strict=True), start=1):
        if not line.strip():
            raise DataFileError(f"line {number} of {label_file} has no code; every abstract has at least one.")
        yield Entry(f"{part}-{number}", text, tuple(line.split()))


def _table(path: Path, labels: LabelSet, part: str) -> Iterator[Entry]:
    codes = {name.lower(): name for name in labels.names}  # in lower case in some copies
    for number, where, row in csv_rows(path, ("abstract",)):
        cells = {codes.get(column.lower(), column): value.strip() for column, value in row.items()}
        text = cells.pop("abstract")
        if cells.keys() != set(labels.names):
            odd = sorted(cells.keys() ^ set(labels.names))
            raise DataFileError(
                f"{path} must have abstract and the {len(labels)} codes as columns; not so {brief(odd[:5])}."
            )
        if wrong := [f"{name}={brief(value)}" for name, value in cells.items() if value not in ("0", "1")]:
            raise DataFileError(f"{where} has {', '.join(wrong[:5])}; a code is 0 or 1.")
        yield Entry(f"{part}-{number}", text, tuple(name for name, value in cells.items() if value == "1"))


def _stand_in(path: Path) -> Iterator[Entry]:
    for number, where, row in jsonl_rows(path):
        codes = tuple(field(row, "labels", list, where))
        yield Entry(str(row.get("id") or f"train-{number}"), field(row, "text", str, where), codes)


SOURCE = Source(
    name="aapd",
    title="AAPD",
    folder="aapd",
    origin="arXiv; Yang et al. 2018, SGM",
    licence="not stated by its authors; the abstracts belong to the papers' authors",
    labels=54,
    cardinality="2.41 (train and validation)",
    sizes={"train": 53840, "validation": 1000, "test": 1000},
    test_size=1000,
    read=read,
    homes=(Archive("https://zenodo.org/records/6344750/files/AAPD.zip", tuple(TABLES.values())),),
    obtain="text_train, label_train, text_val, label_val, text_test, label_test; github.com/lancopku/SGM says where;"
    " or train.csv, dev.csv, test.csv from AAPD.zip of zenodo.org/records/6344750, where the paper has them from",
    differs=("The paper's body speaks of computer science codes; mathematics, physics and others are among the 54.",),
    unchecked=(
        "The paper says that AAPD is not on the Hub, and no copy with the official splits was found there: public code"
        " takes it from Zenodo, from Kaggle or from its authors' drive.",
        "The record on Zenodo: that its AAPD.zip has train.csv, dev.csv and test.csv, and these a column abstract and"
        " one for each code, is what the paper's code reads.",
    ),
)
