"""A user's own documents with labels as a Dataset."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from setscore.datasets.dataset import Dataset, Entry
from setscore.datasets.files import OPENERS, csv_rows, jsonl_rows, parquet_rows
from setscore.datasets.labels import read_labels
from setscore.errors import DataFileError, LabelError, SetScoreError
from setscore.records import text_problem

Rows = Iterator[tuple[int, str, Mapping[str, Any]]]
READERS: dict[str, Callable[[Path, list[str]], Rows]] = {
    ".csv": csv_rows,
    ".jsonl": lambda path, _: jsonl_rows(path),
    ".parquet": lambda path, columns: parquet_rows([path], columns),
}


def load_files(
    texts_file: str | Path,
    labels_file: str | Path,
    *,
    text_column: str = "text",
    labels_column: str = "labels",
    id_column: str = "id",
    separator: str = ",",
    name: str = "",
    split: str = "",
) -> Dataset:
    """A dataset from a file of documents (.csv, .jsonl or .parquet) and a file with the inventory (see `read_labels`).

    The labels of a document are a list of names, or one text with the names between `separator`s; an empty one means
    none. Without an id, the row's number stands in. CSV and JSONL may be compressed (.xz, .gz). Every row must be
    usable: what cannot be used is named in one error.
    """
    path = Path(texts_file)
    if not separator:
        raise SetScoreError("the separator of labels is empty. Give the text between two labels, such as ',' or '|'.")
    suffix = Path(path.stem).suffix if path.suffix in OPENERS else path.suffix
    if suffix not in READERS or (suffix == ".parquet" and path.suffix in OPENERS):
        raise DataFileError(f"a file of labelled documents ends in {', '.join(READERS)}; got {path.name!r}.")
    if not path.is_file():
        raise DataFileError(f"the file {path} does not exist.")
    inventory = read_labels(labels_file)
    entries: list[Entry] = []
    problems: list[str] = []
    for number, where, row in READERS[suffix](path, [text_column, labels_column]):
        entry = _entry(row, number, (text_column, labels_column, id_column), separator)
        if isinstance(entry, Entry):
            entries.append(entry)
        else:
            problems.append(f"{where} {entry}")
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise DataFileError(f"{len(problems)} rows cannot be used: {'; '.join(problems[:5])}{more}.")
    if not entries:
        raise DataFileError(f"{path} holds no documents.")
    try:
        gold = inventory.indicator([entry.labels for entry in entries])
    except LabelError as error:
        raise LabelError(f"{path}: {error}") from error
    texts, ids = tuple(entry.text for entry in entries), tuple(entry.id for entry in entries)
    return Dataset(name or path.name, split, texts, ids, inventory, gold)


def _entry(row: Mapping[str, Any], number: int, columns: tuple[str, str, str], separator: str) -> Entry | str:
    """The document of a row, or what is wrong with it."""
    text_column, labels_column, id_column = columns
    if absent := [column for column in (text_column, labels_column) if column not in row]:
        return f"has no field {', '.join(absent)}"
    text, labels, identifier = row[text_column], row[labels_column], row.get(id_column)
    if problem := text_problem(text):
        return problem
    if isinstance(labels, str):
        labels = [part.strip() for part in labels.split(separator) if part.strip()]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return f"has the labels {labels!r:.80}, which are neither a list of names nor one text"
    name = str(number) if identifier is None or not str(identifier).strip() else str(identifier)
    return Entry(name, text, tuple(labels))
