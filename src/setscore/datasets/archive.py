"""A dataset's ZIP file from the web, for the one that is not on the Hugging Face Hub."""

import os
import tempfile
import urllib.request
import zipfile
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from setscore.datasets.files import DAMAGE, MissingFilesError, copy
from setscore.datasets.source import Archive
from setscore.storage import one_line

TIMEOUT = 60  # seconds without a byte
ENCRYPTED = 1  # the bit of a ZIP entry's flags


def cache() -> Path:
    """Where unpacked files are kept: SETSCORE_CACHE, else below XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get("SETSCORE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setscore"


def fetch(name: str, archive: Archive) -> Path:
    """The folder with the archive's files, fetched or from the cache; a file is either whole or not there."""
    folder = cache() / "datasets" / name
    if all((folder / file).is_file() for file in archive.files):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            packed = Path(scratch) / "packed.zip"
            with urllib.request.urlopen(archive.url, timeout=TIMEOUT) as answer, packed.open("wb") as file:
                copy(answer, file, archive.title())
            _unpack(packed, archive, Path(scratch), folder)
    except (OSError, HTTPException, zipfile.BadZipFile, NotImplementedError, *DAMAGE) as error:
        raise MissingFilesError(f"{archive.title()} cannot be fetched: {one_line(error)}.") from error
    return folder


def _unpack(packed: Path, archive: Archive, scratch: Path, folder: Path) -> None:
    """The wanted files alone, by their last name: what a path in the archive says decides nothing."""
    with zipfile.ZipFile(packed) as content:
        inside = {PurePosixPath(member.filename).name: member for member in content.infolist()}
        if lost := [file for file in archive.files if file not in inside]:
            raise MissingFilesError(f"{archive.title()} has no {', '.join(lost)}; it holds {', '.join(inside)[:200]}.")
        if locked := [file for file in archive.files if inside[file].flag_bits & ENCRYPTED]:
            raise MissingFilesError(f"{archive.title()} needs a password for {', '.join(locked)}.")
        for file in archive.files:
            with content.open(inside[file]) as source, (scratch / file).open("wb") as target:
                copy(source, target, f"{file} of {archive.title()}")
            (scratch / file).replace(folder / file)
