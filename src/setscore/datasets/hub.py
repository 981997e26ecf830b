"""Files of public datasets from their homes, mostly on the Hugging Face Hub: data files only, no code is run."""

import importlib
from pathlib import Path

from setscore.datasets import archive
from setscore.datasets.dataset import Dataset
from setscore.datasets.files import MissingFilesError
from setscore.datasets.source import Archive, Home, Source
from setscore.errors import DataFileError, MissingExtraError


def from_home(source: Source, split: str) -> Dataset:
    """A split from the first home that has it; what was wrong with the homes before it becomes a note."""
    if not source.homes:
        raise MissingFilesError(f"{source.name} {split}: there is no home to fetch its files from. {by_hand(source)}")
    failures: list[str] = []
    for home in source.homes:
        try:
            folder = archive.fetch(source.name, home) if isinstance(home, Archive) else fetch(source, home, split)
            dataset = source.read(folder, split)
        except DataFileError as error:
            failures.append(str(error))
            continue
        instead = [f"{failure} {home.title(split)} was read instead." for failure in failures]
        return dataset.noting(*instead)
    raise MissingFilesError(f"{' '.join(failures)} {by_hand(source)}")


def fetch(source: Source, home: Home, split: str) -> Path:
    """The folder that holds the files of a split, fetched or from the cache.

    huggingface_hub decides: its cache (HF_HOME), offline mode (HF_HUB_OFFLINE) and endpoint (HF_ENDPOINT) hold. It
    lists the files of the repository and takes those that match, so no number of parts is guessed.
    """
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise MissingExtraError(f"{source.title} from the Hugging Face Hub", "hub") from error
    pattern = home.files.replace("{split}", split)
    try:
        root = hub.snapshot_download(
            home.repository, repo_type="dataset", revision=home.revision, allow_patterns=[pattern]
        )
    except Exception as error:  # of many kinds, by version; the remedy is one
        raise MissingFilesError(f"{home.title(split)} cannot be fetched: {_first_line(error)}") from error
    found = sorted(Path(root).glob(pattern))
    if not found:  # offline, the cache may hold the repository without these files
        raise MissingFilesError(f"{home.title(split)} is neither there nor in the cache.")
    return found[0].parent


def by_hand(source: Source) -> str:
    """How to get on without the Hub."""
    how = "data_dir=DATA (--data-dir DATA on the command line)"
    return f"Get {source.obtain}. Put the files into DATA/{source.folder}/ and pass {how}."


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".") + "."
