"""Documents from files, row by row: a row that cannot be used says why and stops no other."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from setscore.datasets.files import table_reader
from setscore.errors import DataFileError, counted, plural
from setscore.records import Document, text_problem

DOCUMENT_FILES = (".txt", ".csv", ".jsonl")
SHOWN = 5  # rows that a note names
UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")  # how a file in UTF-16 begins when it is read as UTF-8


@dataclass(frozen=True)
class Row:
    """A row of a file: its number (the first is 1), its id, and a document or the problem with it."""

    number: int
    id: str
    document: Document | None
    problem: str | None


@dataclass(frozen=True)
class Columns:
    """Where CSV and JSONL rows keep what.

    Without an `id` the column "id" is taken where there is one; one that is named must be there. `candidates` are
    optional.
    """

    text: str = "text"
    id: str | None = None
    candidates: str = "candidates"


def left_out(problems: Mapping[int, str], total: int) -> str:
    """A note on the rows, by number, that cannot be used while the others go on: nothing is dropped in silence."""
    count, were = len(problems), plural(len(problems), "was", "were")
    shown = "; ".join(f"row {number} {problem}" for number, problem in list(problems.items())[:SHOWN])
    more = f"; and {count - SHOWN} more" if count > SHOWN else ""
    return f"{count} of {counted(total, 'row')} cannot be used and {were} left out: {shown}{more}."


def text_rows(texts: Iterable[object]) -> Iterator[Row]:
    """Rows of texts at hand."""
    return (_row(number, None, text, None) for number, text in enumerate(texts, start=1))


def read_documents(path: str | Path, columns: Columns = Columns(), *, suffix: str | None = None) -> Iterator[Row]:
    """Rows of a file: .txt a document a line, .csv with a header, .jsonl an object (or a string) a line.

    Empty lines at the end of a .txt file are no documents; one between others is, and cannot be used.
    """
    path = Path(path)
    suffix = suffix or path.suffix.lower()
    if suffix not in DOCUMENT_FILES:
        raise DataFileError(f"a file of documents ends in {', '.join(DOCUMENT_FILES)}; got {path.name!r}.")
    try:
        file = path.open(encoding="utf-8-sig", errors="surrogateescape", newline="" if suffix == ".csv" else None)
    except OSError as error:
        raise DataFileError(f"the file {path} cannot be read: {error.strerror}.") from error
    with file:
        yield from read_stream(file, suffix, columns)


def read_stream(stream: TextIO, suffix: str = ".txt", columns: Columns = Columns()) -> Iterator[Row]:
    """Rows of an open stream, such as standard input."""
    if suffix == ".csv":
        yield from _csv_rows(stream, columns)
        return
    empty: list[Row] = []
    for number, raw in enumerate(stream, start=1):
        line = raw.rstrip("\r\n")
        if suffix == ".jsonl":
            if line.strip():
                yield _json_row(number, line, columns)
        elif line.strip():
            yield from [*empty, _row(number, None, line, None)]
            empty = []
        else:
            empty.append(_row(number, None, line, None))


def _row(number: int, identifier: Any, text: Any, candidates: Any) -> Row:
    """Without an id, or with a blank one, the row's number stands in."""
    name = str(number) if identifier is None or not str(identifier).strip() else str(identifier)
    if problem := text_problem(name):  # it could not be written out again
        return Row(number, str(number), None, f"has an id that {problem}")
    problem = text_problem(text)
    if problem is None and candidates is not None:
        if isinstance(candidates, str):
            candidates = [label.strip() for label in candidates.split(",") if label.strip()]
        if not isinstance(candidates, list) or not all(isinstance(label, str) for label in candidates):
            problem = f"has candidates {candidates!r}, which are not a list of label names"
        elif not candidates:
            problem = "has an empty list of candidates"
    if problem:
        return Row(number, name, None, problem)
    return Row(number, name, Document(text, name, None if candidates is None else tuple(candidates)), None)


def _json_row(number: int, line: str, columns: Columns) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Row(number, str(number), None, f"is not valid JSON ({error})")
    record = {columns.text: value} if isinstance(value, str) else value
    if not isinstance(record, dict) or columns.text not in record:
        return Row(number, str(number), None, f"has no field {columns.text!r}")
    if columns.id is not None and columns.id not in record:
        return Row(number, str(number), None, f"has no field {columns.id!r}; it has {', '.join(record)}")
    return _row(number, record.get(columns.id or "id"), record[columns.text], record.get(columns.candidates))


def _csv_rows(stream: TextIO, columns: Columns) -> Iterator[Row]:
    reader = table_reader(stream)
    number = 0
    try:
        header = list(reader.fieldnames or [])
        if not header:
            raise DataFileError("the CSV is empty: its first line names the columns.")
        if header[0].startswith(UTF_16):
            raise DataFileError("the CSV is UTF-16; save it as UTF-8.")
        for what, column in (("text", columns.text), ("id", columns.id)):
            if column is not None and column not in header:
                raise DataFileError(
                    f"the CSV header has no column {column!r}; it has {header}. Name the column with the {what}s"
                    f" (--{what}-column)."
                )
        for number, record in enumerate(reader, start=1):
            if any(record.get(None, ())):  # cells beyond the header: a text cut at its first comma
                problem = f"has more cells than the header's {len(header)}; put a text that holds commas into quotes"
                yield Row(number, str(number), None, problem)
                continue
            name, candidates = record.get(columns.id or "id"), record.get(columns.candidates) or None
            yield _row(number, name, record[columns.text], candidates)
    except csv.Error as error:
        raise DataFileError(f"the CSV is broken after row {number}: {error}") from error
