"""The file of a store: SQLite in WAL mode, which several processes read and append to at a time.

A file that is damaged, or that is no store, is put aside under another name and begun anew: what it held is asked
again, never guessed.
"""

import os
import shutil
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from setscore.errors import DataFileError
from setscore.store.base import StoreWarning
from setscore.store.locks import LockFile, lock_file

FILE, LOCK = "scores.sqlite", "scores.lock"
APPLICATION = 0x53455453  # "SETS", in the header of the file
VERSION = 1
BUSY_SECONDS = 60.0
LARGEST_LOG = 64 << 20  # bytes of the file beside it that are kept when what it held has been moved
LITTLE_ROOM = 1 << 20  # bytes; with less on the disk, whatever cannot be written is for want of room
SCHEMA = """
CREATE TABLE answers (key BLOB PRIMARY KEY, answer BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE claims (key BLOB PRIMARY KEY, holder INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tables (key TEXT PRIMARY KEY, about TEXT NOT NULL, data BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, experiment TEXT NOT NULL, method TEXT NOT NULL, part TEXT NOT NULL, key TEXT NOT NULL
);
"""

T = TypeVar("T")


class DamagedError(Exception):
    """The file is no store, or not a whole one."""


class StoreFile:
    """The file in `folder`. It opens itself anew after a fork, and where it was replaced."""

    def __init__(self, folder: Path) -> None:
        self.shown = folder  # as it was given, for messages
        self.folder = Path(os.path.abspath(folder))
        self.path = self.folder / FILE
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int, int] | None = None  # by which process, and which file
        self._locks: LockFile | None = None
        self._lock = threading.RLock()

    def close(self) -> None:
        """Gives the file back; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._opened is not None and self._opened[0] == os.getpid():
                self._connection.close()
            self._connection = self._opened = None

    def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """One piece of work on the file; one that turns out to be damaged is put aside, and the work done again."""
        with self._lock:
            try:
                for _ in range(2):
                    try:
                        return work(self._database())
                    except (sqlite3.DatabaseError, DamagedError) as error:
                        if _is_damage(error):
                            self._put_aside()
                        elif not self._was_replaced():
                            raise
                return work(self._database())
            except (sqlite3.Error, DamagedError, OSError) as error:
                raise self._explained(error) from error

    def locks(self) -> LockFile:
        """Who is at what."""
        return lock_file(self.folder / LOCK)

    def leave(self, keys: Iterable[bytes]) -> None:
        """No thread of this process is at these any more."""
        if self._locks is not None:
            self._locks.held.difference_update(keys)

    def _database(self) -> sqlite3.Connection:
        if self._connection is None or self._opened != self._place():
            self._open()
        assert self._connection is not None
        return self._connection

    def _was_replaced(self) -> bool:
        """Another process may put the file aside between a look at it and the work on it."""
        return self._opened is not None and self._opened != self._place()

    def _place(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return os.getpid(), found.st_dev, found.st_ino

    def _open(self) -> None:
        if self._connection is not None and self._opened is not None and self._opened[0] != os.getpid():
            _INHERITED.append(self._connection)  # a parent's: not even closed here
        self._connection = None
        self.folder.mkdir(parents=True, exist_ok=True)
        self._locks = self.locks()
        with self._locks.opening():
            _check_whole(self.path)
            db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                _prepare(db)
            except BaseException:
                db.close()
                raise
            self._connection, self._opened = db, self._place()

    def _put_aside(self) -> None:
        """Renames the file, unless another process has done so by now, and says so."""
        with self.locks().opening():
            replaced = self._was_replaced() if self._connection is not None else _is_store(self.path)
            self.close()
            if replaced:
                return
            number = 1
            while (aside := self.folder / f"{FILE}.damaged-{number}").exists():
                number += 1
            for end in ("", "-wal", "-shm"):
                if (part := Path(f"{self.path}{end}")).exists():
                    part.rename(f"{aside}{end}")
        message = (
            f"{self.shown / FILE} was damaged or no store of scores: it is {aside.name} now, and a new one is begun."
        )
        warnings.warn(StoreWarning(message), stacklevel=4)

    def _explained(self, error: Exception) -> DataFileError:
        """What went wrong, in one line."""
        file = self.shown / FILE
        if isinstance(error, OSError):
            return DataFileError(f"scores cannot be stored in {self.shown}: {error.strerror or error}.")
        if isinstance(error, _OtherLayoutError):
            return DataFileError(
                f"{file} has the layout {error}, this version of SetScore reads {VERSION}. Update SetScore, or give"
                " another folder."
            )
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and self._is_full()):
            return DataFileError(f"{file}: the disk is full. Make room and run it again; what is stored is kept.")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return DataFileError(f"scores cannot be stored in {self.shown}: {error}.")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return DataFileError(f"{file} has been locked by another process for {BUSY_SECONDS:.0f} seconds.")
        return DataFileError(f"{file} cannot be used: {str(error) or 'it is damaged'}.")

    def _is_full(self) -> bool:
        return shutil.disk_usage(self.folder).free < LITTLE_ROOM


class _OtherLayoutError(sqlite3.Error):
    """A layout that this version does not know."""


_INHERITED: list[sqlite3.Connection] = []


def _prepare(db: sqlite3.Connection) -> None:
    """The settings of a connection, and the tables of a file that is new."""
    _check(db)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
    db.execute("PRAGMA synchronous = NORMAL")  # a kill loses nothing; a power cut the last answers, never the file
    if _is_new(db):
        with transaction(db):
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {VERSION}")


def _check(db: sqlite3.Connection) -> None:
    if _is_new(db):
        return
    if _pragma(db, "application_id") != APPLICATION:
        raise DamagedError
    if (version := _pragma(db, "user_version")) != VERSION:
        raise _OtherLayoutError(str(version))


def _check_whole(path: Path) -> None:
    """A file that was cut is found out when it is opened, not when an answer that is gone is looked for.

    Its header says how many pages it has. While pages wait in the file beside it, both may differ for good reasons.
    """
    try:
        with path.open("rb") as file:
            header = file.read(100)
        waiting = Path(f"{path}-wal")
        if len(header) < 100 or (waiting.exists() and waiting.stat().st_size):
            return
        page = int.from_bytes(header[16:18]) or 1
        pages, counts = int.from_bytes(header[28:32]), header[24:28] == header[92:96]
        if counts and path.stat().st_size < pages * (65536 if page == 1 else page):
            raise DamagedError
    except FileNotFoundError:
        return


def live_bytes(db: sqlite3.Connection) -> int:
    """What the file holds; pages that are free again are used before it grows."""
    return (_pragma(db, "page_count") - _pragma(db, "freelist_count")) * _pragma(db, "page_size")


def _is_new(db: sqlite3.Connection) -> bool:
    (objects,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return objects == 0 and _pragma(db, "application_id") == 0


def _pragma(db: sqlite3.Connection, name: str) -> int:
    (value,) = db.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _is_store(path: Path) -> bool:
    """Whether a file that was found damaged has been replaced by now."""
    try:
        _check_whole(path)
        db = sqlite3.connect(path, timeout=BUSY_SECONDS)
        try:
            _check(db)
        finally:
            db.close()
    except (sqlite3.DatabaseError, DamagedError) as error:
        return not _is_damage(error)
    return True


def _is_damage(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, DamagedError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
