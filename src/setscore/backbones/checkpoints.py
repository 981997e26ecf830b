"""Where a checkpoint's files are: a local folder, or the cache of the Hugging Face Hub, filled when needed."""

import hashlib
import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

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
        commit = _in_full(hub, repository, revision)
        return Path(hub.snapshot_download(repository, revision=commit, allow_patterns=wanted))
    except BackboneError:
        raise
    except Exception as error:  # of many kinds, by version; the remedy is one
        text = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BackboneError(
            f"{repository} (revision {revision}) cannot be fetched and is not in the cache: {text}. Check the"
            " connection and HF_HUB_OFFLINE, or get the files on another machine and give their folder as the backbone."
        ) from error


def _in_full(hub: Any, repository: str, revision: str | None) -> str | None:
    """An abbreviated commit in full, from the cache or the Hub, which takes no abbreviations; all else as it is."""
    if revision is None or not re.fullmatch(r"[0-9a-f]{7,39}", revision):
        return revision
    snapshots = Path(hub.constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}" / "snapshots"
    found = {folder.name for folder in snapshots.glob(f"{revision}*")}
    if not found:
        commits = (commit.commit_id for commit in hub.list_repo_commits(repository))
        found = {commit for commit in commits if commit.startswith(revision)}
    if len(found) != 1:
        raise BackboneError(f"{len(found)} commits of {repository} begin with {revision}; give one in full.")
    return found.pop()


def origin(folder: Path, files: Sequence[Path], repository: str | None, revision: str | None) -> str:
    """Where weights come from, as exactly as their files tell.

    A snapshot of the Hub's cache is named by its commit, and files that were downloaded into a folder keep it beside
    them. Without either the files' own checksum is all there is.
    """
    commit = folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else _commit_beside(folder)
    if repository is not None:
        at = "" if commit is None or commit == revision else f", commit {commit}"
        return f"{revision} of {repository}{at}"
    if commit is not None:
        return f"local folder, commit {commit}"
    sizes = f"{len(files)} weight file{'s' if len(files) > 1 else ''}"
    return f"local folder, {sizes} with SHA-256 {checksum(files)[:12]}..."


def _commit_beside(folder: Path) -> str | None:
    """The commit in the notes that `hf download --local-dir` leaves; None when there are none, or they disagree."""
    notes = sorted((folder / ".cache" / "huggingface" / "download").glob("*.metadata"))
    commits = {note.read_text(encoding="utf-8").partition("\n")[0].strip() for note in notes}
    return commits.pop() if len(commits) == 1 else None


Version = tuple[str, int, int]  # a file's path, its bytes, and when it was written, in nanoseconds


def versions(files: Iterable[Path]) -> tuple[Version, ...]:
    """What tells files from those of the same names at another time."""
    return tuple((str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(files))


def folder_versions(folder: Path) -> tuple[Version, ...]:
    """The versions of all files of a checkpoint's folder."""
    return versions(path for path in folder.iterdir() if path.is_file())


@dataclass(frozen=True)
class WeightFiles:
    """The files that weights were read from, as they were then."""

    paths: tuple[Path, ...]
    versions: tuple[Version, ...]

    @classmethod
    def of(cls, paths: Iterable[Path]) -> "WeightFiles":
        """To be taken before the weights are read."""
        kept = tuple(sorted(paths))
        return cls(kept, versions(kept))

    def checksum(self) -> str:
        """SHA-256 of what was read; an error where the files are others by now."""
        if any(not path.is_file() for path in self.paths) or versions(self.paths) != self.versions:
            raise BackboneError(f"{self.paths[0]} was changed after its weights were loaded. Load them again.")
        return checksum(self.paths)


def checksum(files: Sequence[Path]) -> str:
    """SHA-256 of a file, or of the list of files with the SHA-256 of each, in order of their names."""
    digests = [(path.name, _sha256(path)) for path in sorted(files)]
    if len(digests) == 1:
        return digests[0][1]
    return hashlib.sha256("".join(f"{digest}  {name}\n" for name, digest in digests).encode()).hexdigest()


def _sha256(path: Path) -> str:
    """The Hub's cache calls large files by their SHA-256, so sixteen gigabytes need not be read for it."""
    blob = path.resolve()
    if path.is_symlink() and blob.parent.name == "blobs" and re.fullmatch(r"[0-9a-f]{64}", blob.name):
        return blob.name
    ((place, size, written),) = versions([path])
    return _digest(place, size, written)


@lru_cache(maxsize=1024)
def _digest(place: str, size: int, written: int) -> str:  # noqa: ARG001
    """Read once for each version of a file: an identity is asked for at every fit and every call after it."""
    with Path(place).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
