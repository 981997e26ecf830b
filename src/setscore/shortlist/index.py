"""The nearest labels of a vector: faiss, exact up to 200,000 labels and in cells (IVF) beyond; vectors kept on disk."""

import hashlib
import importlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setscore.errors import DataFileError, MissingExtraError
from setscore.records import IntArray
from setscore.shortlist.encoder import Encode, Vectors, unit
from setscore.storage import write_bytes

EXACT_UP_TO = 200_000  # labels; about 300 MB of vectors, and milliseconds to search
PROBED = 16  # cells that a search beyond that looks into; more is slower and misses less
BATCH = 4096  # labels encoded at a time


@dataclass(frozen=True)
class VectorIndex:
    """Unit vectors of labels [m, d] and the faiss index over them."""

    vectors: Vectors
    searcher: Any
    exact: bool

    @classmethod
    def of(cls, vectors: Vectors, exact_up_to: int = EXACT_UP_TO) -> "VectorIndex":
        try:
            faiss = importlib.import_module("faiss")
        except ImportError as error:
            raise MissingExtraError("the shortlist", "shortlist") from error
        count, width = vectors.shape
        flat = faiss.IndexFlatIP(width)
        if count <= exact_up_to:
            flat.add(vectors)
            return cls(vectors, flat, True)
        cells = max(1, round(4 * count**0.5))
        searcher = faiss.IndexIVFFlat(flat, width, cells, faiss.METRIC_INNER_PRODUCT)
        searcher.train(vectors)
        searcher.add(vectors)
        searcher.nprobe = min(cells, PROBED)
        return cls(vectors, searcher, False)

    def nearest(self, queries: Vectors, depth: int) -> tuple[Vectors, IntArray]:
        """Cosines and labels [n, depth], best first; -1 stands for a label where cells held too few."""
        cosines, labels = self.searcher.search(queries, depth)
        return cosines, np.asarray(labels, dtype=np.int64)


def label_vectors(texts: Sequence[str], encode: Encode, encoder: str, folder: Path | None = None) -> Vectors:
    """Unit vectors of label texts [m, d]; with a folder, encoded once for each encoder and inventory.

    A .npy file without pickle, named after what it holds, so that another inventory never meets it.
    """
    if folder is None:
        return _encoded(texts, encode)
    key = hashlib.sha256(json.dumps([encoder, *texts], ensure_ascii=False).encode()).hexdigest()
    path = folder / f"labels-{key[:24]}.npy"
    if path.is_file():
        return _read(path, len(texts))
    vectors = _encoded(texts, encode)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(f"label vectors cannot be written into {folder}: {error.strerror}.") from error
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    write_bytes(path, buffer.getvalue())
    return vectors


def _encoded(texts: Sequence[str], encode: Encode) -> Vectors:
    parts = [unit(encode(texts[start : start + BATCH])) for start in range(0, len(texts), BATCH)]
    return np.ascontiguousarray(np.concatenate(parts))


def _read(path: Path, labels: int) -> Vectors:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataFileError(f"{path} is damaged: {error}. Delete it to encode the labels again.") from error
    if vectors.ndim != 2 or len(vectors) != labels or vectors.dtype != np.float32:
        raise DataFileError(
            f"{path} holds {vectors.dtype} of the shape {vectors.shape}, not vectors of {labels} labels."
            " Delete it to encode the labels again."
        )
    return np.ascontiguousarray(vectors)
