"""A store in a folder: what its file holds, and what is done with it.

Each operation is one transaction, so a process that is killed leaves whole answers or none.
"""

import json
import os
import secrets
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from setscore.errors import SetScoreError
from setscore.records import FloatArray
from setscore.storage import MIB, megabytes
from setscore.store.base import Entry, check_finite
from setscore.store.file import FILE, DamagedError, StoreFile, live_bytes, transaction

__all__ = ["FILE", "FolderStore"]

CHUNK = 500  # keys in one statement
MOST, LEAST = 16 * 1024 * MIB, MIB  # bytes
STRETCHES = 256  # into which keys fall by their first byte
ROOM = 32  # a full store makes room for one part in so many


class FolderStore:
    """The store in `folder`, for as many processes as use it.

    most  bytes that it may hold; with more, some of the answers are forgotten, chosen by chance. A sweep asks the same
          questions in the same order over and over: a store that forgot what was used longest ago would have forgotten
          each of them just before it is asked again. Finished tables are results, and stay.
    """

    def __init__(self, folder: Path, most: int = MOST) -> None:
        if most < LEAST:
            raise SetScoreError(f"a store holds at least {megabytes(LEAST)}, got {megabytes(most)}.")
        self._file, self.most = StoreFile(folder), most

    _stores: ClassVar[dict[Path, "FolderStore"]] = {}  # of this process, so that a folder is opened once

    @classmethod
    def at(cls, folder: Path, most: int | None = None) -> "FolderStore":
        """The one store of this process for a folder; without `most` it keeps the bound that it has."""
        store = cls._stores.setdefault(Path(os.path.abspath(folder)), cls(folder, most or MOST))
        store.most = most or store.most
        return store

    def __deepcopy__(self, memo: dict[int, object]) -> "FolderStore":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FolderStore, (self._file.folder, self.most)

    def __str__(self) -> str:
        return str(self._file.shown)

    def __repr__(self) -> str:
        return f"FolderStore({str(self)!r})"

    def close(self) -> None:
        """Gives the file back; the next use opens it again."""
        self._file.close()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        def read(db: sqlite3.Connection) -> dict[bytes, FloatArray]:
            rows = _rows(db, "SELECT key, answer FROM answers WHERE key IN", keys)
            return {key: _unpacked(key, answer) for key, answer in rows}

        return self._file.do(read)

    def put(self, answers: Mapping[bytes, FloatArray]) -> None:
        check_finite(answers)
        packed = [(key, _packed(key, answer)) for key, answer in answers.items()]

        def write(db: sqlite3.Connection) -> None:
            with transaction(db):
                db.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", packed)
                _give_up(db, list(answers))
                _forget(db, self.most)

        self._file.do(write)
        self._file.leave(answers)

    def claim(self, keys: Sequence[bytes], most: int) -> list[bytes]:
        def take(db: sqlite3.Connection) -> list[bytes]:
            locks = self._file.locks()
            with transaction(db):
                there = {key for (key,) in _rows(db, "SELECT key FROM answers WHERE key IN", keys)}
                claims = dict(_rows(db, "SELECT key, holder FROM claims WHERE key IN", keys))
                gone = {holder for holder in set(claims.values()) if not locks.alive(holder)}
                taken = {key for key, holder in claims.items() if holder not in gone and locks.is_at(holder, key)}
                free = [key for key in keys if key not in there and key not in taken][:most]
                db.executemany("DELETE FROM claims WHERE holder = ?", [(holder,) for holder in gone])
                db.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?)", [(key, locks.holder) for key in free])
            locks.held.update(free)
            return free

        return self._file.do(take)

    def release(self, keys: Sequence[bytes]) -> None:
        self._file.leave(keys)

        def write(db: sqlite3.Connection) -> None:
            with transaction(db):
                _give_up(db, keys)

        self._file.do(write)

    def put_table(self, entry: Entry, data: bytes) -> None:
        place = (entry.experiment, entry.method, entry.part)
        about = json.dumps(dict(entry.about))
        row = (entry.key, about, data, zlib.crc32(about.encode() + data))

        def write(db: sqlite3.Connection) -> None:
            with transaction(db):
                db.execute("INSERT OR IGNORE INTO tables VALUES (?, ?, ?, ?)", row)
                newest = db.execute(
                    "SELECT key FROM entries WHERE experiment = ? AND method = ? AND part = ? ORDER BY number DESC",
                    place,
                ).fetchone()
                if newest != (entry.key,):
                    db.execute(
                        "INSERT INTO entries (experiment, method, part, key) VALUES (?, ?, ?, ?)", (*place, entry.key)
                    )

        self._file.do(write)

    def table(self, key: str) -> tuple[Mapping[str, Any], bytes] | None:
        def read(db: sqlite3.Connection) -> tuple[Mapping[str, Any], bytes] | None:
            row = db.execute("SELECT about, data, sum FROM tables WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            about, data, checksum = row
            if zlib.crc32(about.encode() + data) != checksum:
                raise DamagedError
            return json.loads(about), data

        return self._file.do(read)

    def entries(self) -> list[Entry]:
        def read(db: sqlite3.Connection) -> list[Entry]:
            rows = db.execute(
                "SELECT experiment, method, part, entries.key, about FROM entries JOIN tables USING (key)"
                " WHERE number IN (SELECT max(number) FROM entries GROUP BY experiment, method, part) ORDER BY number"
            )
            try:
                return [Entry(a, b, c, key, json.loads(about)) for a, b, c, key, about in rows]
            except ValueError as error:
                raise DamagedError from error

        return self._file.do(read)


def _rows(db: sqlite3.Connection, select: str, keys: Sequence[bytes]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(keys), CHUNK):
        chunk = list(keys[start : start + CHUNK])
        rows += db.execute(f"{select} ({','.join('?' * len(chunk))})", chunk)
    return rows


def _give_up(db: sqlite3.Connection, keys: Sequence[bytes]) -> None:
    db.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in keys])


def _forget(db: sqlite3.Connection, most: int) -> None:
    """Removes answers until there is some room again. Keys are digests, so a stretch of them is drawn by chance."""
    if live_bytes(db) <= most:
        return
    start = secrets.randbelow(STRETCHES)
    for number in range(STRETCHES):
        if live_bytes(db) <= most - most // ROOM:
            return
        stretch = (start + number) % STRETCHES
        first, last = bytes([stretch]), bytes([stretch]) + b"\xff" * 32
        db.execute("DELETE FROM answers WHERE key BETWEEN ? AND ?", (first, last))


def _packed(key: bytes, answer: FloatArray) -> bytes:
    """Numbers with a checksum over them and their key: a file whose bytes were changed never gives a wrong answer."""
    data = np.ascontiguousarray(answer, dtype="<f8").tobytes()
    return zlib.crc32(key + data).to_bytes(4, "little") + data


def _unpacked(key: bytes, packed: bytes) -> FloatArray:
    data = packed[4:]
    if zlib.crc32(key + data).to_bytes(4, "little") != packed[:4] or len(data) % 8:
        raise DamagedError
    return np.frombuffer(data, dtype="<f8").astype(np.float64)
