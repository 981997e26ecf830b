"""What a batch reads: files, folders, globs and addresses as one sequence of rows, in an order that never changes."""

import fnmatch
import glob
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath

from setscore.batch.folders import Folder
from setscore.datasets import DOCUMENT_FILES, Columns, InputRow, read_documents
from setscore.datasets.files import ending
from setscore.datasets.remote import RemoteFile, below, file_system, files_below, is_address, located
from setscore.errors import DataFileError, SetScoreError, unknown_name
from setscore.storage import listed

STDIN = "-"
SPOOL = "_input"  # what came from standard input, so that it can be read twice
MAGIC = "*?["
SEEK = 100_000  # rows beyond which opening the files anew is quicker than reading on


@dataclass(frozen=True)
class Input:
    """The rows of several files, one after the other.

    files    paths or addresses, in their order
    names    how each of them is called in ids and messages
    columns  where rows keep what
    suffix   how all of them are laid out; None goes by each one's ending
    limit    how many rows are taken, from the beginning; None for all
    sample   the share of rows that are taken, chosen by `seed` and the row's place alone; None for all
    counts   rows of each file, once they have been counted: so whoever needs the last file need not read the others
    """

    files: tuple[str, ...]
    names: tuple[str, ...]
    columns: Columns = field(default_factory=Columns)
    suffix: str | None = None
    limit: int | None = None
    sample: float | None = None
    seed: int = 0
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.sample is not None and not 0 < self.sample <= 1:
            raise SetScoreError(f"a sample is a share of the rows above 0 and up to 1, got {self.sample}.")
        if self.limit is not None and self.limit < 1:
            raise SetScoreError(f"a limit is a number of rows from 1, got {self.limit}.")

    def rows(self, first: int = 0) -> Iterator[tuple[int, int, InputRow]]:
        """The place among all rows (from 0), the number of the file, and the row; from place `first` on."""
        place = 0
        for number, file in enumerate(self.files):
            skipped = 0
            if number < len(self.counts):
                if place + self.counts[number] <= first:
                    place += self.counts[number]
                    continue
                skipped = max(0, first - place)
            rows = read_documents(file, self.columns, suffix=self.suffix, skip=skipped)
            for at, row in enumerate(rows, start=place + skipped):
                place = at + 1
                if at >= first:
                    yield at, number, self._named(number, row)

    def takes(self, place: int) -> bool:
        """Whether the row at this place is in the sample."""
        if self.sample is None:
            return True
        drawn = hashlib.blake2b(f"{self.seed} {place}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn) < self.sample * 2**64

    def where(self, number: int, row: InputRow) -> str:
        """A row as a message names it."""
        return f"row {row.number}" if len(self.files) == 1 else f"row {row.number} of {self.names[number]}"

    def _named(self, number: int, row: InputRow) -> InputRow:
        """Rows without an id are called by their number, which several files would share."""
        if row.own_id or len(self.files) == 1:
            return row
        name = f"{self.names[number]}:{row.number}"
        return replace(row, id=name, document=None if row.document is None else replace(row.document, id=name))


class Reader:
    """Rows of an input for whoever asks for one stretch after the other: it reads on where it stopped."""

    def __init__(self, source: Input) -> None:
        self._source, self._place, self._rows = source, 0, source.rows()

    def between(self, first: int, stop: int) -> Iterator[tuple[int, InputRow]]:
        """The number of the file and the row, for each row of the sample from place `first` to before `stop`."""
        if not self._place <= first <= self._place + SEEK:
            self._place, self._rows = first, self._source.rows(first)
        for place, number, row in islice(self._rows, max(0, stop - self._place)):
            self._place = place + 1
            if place >= first and self._source.takes(place):
                yield number, row
            if self._place >= stop:
                return


def find_input(
    source: str,
    folder: Folder,
    columns: Columns = Columns(),
    *,
    form: str | None = None,
    limit: int | None = None,
    sample: float | None = None,
    seed: int = 0,
) -> Input:
    """The files behind a path, a folder, a glob, an address or - for standard input, which is kept in `folder`."""
    suffix = None if form is None else f".{form}"
    if suffix is not None and suffix not in DOCUMENT_FILES:
        raise SetScoreError(unknown_name("input format", suffix[1:], [known[1:] for known in DOCUMENT_FILES]))
    if source == STDIN:
        found = {_spooled(folder, suffix or ".txt"): STDIN}
    else:
        found = _remote(source) if is_address(source) else _local(source)
    if not found:
        raise DataFileError(f"{source} holds no file of documents; they end in {', '.join(DOCUMENT_FILES)}.")
    if suffix is None and (others := [file for file in found if ending(located(file)) not in DOCUMENT_FILES]):
        raise DataFileError(
            f"{len(others)} of {len(found)} files in {source} end in none of {', '.join(DOCUMENT_FILES)}:"
            f" {listed(others, 5)}. Name the others with a glob, as in '{source.rstrip('/')}/*.jsonl'."
        )
    return Input(tuple(found), tuple(found.values()), columns, suffix, limit, sample, seed)


def _spooled(folder: Folder, suffix: str) -> str:
    """Standard input as a file: it is read twice, by several processes, and again after an interruption."""
    name = f"{SPOOL}{suffix}"
    with folder.create(name) as file:
        while block := sys.stdin.buffer.read(2**20):
            file.write(block)
    return folder.path(name)


def _local(source: str) -> dict[str, str]:
    """Files, in their order, and how each is called."""
    path = Path(source)
    if path.is_dir():
        inside = sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())
        return {str(path / name): name for name in inside if not _is_hidden(name)}
    if any(sign in source for sign in MAGIC) and not path.exists():
        found = sorted(one for one in glob.glob(source, recursive=True) if Path(one).is_file())
        return {one: os.path.relpath(one, _fixed(source) or ".") for one in found}
    return {source: path.name}


def _remote(source: str) -> dict[str, str]:
    base, sign, given = source.partition("?")
    pattern = any(one in base for one in MAGIC)
    start = f"{_fixed(base) if pattern else base}{sign}{given}"
    system, path = file_system(start)
    (info,) = system.get_file_info([path.rstrip("/")])
    if info.is_file:
        return {source: RemoteFile(source).name}
    inside = [name for name in sorted(files_below(start)) if not _is_hidden(name)]
    found = {below(start, name): name for name in inside}
    return {one: name for one, name in found.items() if not pattern or fnmatch.fnmatch(one.partition("?")[0], base)}


def _fixed(pattern: str) -> str:
    """The folder of a glob above its first sign."""
    first = min(place for sign in MAGIC if (place := pattern.find(sign)) >= 0)
    return pattern[:first].rpartition("/")[0]


def _is_hidden(name: str) -> bool:
    """Files that other programs keep beside data begin so, and so do those of an earlier batch."""
    return any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)
