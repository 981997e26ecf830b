"""A dataset's ZIP file from the web, for the one that is not on the Hugging Face Hub."""

import os
import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from setscore.datasets.files import MissingFilesError
from setscore.datasets.source import Archive

TIMEOUT = 60  # seconds without a byte


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
                shutil.copyfileobj(answer, file)
            _unpack(packed, archive, Path(scratch), folder)
    except (OSError, HTTPException, zipfile.BadZipFile, zlib.error) as error:
        raise MissingFilesError(f"{archive.title()} cannot be fetched: {error}.") from error
    return folder


def _unpack(packed: Path, archive: Archive, scratch: Path, folder: Path) -> None:
    """The wanted files alone, by their last name: what a path in the archive says decides nothing."""
    with zipfile.ZipFile(packed) as content:
        inside = {PurePosixPath(name).name: name for name in content.namelist()}
        if lost := [file for file in archive.files if file not in inside]:
            raise MissingFilesError(f"{archive.title()} has no {', '.join(lost)}; it holds {', '.join(inside)[:200]}.")
        for file in archive.files:
            with content.open(inside[file]) as source, (scratch / file).open("wb") as target:
                shutil.copyfileobj(source, target)
            (scratch / file).replace(folder / file)
