"""Documents from files, row by row: a row that cannot be used says why and stops no other."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from setscore.datasets.dataset import Ids
from setscore.datasets.files import ContentError, ending, open_parquet
from setscore.datasets.formats import FORMATS, LONG, Record, Table, open_table, table_of
from setscore.datasets.remote import RemoteFile, located
from setscore.errors import DataFileError, brief, counted
from setscore.records import Document, text_problem
from setscore.storage import MIB, ROW, listed

DOCUMENT_FILES = FORMATS
COUNTED = 8 * MIB  # bytes of a file that is read once more to count its rows
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class InputRow:
    """A row of a file: its number (the first is 1), its id, and a document or the problem with it.

    values  all of its columns or fields, as they stand in the file: empty for a bare text, and where nothing could be
            read. What could not be written out again as UTF-8 is U+FFFD there.
    own_id  whether the id stands in the file; else the row's number stands in, as `7`, or as `row 7` in a file in which
            other rows have ids, because one of those may be 7
    """

    number: int
    id: str
    document: Document | None
    problem: str | None
    values: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    own_id: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Columns:
    """Where rows with columns keep what.

    Without an `id` the column "id" is taken where there is one; one that is named must be there. `candidates` are
    optional.
    """

    text: str = "text"
    id: str | None = None
    candidates: str = "candidates"


def text_rows(texts: Iterable[object]) -> Iterator[InputRow]:
    """Rows of texts at hand."""
    for number, text in enumerate(texts, start=1):
        problem = text_problem(text)
        yield InputRow(number, str(number), None if problem else Document(str(text), str(number)), problem)


def read_documents(
    path: str | Path, columns: Columns = Columns(), *, suffix: str | None = None, skip: int = 0
) -> Iterator[InputRow]:
    """Rows of a file or an address such as s3://bucket/file.csv, one at a time, by its ending or by `suffix`.

    .txt          a document a line; empty lines at the end are none, one between others is, and cannot be used
    .csv, .tsv    with a header
    .jsonl, .json an object or a text a line; a list of them
    .parquet      columns (extra "hub")
    .xlsx         the first sheet of an Excel file, its first row the header (extra "excel")

    All but the last two may be compressed (.gz, .xz, .zst), and be in UTF-16 with a byte order mark. The first `skip`
    rows are left out; in Parquet they are not even read.
    """
    with open_table(located(path), suffix, skip) as table:
        rows = _rows(table, columns)
        yield from islice(rows, max(0, skip - table.skipped), None)


def read_stream(stream: TextIO, suffix: str | None = None, columns: Columns = Columns()) -> Iterator[InputRow]:
    """Rows of an open stream, such as standard input, as they come: .txt, .csv, .tsv, .jsonl or .json.

    Without a `suffix` each line is a document; what looks like JSON is an error that says what to do.
    """
    yield from _rows(table_of(stream, suffix), columns)


def count_documents(path: str | Path, columns: Columns = Columns(), *, suffix: str | None = None) -> int | None:
    """How many rows `read_documents` will give, where that is cheap to know; else None, and where it cannot be read."""
    found = located(path)
    kind = suffix or ending(found)
    try:
        if kind == ".parquet":
            with open_parquet(found) as file:
                return int(file.metadata.num_rows)
        if isinstance(found, RemoteFile) or kind not in DOCUMENT_FILES or found.suffix.lower() != kind:
            return None
        if found.stat().st_size > COUNTED:
            return None
        return sum(1 for _ in read_documents(path, columns, suffix=suffix))
    except (DataFileError, OSError):
        return None  # reading it tells


def check_columns(table: Table, columns: Columns) -> None:
    """An error if the header has not the columns that are needed, or named."""
    for what, column in (("text", columns.text), ("id", columns.id)):
        if column is not None and table.header is not None and column not in table.header:
            where = f"the {table.kind} header" if table.kind in ("CSV", "TSV") else f"the {table.kind}"
            raise ContentError(
                f"{where} has no column {brief(column)}; it has {brief(list(table.header))}. Name the column with the"
                f" {what}s (--{what}-column)."
            )


def _rows(table: Table, columns: Columns) -> Iterator[InputRow]:
    check_columns(table, columns)
    if table.kind == "text":
        columns = replace(columns, id=None)  # lines have no columns at all
    ids = Ids(columns.id or "id", table.header)
    for record in table.records:
        row = _row(record, columns, ids)
        values = {name: _writable(value) for name, value in record.values.items()}
        yield replace(row, values=values) if values else row


def _row(record: Record, columns: Columns, ids: Ids) -> InputRow:
    number, values = record.number, record.values
    name, own_id = ids.name(number, values.get(columns.id or "id"))
    if problem := text_problem(name):  # it could not be written out again
        name, own_id = ids.name(number, None)
        return InputRow(number, name, None, f"has an id that {problem}")
    text = values.get(columns.text) if record.text is None else record.text
    problem = record.problem or _absent(record, columns) or text_problem(text)
    if problem is None and len(str(text)) > ROW.size:
        problem = LONG
    if problem is not None:
        return InputRow(number, name, None, problem, own_id=own_id)
    candidates = values.get(columns.candidates)
    if candidates == "" and ids.tabular:  # an empty cell, where an object would leave the field out
        candidates = None
    asked = _asked(candidates)
    if isinstance(asked, str):
        return InputRow(number, name, None, asked, own_id=own_id)
    return InputRow(number, name, Document(str(text), name, asked), None, own_id=own_id)


def _absent(record: Record, columns: Columns) -> str | None:
    """What an object or a short row lacks; a header has been checked, and a bare text lacks nothing but a named id."""
    if record.cells is not None and columns.text in list(record.values)[record.cells :]:
        return (
            f"has {counted(record.cells, 'cell')} in place of the header's {len(record.values)}, and none in the column"
            f" {brief(columns.text)}; is it cut off, or is another sign between its cells?"
        )
    needed = [columns.id] if record.text is not None else [columns.text, columns.id]
    absent = [column for column in needed if column is not None and column not in record.values]
    return (
        f"has no field {brief(absent[0])}; it has {listed(record.values, quoted=False) or 'none'}" if absent else None
    )


def _asked(candidates: Any) -> tuple[str, ...] | str | None:
    """The labels to ask, None for all of them, or what is wrong with them."""
    if candidates is None:
        return None
    if isinstance(candidates, str):
        candidates = [label.strip() for label in candidates.split(",") if label.strip()]
    if not isinstance(candidates, list) or not all(isinstance(label, str) for label in candidates):
        return f"has candidates {brief(candidates)}, which are not a list of label names"
    return tuple(candidates) or "has an empty list of candidates"


def _writable(value: Any) -> Any:
    """A value that JSON and CSV can hold: without lone surrogates; dates and other types of Parquet as text."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {_writable(str(key)): _writable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
