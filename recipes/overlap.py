"""Keeping evaluation data out of training: documents by hashed 8-grams, labels by their wording."""

import hashlib
import multiprocessing
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import yaml

N = 8
_WORD = re.compile(r"[a-z0-9]+")
_FACTORS = np.array([pow(6364136223846793005, k, 2**64) for k in range(N)], dtype=np.uint64)


@lru_cache(maxsize=1_000_000)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def ngrams(text: str) -> npt.NDArray[np.uint64]:
    """One hash per run of 8 lower-case words; a shorter text is one run."""
    words = np.array([_hash(word) for word in _WORD.findall(text.lower())], dtype=np.uint64)
    if len(words) < N:
        return np.array([(words * _FACTORS[: len(words)]).sum()], dtype=np.uint64) if len(words) else words
    windows = np.lib.stride_tricks.sliding_window_view(words, N)
    return (windows * _FACTORS).sum(axis=1, dtype=np.uint64)


def evaluation_ngrams(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Every 8-gram of the evaluation documents, sorted."""
    found = [ngrams(text) for text in texts]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.uint64)


def overlaps(text: str, evaluation: npt.NDArray[np.uint64], *, least: int = 2) -> bool:
    """Whether `least` 8-grams (all of a text that has fewer) stand in the evaluation documents.

    A single common 8-gram is often a set phrase; two are a copied passage.
    """
    own = np.unique(ngrams(text))
    if not len(own) or not len(evaluation):
        return False
    places = np.minimum(np.searchsorted(evaluation, own), len(evaluation) - 1)
    return int((evaluation[places] == own).sum()) >= min(least, len(own))


def copies(texts: Iterable[tuple[str, ...]], evaluation: npt.NDArray[np.uint64]) -> list[bool]:
    """For each group of texts whether one of them overlaps; on all cores."""
    with multiprocessing.get_context("fork").Pool(initializer=_share, initargs=(evaluation,)) as pool:
        return pool.map(_any_overlaps, texts, chunksize=1000)


_shared: list[npt.NDArray[np.uint64]] = []  # of a worker: sent once, not with every text


def _share(evaluation: npt.NDArray[np.uint64]) -> None:
    _shared[:] = [evaluation]


def _any_overlaps(texts: tuple[str, ...]) -> bool:
    return any(overlaps(text, _shared[0]) for text in texts)


def normal(wording: str) -> str:
    return " ".join(_WORD.findall(wording.lower()))


def forbidden_wordings() -> frozenset[str]:
    """Names and descriptions of every label of the paper's evaluation sets, as the package carries them."""
    folder = files("setscore.datasets") / "descriptions"
    described = (yaml.safe_load(path.read_text()) for path in folder.iterdir() if path.name.endswith(".yaml"))
    return frozenset(normal(str(text)) for labels in described for pair in labels.items() for text in pair)
