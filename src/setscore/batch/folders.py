"""The folder that a batch writes: every file whole or not at all, on this machine or in object storage.

Here a file is written under another name, forced to the disk and renamed. In object storage an object appears when its
upload ends. Either way a shard counts only when its receipt is there, which is written after it.
"""

import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from setscore.datasets.remote import below, file_system, files_below, is_address
from setscore.errors import DataFileError
from setscore.storage import one_line

TEMPORARY = ".tmp"


@dataclass(frozen=True)
class Seal:
    """What tells a file from any other, and from half of itself."""

    size: int
    sha256: str


class Sealing(io.RawIOBase):
    """A file that is written once, from its beginning to its end; `seal` is what has been written."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name, self._digest, self._size = file, name, hashlib.sha256(), 0
        self._dropped = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        if self._dropped:
            return len(view)
        self._digest.update(view)
        with told(self._name):
            self._file.write(view)
        self._size += len(view)
        return len(view)

    def tell(self) -> int:
        return self._size

    def drop(self) -> None:
        """Nothing more is written. A writer of Parquet that was left half done would write its end when it is freed."""
        self._dropped = True

    @property
    def seal(self) -> Seal:
        return Seal(self._size, self._digest.hexdigest())


class Folder(Protocol):
    """What a batch does with its folder. Names may hold one folder, as in "_shards/00000.json"."""

    @property
    def address(self) -> str: ...
    def make(self) -> None: ...
    def path(self, name: str) -> str: ...
    def create(self, name: str) -> AbstractContextManager[Sealing]: ...
    def open(self, name: str) -> BinaryIO: ...
    def names(self, inside: str = "") -> list[str]: ...
    def size(self, name: str) -> int | None: ...
    def remove(self, name: str) -> None: ...


def folder_at(address: str) -> Folder:
    """The folder at a path or an address; it need not be there yet."""
    return RemoteFolder(address) if is_address(address) else LocalFolder(address)


def parted(file: str) -> tuple[Folder, str]:
    """The folder of a file, and its name in it."""
    base, sign, given = file.partition("?") if is_address(file) else (file, "", "")
    head, slash, name = base.rpartition("/")
    return folder_at(f"{head or slash or '.'}{sign}{given}"), name


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine, or one that several machines share."""

    address: str

    def make(self) -> None:
        with told(self.address):
            Path(self.address).mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> str:
        return os.path.join(self.address, name)

    @contextmanager
    def create(self, name: str) -> Iterator[Sealing]:
        """A file that is there, whole and on the disk, when the block ends well, and is not if it does not."""
        target = Path(self.path(name))
        # What begins with a dot is no data for whoever reads the folder meanwhile.
        temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}{TEMPORARY}"
        try:
            with told(str(target)):
                target.parent.mkdir(parents=True, exist_ok=True)
                file = temporary.open("xb")
            with file, _sealing(file, str(target)) as sealing:
                yield sealing
                with told(str(target)):
                    file.flush()
                    os.fsync(file.fileno())
            with told(str(target)):
                os.replace(temporary, target)
                _sync_folder(target.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def open(self, name: str) -> BinaryIO:
        with told(self.path(name), "read"):
            return Path(self.path(name)).open("rb")

    def names(self, inside: str = "") -> list[str]:
        root = Path(self.path(inside))
        return sorted(path.name for path in root.iterdir() if path.is_file()) if root.is_dir() else []

    def size(self, name: str) -> int | None:
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), told(self.path(name), "removed"):
            os.unlink(self.path(name))


@dataclass(frozen=True)
class RemoteFolder:
    """A folder of a file system that pyarrow knows."""

    address: str

    def make(self) -> None:
        system, path = file_system(self.address)
        with told(self.address):
            system.create_dir(path, recursive=True)

    def path(self, name: str) -> str:
        return below(self.address, name)

    @contextmanager
    def create(self, name: str) -> Iterator[Sealing]:
        """An object; what an upload that went wrong may have left is removed."""
        system, path = file_system(self.path(name))
        try:
            with told(self.path(name)):
                system.create_dir(path.rpartition("/")[0], recursive=True)
                file = system.open_output_stream(path)
            with file, _sealing(file, self.path(name)) as sealing:
                yield sealing
        except BaseException:
            with suppress(OSError):
                system.delete_file(path)
            raise

    def open(self, name: str) -> BinaryIO:
        system, path = file_system(self.path(name))
        with told(self.path(name), "read"):
            return io.BufferedReader(system.open_input_file(path), 2**20)

    def names(self, inside: str = "") -> list[str]:
        with told(self.path(inside), "read"):
            return sorted(files_below(self.path(inside), deep=False))

    def size(self, name: str) -> int | None:
        system, path = file_system(self.path(name))
        with told(self.path(name), "read"):
            (found,) = system.get_file_info([path])
        return found.size if found.is_file else None

    def remove(self, name: str) -> None:
        system, path = file_system(self.path(name))
        with suppress(FileNotFoundError), told(self.path(name), "removed"):
            system.delete_file(path)


@contextmanager
def _sealing(file: BinaryIO, name: str) -> Iterator[Sealing]:
    sealing = Sealing(file, name)
    try:
        yield sealing
    except BaseException:
        sealing.drop()
        raise


def seal_of(folder: Folder, name: str) -> Seal:
    """The seal of a file that is there."""
    digest, size = hashlib.sha256(), 0
    with folder.open(name) as file:
        while block := file.read(2**20):
            digest.update(block)
            size += len(block)
    return Seal(size, digest.hexdigest())


def _sync_folder(path: Path) -> None:
    """Forces a rename to the disk; a file system that cannot do that says so, and has its own ways."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextmanager
def told(what: str, done: str = "written") -> Iterator[None]:
    """The system's errors in one line, but for a file that is not there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataFileError(f"{what} cannot be {done}: {error.strerror or one_line(error)}.") from error
