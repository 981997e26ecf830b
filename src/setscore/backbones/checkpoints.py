"""Where a checkpoint's files are: a local folder, or the cache of the Hugging Face Hub, filled when needed."""

import importlib
from pathlib import Path

from setscore.backbones.base import BackboneSpec
from setscore.errors import BackboneError, MissingExtraError

SETTINGS = ["*.json", "merges.txt", "vocab.txt", "*.model"]
WEIGHTS = ["*.safetensors"]
PICKLES = ["pytorch_model*.bin"]
CODE = ["*.py"]


def checkpoint_folder(
    spec: BackboneSpec, *, revision: str | None = None, weights: bool = True, pickles: bool = False
) -> Path:
    """The folder with the files of `spec`, fetched with a progress bar unless they are in the cache.

    huggingface_hub decides: its cache (HF_HOME), offline mode (HF_HUB_OFFLINE) and endpoint (HF_ENDPOINT) hold. No file
    with code is fetched.
    """
    if spec.repository is None:
        return Path(spec.name)
    wanted = SETTINGS + WEIGHTS * weights + PICKLES * (weights and pickles)
    return fetch(spec.repository, revision or spec.revision, wanted)


def fetch(repository: str, revision: str | None, wanted: list[str]) -> Path:
    """The wanted files of a repository."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise MissingExtraError(f"{repository} from the Hugging Face Hub", "torch") from error
    try:
        return Path(hub.snapshot_download(repository, revision=revision, allow_patterns=wanted))
    except Exception as error:  # of many kinds, by version; the remedy is one
        text = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BackboneError(
            f"{repository} (revision {revision}) cannot be fetched and is not in the cache: {text}. Check the"
            " connection and HF_HUB_OFFLINE, or get the files on another machine and give their folder as the backbone."
        ) from error
