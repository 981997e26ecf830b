"""Rows of a user's file as they stand in it, one at a time: no format needs the whole file in memory.

    .txt          a document a line
    .csv, .tsv    a header, then a row a line (or several, in quotes)
    .jsonl        an object or a text a line
    .json         a list of objects or texts
    .parquet      columns (extra "hub")
    .xlsx         the first sheet, its first row the header (extra "excel")

The first five are texts: they may be compressed (.gz, .xz, .zst), and come from a stream as well.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, TextIO

from setscore.datasets.files import (
    BATCH,
    DAMAGE,
    ContentError,
    delimiter_of,
    ending,
    open_binary,
    open_parquet,
    sniffed,
    twice,
)
from setscore.datasets.json_array import json_array
from setscore.datasets.remote import RemoteFile
from setscore.datasets.workbook import open_workbook
from setscore.errors import DataFileError, brief
from setscore.storage import ROW, encoding_of, megabytes, near_file, one_line, parse_json

LONG = f"is longer than {megabytes(ROW.size)}, the limit for one row"
ENDS = ("\n", "\r")
_JSON = re.compile(r'\s*(?:[\[{]\s*$|\[\s*[{"]|\{\s*"[^"]*"\s*:)')  # how a JSON text begins, and hardly any other


@dataclass(frozen=True)
class Record:
    """A row: its number (the first is 1), and its values by column, a bare `text`, or what is wrong with it."""

    number: int
    values: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    problem: str | None = None
    cells: int | None = None  # of a row that has fewer than the header


@dataclass(frozen=True)
class Table:
    """Rows, and the columns that all of them have; without a `header`, each has its own fields or none."""

    kind: str  # as a message names it
    records: Iterator[Record]
    header: tuple[str, ...] | None = None
    skipped: int = 0  # rows at the beginning that were not read


@contextmanager
def open_table(path: Path | RemoteFile, suffix: str | None = None, skip: int = 0) -> Iterator[Table]:
    """The rows of a file, by its ending or by `suffix`; they are to be read inside of the `with`.

    As many as can be left out at no cost of the first `skip` are.
    """
    suffix = suffix or ending(path)
    if suffix not in FORMATS:
        raise DataFileError(f"a file of documents ends in {', '.join(FORMATS)}; got {path.name!r}.{_instead(path)}")
    try:
        path.open("rb").close()
    except OSError as error:
        raise DataFileError(f"the file {path} cannot be read: {error.strerror}.{near_file(str(path))}") from error
    try:
        if suffix in TABLES:
            with TABLES[suffix](path, skip) as table:
                yield table
        else:
            with open_binary(path) as file, _decoding(file) as stream:
                yield TEXTS[suffix](stream)
    except ContentError as error:
        raise DataFileError(f"{path}: {error}") from error
    except DAMAGE as error:
        raise DataFileError(f"{path} is truncated or damaged ({one_line(error)}). Fetch it again.") from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path} is not {error.encoding.upper()}: {error.reason}. Save it as UTF-8.") from error
    except OSError as error:
        raise DataFileError(f"the file {path} cannot be read: {error.strerror or error}.") from error


def _instead(path: Path | RemoteFile) -> str:
    """Where to go with a folder or an e-mail, which people try first; else nothing."""
    folder = isinstance(path, Path) and path.is_dir()
    if not folder and path.suffix.lower() != ".eml":
        return ""
    return (
        " A folder of such files is read by `setscore batch`; how to make one file of e-mails (.eml) is shown in"
        ' docs/how-to/documents.md, "Classify e-mail threads".'
    )


def table_of(stream: TextIO, suffix: str | None = None) -> Table:
    """The rows of an open stream. Without a `suffix` they are lines, unless they look like JSON, which is an error."""
    if suffix is None:
        return Table("text", _lines(stream, guessed=True))
    if suffix not in TEXTS:
        raise DataFileError(f"a stream of documents is one of {', '.join(TEXTS)}; got {suffix!r}. Give a file instead.")
    return TEXTS[suffix](stream)


def _decoding(file: Any) -> io.TextIOWrapper:
    """The text of an open file. In UTF-8, a byte that is none is kept as a surrogate, which is a problem of its row."""
    try:
        encoding = sniffed(file)
    except ValueError as error:
        raise DataFileError(f"{getattr(file, 'name', 'the file')} cannot be read: {error}.") from error
    errors = "surrogateescape" if encoding.startswith("utf-8") else "strict"
    return io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="")


def _limited(stream: TextIO) -> Iterator[str | None]:
    """Lines; None for one that is too long, of which nothing is kept."""
    first = True
    while line := stream.readline(ROW.size + 1):
        if first:
            _refuse_utf_16(line)
            first = False
        if len(line) <= ROW.size or line.endswith(ENDS):
            yield line
            continue
        while (rest := stream.readline(ROW.size)) and not rest.endswith(ENDS):
            pass
        yield None


def _refuse_utf_16(start: str) -> None:
    """A stream that was opened as UTF-8 holds UTF-16 as surrogates, or with a NUL after each letter."""
    try:
        utf_8 = encoding_of(start[:1024].encode("utf-8", "surrogateescape")).startswith("utf-8")
    except UnicodeEncodeError:
        return
    except ValueError:
        utf_8 = False
    if not utf_8:
        raise DataFileError("the input is UTF-16. Convert it first, for example with `iconv -f UTF-16 -t UTF-8`.")


def _lines(stream: TextIO, *, guessed: bool = False) -> Iterator[Record]:
    """A document a line. Empty lines at the end are none; one between others is, and cannot be used."""
    empty = 1  # the first line after the last one that is not empty
    for number, line in enumerate(_limited(stream), start=1):
        if line is not None and not line.strip():
            continue
        if guessed and line is not None and empty == 1 and _JSON.match(line):
            raise DataFileError(
                "the input looks like JSON. Say how it is laid out: --input-format jsonl (an object a line) or json"
                " (one list), or txt to take each line as it is."
            )
        for blank in range(empty, number):
            yield Record(blank, text="")
        empty = number + 1
        yield Record(number, problem=LONG) if line is None else Record(number, text=line.rstrip("\r\n"))


def _json_lines(stream: TextIO) -> Iterator[Record]:
    for number, line in enumerate(_limited(stream), start=1):
        if line is None:
            yield Record(number, problem=LONG)
        elif line.strip():
            try:
                yield _json_record(number, parse_json(line))
            except ValueError as error:
                yield Record(number, problem=f"is not valid JSON ({one_line(error)})")


def _json_record(number: int, value: Any) -> Record:
    if isinstance(value, str):
        return Record(number, text=value)
    if isinstance(value, dict):
        return Record(number, value)
    return Record(number, problem=f"is {brief(value)}, neither an object nor a text")


def _json_list(stream: TextIO) -> Iterator[Record]:
    for number, value in enumerate(json_array(stream), start=1):
        if isinstance(value, ValueError):
            yield Record(number, problem=f"is not valid JSON ({one_line(value)})")
        else:
            yield _json_record(number, value)


def _delimited(stream: TextIO, kind: str, delimiter: str | None = None) -> Table:
    """Rows below a header; without a `delimiter`, it is the one that the header has."""
    csv.field_size_limit(ROW.size)

    def lines() -> Iterator[str]:
        for line in _limited(stream):
            if line is None:
                raise csv.Error(f"a line is longer than {megabytes(ROW.size)}")
            yield line

    rest = lines()
    try:
        first = list(islice(rest, 1))
        sign = delimiter or delimiter_of("".join(first))
        reader = csv.reader(chain(first, rest), strict=True, delimiter=sign)
        header = next(reader, [])
    except csv.Error as error:
        raise _broken(kind, 0, error) from error
    if not header:
        raise ContentError(f"the {kind} is empty. Its first line must name the columns.")
    return Table(kind, _cells(reader, kind, names := named(header, kind)), names)


def _cells(reader: Iterable[list[str]], kind: str, header: tuple[str, ...]) -> Iterator[Record]:
    number = 0
    try:
        for number, cells in enumerate(filter(None, reader), start=1):
            if any(cells[len(header) :]):  # a text cut at its first comma
                problem = f"has more cells than the header's {len(header)}; put a text that contains commas in quotes"
                yield Record(number, problem=problem)
            else:
                missing = [None] * (len(header) - len(cells))
                values = dict(zip(header, [*cells, *missing], strict=False))
                yield Record(number, values, cells=len(cells) if missing else None)
    except csv.Error as error:
        raise _broken(kind, number, error) from error


def _broken(kind: str, number: int, error: Exception) -> ContentError:
    said = one_line(error)
    if kind == "TSV" and "expected after" in said:  # a tab cannot be seen
        said = "a cell that begins with a quotation mark must end with one, and those inside be doubled"
    return ContentError(f"the {kind} is broken after row {number}: {said}")


def named(header: Iterable[str], kind: str) -> tuple[str, ...]:
    """The columns; one without a name is called by its place. A name that is there twice is an error."""
    names = [name if name.strip() else f"column {place}" for place, name in enumerate(header, start=1)]
    if (name := twice(names)) is not None:
        raise ContentError(f"the {kind} has the column {brief(name)} twice. Rename one of them.")
    return tuple(names)


@contextmanager
def _parquet(path: Path | RemoteFile, skip: int) -> Iterator[Table]:
    with open_parquet(path) as file:
        header = named(file.schema_arrow.names, "Parquet file")
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = list(accumulate(sizes))
        first = sum(end <= skip for end in ends)
        skipped = ends[first - 1] if first else 0
        groups = list(range(first, len(sizes)))
        values = (row for batch in file.iter_batches(BATCH, row_groups=groups) for row in batch.to_pylist())
        records = (Record(number, row) for number, row in enumerate(values, start=skipped + 1))
        yield Table("Parquet file", records, header, skipped)


@contextmanager
def _workbook(path: Path | RemoteFile, skip: int) -> Iterator[Table]:  # noqa: ARG001 -- its rows have to be read
    if isinstance(path, RemoteFile):
        raise DataFileError(f"an Excel file is read from this machine alone; copy {path} here, or save it as CSV.")
    with open_workbook(path) as rows:
        first = list(next(rows, ()))
        if not first:
            raise DataFileError(f"the first sheet of {path} is empty: its first row names the columns.")
        while not first[-1]:  # cells that were only formatted
            first.pop()
        header = named(first, "sheet")

        def records() -> Iterator[Record]:
            for number, cells in enumerate(rows, start=1):
                if any(cells[len(header) :]):
                    yield Record(number, problem=f"has more cells than the header's {len(header)}")
                else:
                    empty = [""] * (len(header) - len(cells))  # at the end of a row they are not stored
                    yield Record(number, dict(zip(header, [*cells, *empty], strict=False)))

        yield Table("sheet", records(), header)


TEXTS: dict[str, Callable[[TextIO], Table]] = {
    ".txt": lambda stream: Table("text", _lines(stream)),
    ".csv": lambda stream: _delimited(stream, "CSV"),
    ".tsv": lambda stream: _delimited(stream, "TSV", "\t"),
    ".jsonl": lambda stream: Table("JSONL", _json_lines(stream)),
    ".json": lambda stream: Table("JSON", _json_list(stream)),
}
Opener = Callable[[Path | RemoteFile, int], AbstractContextManager[Table]]
TABLES: dict[str, Opener] = {".parquet": _parquet, ".xlsx": _workbook}
FORMATS = (*TEXTS, *TABLES)
