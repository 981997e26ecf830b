"""Files as their publishers give them: found by name, plain or compressed, and read row by row.

Whatever is missing or damaged is named with its file, its line and what to do.
"""

import csv
import gzip
import importlib
import io
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO

from setscore.datasets.remote import RemoteFile
from setscore.errors import DataFileError, MissingExtraError, SetScoreError, brief
from setscore.storage import MIB, ROW, Limits, encoding_of, megabytes, one_line, parse_json, read_limited


def _zstd(file: BinaryIO) -> BinaryIO:
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("a file that ends in .zst", "batch") from error
    return io.BufferedReader(arrow.CompressedInputStream(arrow.PythonFile(file, "r"), "zstd"))


UNPACKERS: Mapping[str, Callable[[BinaryIO], Any]] = {
    "": lambda file: file,
    ".xz": lzma.LZMAFile,
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".zst": _zstd,
}
PACKED = tuple(filter(None, UNPACKERS))
LINED = (".txt", ".csv", ".tsv", ".jsonl", ".json")  # texts, which may be compressed
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
WHOLE = Limits(size=256 * MIB)  # a publisher's file that is read whole
UNPACKED = 1024 * MIB  # what a small file may become: compressed, in an archive, or fetched from the web
BATCH = 256  # rows of a Parquet file at a time: a long text that it stores once may stand in each of them


class MissingFilesError(DataFileError):
    """None of the files that would do are there."""


def find(folder: Path, *names: str) -> Path | None:
    """The first of `names` that is in the folder, as it is or compressed."""
    candidates = (folder / f"{name}{ending}" for name in names for ending in UNPACKERS)
    return next((path for path in candidates if path.is_file()), None)


def require(folder: Path, *names: str) -> Path:
    """As `find`; none of them is an error that says what was looked for where."""
    path = find(folder, *names)
    if path is None:
        raise missing(folder, *names)
    return path


def missing(folder: Path, *names: str) -> MissingFilesError:
    """The error for a folder without any of `names`."""
    wanted = " or ".join(names)
    if not folder.is_dir():
        return MissingFilesError(f"the folder {folder} does not exist; {wanted} was looked for in it.")
    there = sorted(path.name for path in folder.iterdir())
    held = f"it holds {', '.join(there[:8])}{', …' if len(there) > 8 else ''}" if there else "it is empty"
    return MissingFilesError(f"{wanted} (plain, .xz or .gz) was looked for in {folder}, but {held}.")


@contextmanager
def open_binary(path: Path | RemoteFile) -> Iterator[BinaryIO]:
    """The content, decompressed."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    with file, UNPACKERS.get(path.suffix, UNPACKERS[""])(file) as unpacked:
        yield unpacked


def read_bytes(path: Path) -> bytes:
    """The whole content, decompressed."""
    try:
        with open_binary(path) as file:
            return read_limited(file, WHOLE)
    except DAMAGE as error:
        raise DataFileError(f"{path} is truncated or damaged ({error}). Fetch it again.") from error
    except ValueError as error:
        raise (
            error if isinstance(error, DataFileError) else DataFileError(f"{path} cannot be read: {error}.")
        ) from error


def copy(source: IO[bytes], target: IO[bytes], what: str) -> None:
    """Copies block by block: what was packed, or comes from the web, ends at a limit and not when the disk is full."""
    left = UNPACKED
    while block := source.read(MIB):
        left -= len(block)
        if left < 0:
            raise DataFileError(f"{what} is larger than {megabytes(UNPACKED)}, the limit.")
        target.write(block)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers (the first is 1) and lines of a text, with their line ends; only \\n ends a line."""
    number, left = 0, UNPACKED
    try:
        with open_binary(path) as file:
            encoding = sniffed(file)
            for number, line in enumerate(_lines(file, encoding), start=1):
                if len(line) > ROW.size:
                    raise DataFileError(f"line {number} of {path} is longer than {megabytes(ROW.size)}.")
                left -= len(line)
                if left < 0 and path.suffix in PACKED:
                    raise DataFileError(f"{path} is larger than {megabytes(UNPACKED)} unpacked. Unpack it first.")
                yield number, line.decode(encoding if number == 1 else "utf-8") if isinstance(line, bytes) else line
    except DAMAGE as error:
        raise DataFileError(f"{path} is truncated or damaged after line {number} ({error}). Fetch it again.") from error
    except UnicodeDecodeError as error:
        kind = error.encoding.upper()
        raise DataFileError(f"line {number} of {path} is not {kind}: {error.reason}. Save it as UTF-8.") from error
    except ValueError as error:
        raise (
            error if isinstance(error, DataFileError) else DataFileError(f"{path} cannot be read: {error}.")
        ) from error


def sniffed(file: BinaryIO) -> str:
    """The encoding of an open file, by its first bytes, which stay to be read."""
    peek: Callable[[int], bytes] = file.peek  # type: ignore[attr-defined]
    return encoding_of(peek(1024))


def _lines(file: BinaryIO, encoding: str) -> Iterator[bytes | str]:
    """Lines, none of them read much beyond the limit. UTF-8 stays bytes, so that the line that is not can be named."""
    if encoding.startswith("utf-8"):
        return iter(lambda: file.readline(ROW.size + 1), b"")
    text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
    return iter(lambda: text.readline(ROW.size + 1), "")


