"""Files of public datasets from the Hugging Face Hub: data files only, no code is run."""

import importlib
from pathlib import Path

from setscore.datasets.files import MissingFilesError
from setscore.datasets.source import Source
from setscore.errors import MissingExtraError


def fetch(source: Source, split: str) -> Path:
    """The folder that holds the files of a split, fetched or from the cache.

    huggingface_hub decides: its cache (HF_HOME), offline mode (HF_HUB_OFFLINE) and endpoint (HF_ENDPOINT) hold.
    """
    if source.home is None:
        raise MissingFilesError(f"{source.title} has no home on the Hugging Face Hub. {by_hand(source)}")
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise MissingExtraError(f"{source.title} from the Hugging Face Hub", "hub") from error
    pattern = source.home.files.replace("{split}", split)
    what = f"{pattern} of {source.home.repository}"
    try:
        root = hub.snapshot_download(
            source.home.repository, repo_type="dataset", revision=source.home.revision, allow_patterns=[pattern]
        )
    except Exception as error:  # of many kinds, by version; the remedy is one
        raise MissingFilesError(f"{what} cannot be fetched: {_first_line(error)} {by_hand(source)}") from error
    found = sorted(Path(root).glob(pattern))
    if not found:  # offline, the cache may hold the repository without these files
        raise MissingFilesError(f"{what} is neither there nor in the cache. {by_hand(source)}")
    return found[0].parent


def by_hand(source: Source) -> str:
    """How to get on without the Hub."""
    return f"Get {source.obtain}. Put the files into DATA/{source.folder}/ and pass data_dir=DATA."


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".") + "."
