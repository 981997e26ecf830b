"""One writer at a time. Who holds the lock of a folder is told to whoever comes second.

On this machine the system holds the lock and gives it back when the process ends, however it ends. In object storage
nobody watches over processes: there the lock is a note that its holder renews, and an old one is taken over.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from setscore.batch.folders import Folder, LocalFolder, told
from setscore.errors import DataFileError, SetScoreError
from setscore.storage import parse_json, read_limited

try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "_lock"
RENEWED = 60.0  # seconds between two renewals of a note,
EXPIRED = 600.0  # and after which nobody is behind it


class LockedError(SetScoreError):
    """Another process writes this folder."""


@dataclass(frozen=True)
class Holder:
    """Who has the lock."""

    host: str
    process: int
    since: str
    renewed: float

    @classmethod
    def this(cls, since: str) -> "Holder":
        return cls(socket.gethostname(), os.getpid(), since, time.time())

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


def locked(folder: Folder) -> AbstractContextManager[None]:
    """Holds the lock of a folder that is there."""
    return _system_lock(folder) if isinstance(folder, LocalFolder) else _note(folder)


@contextmanager
def _system_lock(folder: LocalFolder) -> Iterator[None]:
    if fcntl is None:  # pragma: no cover
        raise DataFileError("setscore batch needs file locks that this system does not have.")
    path = Path(folder.path(LOCK))
    with told(str(path)):
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refused(folder, _read(os.pread(number, 4096, 0))) from None
        with told(str(path)):
            text = _written(Holder.this(_now()))
            os.ftruncate(number, 0)
            os.pwrite(number, text, 0)
        yield
    finally:
        os.close(number)  # which gives the lock back; the file stays, or a third process could lock another one


@contextmanager
def _note(folder: Folder) -> Iterator[None]:
    me = Holder.this(_now())
    if (other := _holder(folder)) is not None and not _gone(other):
        raise _refused(folder, other)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWED):
            with suppress(SetScoreError, OSError):  # the next one may go well
                _put(folder, Holder.this(me.since))

    _put(folder, me)
    if (other := _holder(folder)) != me:  # two began at once: the last one has it
        raise _refused(folder, other)
    keeper = threading.Thread(target=renew, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
        with suppress(SetScoreError, OSError):
            folder.remove(LOCK)


def _holder(folder: Folder) -> Holder | None:
    try:
        with folder.open(LOCK) as file:
            return _read(read_limited(file))
    except FileNotFoundError:
        return None


def _gone(other: Holder) -> bool:
    """A note that was not renewed, or of a process of this machine that is no more."""
    if time.time() - other.renewed > EXPIRED:
        return True
    if other.host != socket.gethostname():
        return False
    try:
        os.kill(other.process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _put(folder: Folder, holder: Holder) -> None:
    with folder.create(LOCK) as file:
        file.write(_written(holder))


def _written(holder: Holder) -> bytes:
    return json.dumps(asdict(holder)).encode()


def _read(data: bytes) -> Holder | None:
    """Whose note this is; None for one that is not whole."""
    try:
        return Holder(**parse_json(data.decode()))
    except (ValueError, TypeError):
        return None


def _refused(folder: Folder, holder: Holder | None) -> LockedError:
    who = "another process" if holder is None else str(holder)
    return LockedError(f"{folder.address} is being written by {who}. Wait for it or end it; what is done is kept.")


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z")