def plain_lines(path: Path) -> list[str]:
    """The lines without their ends; blank ones at the end of the file do not count."""
    lines = [line.rstrip("\r\n") for _, line in read_lines(path)]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def jsonl_rows(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Line numbers, places and objects of a file with one JSON object a line."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"line {number} of {path}"
        try:
            row = parse_json(line)
        except ValueError as error:
            raise DataFileError(f"{where} is not valid JSON, perhaps it is cut off: {one_line(error)}") from error
        if not isinstance(row, dict):
            raise DataFileError(f"{where} is not a JSON object but {type(row).__name__}.")
        yield number, where, row


class ContentError(DataFileError):
    """What a file or a stream holds cannot be used; whoever knows the name of the file puts it in front."""


class MissingColumnError(DataFileError):
    """A table has not all columns that were asked for: `absent` are those, `there` the ones that it has."""

    def __init__(self, path: Path, absent: Sequence[str], where: str, there: Sequence[str]) -> None:
        super().__init__(f"{path} has no column {', '.join(absent)}; {where} {brief(list(there))}.")
        self.absent, self.there = absent, there


def table_reader(lines: Iterable[str]) -> "csv.DictReader[str]":
    """Rows below a header, separated by commas, or by semicolons or tabs where the header has no comma."""
    csv.field_size_limit(ROW.size)  # a document may be long
    rest = iter(lines)
    header = list(islice(rest, 1))
    return csv.DictReader(chain(header, rest), strict=True, delimiter=delimiter_of("".join(header)))


def delimiter_of(header: str) -> str:
    """The sign between cells."""
    return next((sign for sign in ",;\t" if sign in header), ",")


def twice(header: Iterable[str]) -> str | None:
    """A column that is there more than once: readers keep the last of them and say nothing. Blank ones have no name."""
    return next((name for name, count in Counter(header).items() if count > 1 and name.strip()), None)


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Numbers (the first is 1), places and rows of a CSV file whose header holds at least `columns`."""
    reader = table_reader(line for _, line in read_lines(path))
    try:
        header = list(reader.fieldnames or [])
        if absent := [column for column in columns if column not in header]:
            raise MissingColumnError(path, absent, "its first line has", header)
        if (name := twice(header)) is not None:
            raise DataFileError(f"{path} has the column {brief(name)} twice. Rename one of them.")
        for number, row in enumerate(reader, start=1):
            where = f"the row that ends at line {reader.line_num} of {path}"
            if None in row or None in row.values():
                problem = "more" if None in row else "fewer"
                raise DataFileError(f"{where} has {problem} cells than the {len(header)} of the header.")
            yield number, where, row
    except csv.Error as error:
        raise DataFileError(
            f"{path} is broken at line {reader.reader.line_num}, perhaps it is cut off: {one_line(error)}"
        ) from error


def shards(folder: Path, split: str) -> list[Path]:
    """The Parquet files of a split as the Hugging Face Hub names them; all of their parts must be there.

    <split>-00000-of-00002.parquet and so on, or <split>/0000.parquet and so on in its branch refs/convert/parquet.
    """
    found = sorted(folder.glob(f"{split}-*-of-*.parquet"))
    if found:
        total = found[0].stem.rpartition("-")[2]
        if not total.isdigit() or len(found) != int(total):
            raise DataFileError(f"{folder} holds {len(found)} Parquet files of {split}, of {total}. Add the others.")
        return found
    inside = folder if folder.name == split else folder / split
    found = sorted(inside.glob("[0-9]*.parquet"))
    if [path.stem for path in found] != [f"{number:04}" for number in range(len(found))]:
        names = ", ".join(path.name for path in found[:5])
        raise DataFileError(f"{inside} holds {names}; the parts count up from 0000.parquet. Add the others.")
    return found


def parquet_rows(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Numbers over all files (the first is 1), places and rows of Parquet files that have at least `columns`."""
    rows = ((path, row, values) for path in paths for row, values in enumerate(_table(path, columns), start=1))
    for number, (path, row, values) in enumerate(rows, start=1):
        yield number, f"row {row} of {path}", values


def _table(path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    with open_parquet(path) as file:
        if absent := [column for column in columns if column not in file.schema_arrow.names]:
            raise MissingColumnError(path, absent, "it has", file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=BATCH):
            yield from batch.to_pylist()


@contextmanager
def open_parquet(path: Path | RemoteFile) -> Iterator[Any]:
    """pyarrow's ParquetFile; its errors, here and while it is read, are ours."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError(f"the Parquet file {path.name}", "hub") from error
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            yield file
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        if isinstance(error, SetScoreError):
            raise
        raise DataFileError(f"{path} cannot be read as Parquet, perhaps it is cut off: {one_line(error)}") from error


def field(row: Mapping[str, Any], name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """A field of a row; a missing one or one of another type is an error that names the place."""
    if name not in row:
        raise DataFileError(f"{where} has no field {name!r}; it has {brief(sorted(row))}.")
    if not isinstance(row[name], kind):
        raise DataFileError(f"{where} has {type(row[name]).__name__} in the field {name!r}: {brief(row[name])}.")
    return row[name]


def class_names(indices: Sequence[Any], names: Sequence[str], where: str) -> tuple[str, ...]:
    """Names of label numbers. One outside the inventory keeps its number, for the error that counts them."""
    if wrong := [index for index in indices if isinstance(index, bool) or not isinstance(index, int)]:
        raise DataFileError(f"{where} has the label {brief(wrong[0])}; labels are whole numbers here.")
    return tuple(names[index] if 0 <= index < len(names) else f"number {index}" for index in indices)


def ending(path: Path | RemoteFile) -> str:
    """.csv of data.csv, and of data.csv.gz; .parquet.gz is what it says, which nothing reads."""
    last = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    if last not in PACKED:
        return last
    return inner if inner in LINED else f"{inner}{last}"
