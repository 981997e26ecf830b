"""Files in object storage and on other file systems, by their address: s3://, gs://, abfs://, hdfs://, file://.

They are read through pyarrow's file systems, which take credentials and endpoints from where each of them usually does.
"""

import importlib
import io
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from setscore.errors import DataFileError, MissingExtraError
from setscore.storage import one_line

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(text: str) -> bool:
    """Whether a text names a file system, as in s3://bucket/folder; a path of this machine does not."""
    return bool(_ADDRESS.match(text))


def located(text: str | Path) -> "Path | RemoteFile":
    """A file, wherever it is."""
    return RemoteFile(text) if isinstance(text, str) and is_address(text) else Path(text)


@dataclass(frozen=True)
class RemoteFile:
    """A file at an address: as much of a Path as readers of files need."""

    address: str

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        return self._path.name

    @property
    def stem(self) -> str:
        return self._path.stem

    @property
    def suffix(self) -> str:
        return self._path.suffix

    @property
    def _path(self) -> PurePosixPath:
        return PurePosixPath(self.address.partition("?")[0])

    def open(self, mode: str = "rb") -> BinaryIO:  # noqa: ARG002 -- it is only ever read
        """Its bytes."""
        system, path = file_system(self.address)
        try:
            return io.BufferedReader(system.open_input_file(path), 2**20)
        except OSError as error:
            raise DataFileError(f"the file {self.address} cannot be read: {one_line(error)}") from error


def below(address: str, name: str) -> str:
    """The address of what is in a folder. Options may follow an address, as in ?endpoint_override=localhost:9000."""
    base, sign, given = address.partition("?")
    return f"{base.rstrip('/')}/{name}{sign}{given}" if name else address


def files_below(address: str, *, deep: bool = True) -> list[str]:
    """The files of a folder, and with `deep` of all below it, by their paths from there; none where it is not."""
    system, path = file_system(address)
    path = path.rstrip("/")
    selector = importlib.import_module("pyarrow.fs").FileSelector(path, recursive=deep, allow_not_found=True)
    return [one.path[len(path) :].lstrip("/") for one in system.get_file_info(selector) if one.is_file]


def file_system(address: str) -> tuple[Any, str]:
    """pyarrow's file system for an address, and the path in it."""
    try:
        fs = importlib.import_module("pyarrow.fs")
    except ImportError as error:
        raise MissingExtraError(f"the address {address}", "batch") from error
    try:
        system, path = fs.FileSystem.from_uri(address)
    except (OSError, ValueError, NotImplementedError) as error:
        raise DataFileError(f"{address} is no address that pyarrow knows: {one_line(error)}") from error
    return system, path
