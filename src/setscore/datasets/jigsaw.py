"""Jigsaw Toxic Comment Classification: Wikipedia talk page comments with six kinds of toxicity."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setscore.datasets.dataset import Dataset, Entry, assemble
from setscore.datasets.files import csv_rows, find, missing, parquet_rows, shards
from setscore.datasets.source import HUB_UNCHECKED, Home, Source, described
from setscore.errors import DataFileError, brief
from setscore.records import IntArray, LabelSet

FILE = "train.csv"  # the labelled rows of the challenge; its own test rows came without labels
ROWS = 159571  # that it has
REPOSITORY = "thesofakillers/jigsaw-toxic-comment-classification-challenge"
SEED = 13  # of the 80/10/10 split; the paper does not give its own
STAND_INS = {
    "train": ("train_enriched.csv", "richer in toxic comments than the whole"),
    "validation": ("natural_1000.csv", "at the natural rate"),
}


def read(folder: Path, split: str) -> Dataset:
    """From the challenge's train.csv or the Hub's Parquet files of it, split by `split_rows`; else from extracts."""
    labels = described("jigsaw")
    columns = ("id", "comment_text", *labels.names)
    stand_in, kind = STAND_INS.get(split, ("", ""))
    if path := find(folder, FILE):
        entries = list(_entries(csv_rows(path, columns), labels))
    elif parts := shards(folder, "train"):
        path, entries = parts[0], list(_entries(parquet_rows(parts, columns), labels))
        if len(entries) != ROWS:  # the names of the parts do not say how many there are
            raise DataFileError(f"{path.parent} holds {len(entries)} rows, {FILE} has {ROWS}. Fetch it again.")
    elif stand_in and (path := find(folder, stand_in)):
        note = f"{stand_in} stands in for the {split} part of {FILE}: an extract, {kind}."
        entries = list(_entries(csv_rows(path, columns), labels))
        return assemble("jigsaw", split, entries, labels, origin=path, notes=[note])
    else:
        raise missing(folder, *filter(None, (FILE, stand_in)))
    chosen = [entries[row] for row in split_rows(len(entries))[split]]
    note = f"{len(chosen)} of the {len(entries)} rows of {FILE}: own 80/10/10 split with seed {SEED}."
    return assemble("jigsaw", split, chosen, labels, origin=path, notes=[note])


def split_rows(n: int) -> dict[str, IntArray]:
    """Rows of each split, in the original order: 80%, 10% and the rest of a permutation of all `n` rows."""
    order = np.random.default_rng(SEED).permutation(n)
    train, validation = n * 8 // 10, n * 8 // 10 + n // 10
    parts = {"train": order[:train], "validation": order[train:validation], "test": order[validation:]}
    return {split: np.sort(rows).astype(np.int64) for split, rows in parts.items()}


def _entries(rows: Iterable[tuple[int, str, Mapping[str, Any]]], labels: LabelSet) -> Iterator[Entry]:
    for _, where, row in rows:
        values = {name: str(row[name]).strip() for name in labels.names}
        if wrong := [f"{name}={brief(value)}" for name, value in values.items() if value not in ("0", "1")]:
            raise DataFileError(f"{where} has {', '.join(wrong)}; a label is 0 or 1.")
        yield Entry(str(row["id"]), row["comment_text"], tuple(name for name, value in values.items() if value == "1"))


SOURCE = Source(
    name="jigsaw",
    title="Jigsaw Toxic Comments",
    folder="jigsaw",
    origin="Jigsaw and Conversation AI 2018, Toxic Comment Classification Challenge on Kaggle",
    licence="CC0; the comments themselves CC BY-SA 3.0 of Wikipedia",
    labels=6,
    cardinality="0.2 (natural rate)",
    sizes={"train": 127656, "validation": 15957, "test": 15958},
    test_size=1500,
    read=read,
    homes=(Home.converted(REPOSITORY, "default/train/*.parquet"), Home(REPOSITORY, FILE)),
    obtain="train.csv from kaggle.com/c/jigsaw-toxic-comment-classification-challenge",
    differs=(
        f"The paper splits the 159,571 labelled rows 80/10/10 with a seed that it does not give; here it is {SEED}, so"
        " the test slice holds other comments.",
    ),
    unchecked=(
        HUB_UNCHECKED,
        f"Whether the Hub has converted the repository to Parquet. If not, {FILE} is read, and a note says so.",
    ),
)
