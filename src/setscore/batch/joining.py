"""Shards joined into one file, a piece at a time."""

import hashlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from setscore.batch.folders import Folder, Seal, Sealing
from setscore.batch.records import Receipt

PIECE = 2**20  # bytes


def join(folder: Folder, names: Sequence[str], into: Folder, name: str, form: str) -> Seal:
    """Writes the files `names`, in this order, as one."""
    with into.create(name) as file:
        JOINERS[form](folder, names, file)
    return file.seal


def seal_of_all(receipts: Mapping[int, Receipt]) -> Seal:
    """The seal of a folder: of its files' seals, in their order."""
    seals = [receipts[number].seal for number in sorted(receipts)]
    digest = hashlib.sha256("".join(seal.sha256 for seal in seals).encode())
    return Seal(sum(seal.size for seal in seals), digest.hexdigest())


def _lines(folder: Folder, names: Sequence[str], file: Sealing) -> None:
    for name in names:
        with folder.open(name) as part:
            _copy(part, file)


def _csv(folder: Folder, names: Sequence[str], file: Sealing) -> None:
    """The header of the first one stands for all: label names may hold a line end, so it is cut by its length."""
    header = 0
    for number, name in enumerate(names):
        with folder.open(name) as part:
            if number == 0:
                header = len(_header(folder, name))
            else:
                part.seek(header)
            _copy(part, file)


def _header(folder: Folder, name: str) -> bytes:
    """Up to the first line end that is not inside of quotes."""
    with folder.open(name) as part:
        header = b""
        while line := part.readline():
            header += line
            if header.count(b'"') % 2 == 0:
                break
        return header


def _parquet(folder: Folder, names: Sequence[str], file: Sealing) -> None:
    parquet = importlib.import_module("pyarrow.parquet")
    writer = None
    for name in names:
        with folder.open(name) as opened, parquet.ParquetFile(opened) as part:
            if writer is None:
                writer = parquet.ParquetWriter(file, part.schema_arrow, compression="zstd")
            for group in range(part.num_row_groups):
                writer.write_table(part.read_row_group(group))
    if writer is not None:
        writer.close()


def _copy(source: BinaryIO, target: Sealing) -> None:
    while piece := source.read(PIECE):
        target.write(piece)


JOINERS: dict[str, Callable[[Folder, Sequence[str], Sealing], None]] = {
    "parquet": _parquet,
    "jsonl": _lines,
    "csv": _csv,
}
