"""Who is alive: each process holds the lock of a byte of its own, and the lock goes when the process does.

However a process ends, also by SIGKILL, the system gives its locks back. So a claim that names the byte of a process
which is gone is known to be nobody's.
"""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setscore.errors import DataFileError

try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows
    fcntl = None  # type: ignore[assignment]

OPENING = 0  # the byte of whoever makes or mends the store


class LockFile:
    """A file whose bytes are locked, never written. `holder` is the byte of this process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._opening = threading.RLock()
        self.holder = 1 + secrets.randbits(61)
        self.held: set[bytes] = set()  # what threads of this process are finding out
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, self.holder)

    def alive(self, holder: int) -> bool:
        """Whether the process that has this byte is still there."""
        if holder == self.holder:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, holder)
        except OSError:
            return True
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, holder)
        return False

    def is_at(self, holder: int, key: bytes) -> bool:
        """Whether a claim of a living process stands: one of our own that none of our threads is at was left behind
        by a write that failed."""
        return holder != self.holder or key in self.held

    @contextmanager
    def opening(self) -> Iterator[None]:
        """One process and one thread at a time."""
        with self._opening:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, OPENING)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, OPENING)


# A process must open such a file once and never close it: closing any descriptor of a file gives back all locks that
# the process has on it. A child that was forked has none of its parent's locks, so it opens the file anew.
_OPENED: dict[tuple[int, int, int], LockFile] = {}
_GUARD = threading.Lock()


def lock_file(path: Path) -> LockFile:
    """The lock file at `path`, made where it is not there; the same object for the whole process."""
    if fcntl is None:  # pragma: no cover
        raise DataFileError("a store in a folder needs file locks that this system does not have; use MemoryStore().")
    with _GUARD:
        place = _place(path)
        if place is None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
            place = _place(path)
        assert place is not None  # it was just made
        if place not in _OPENED:
            _OPENED[place] = LockFile(path)
        return _OPENED[place]


def _place(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return os.getpid(), found.st_dev, found.st_ino
