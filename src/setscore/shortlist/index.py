"""The nearest labels of a vector: faiss, exact up to 200,000 labels and in cells (IVF) beyond; vectors kept on disk.

Reading 100,000 vectors of 384 floats for every search takes longer than encoding a short document. From some thousand
labels on, a search therefore reads them in 16 bits, and in full only those that may be wanted, twice as many as are.
The rounded vector v' of a label is at most e away from its own, so by Cauchy-Schwarz no cosine is off by more than e:

    q.v <= q.v' + e        and what was left out has a q.v' no higher than the last one that was read

Where that leaves room for a better label among those left out, the search is done again in full: the result is that of
an exact search, always.
"""

import hashlib
import importlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setscore.encoders import Encode, Vectors, unit
from setscore.errors import DataFileError, MissingExtraError
from setscore.records import IntArray
from setscore.storage import write_bytes

EXACT_UP_TO = 200_000  # labels; about 300 MB of vectors, and milliseconds to search
ROUNDED_FROM = 5_000  # labels; a search through fewer is quick as it is
WIDER = 2  # labels read in full for one that is wanted
ROUNDING = 1e-5  # of sums in 32 bits
PROBED = 16  # cells that a search beyond that looks into; more is slower and misses less
BATCH = 4096  # labels encoded at a time


@dataclass(frozen=True)
class VectorIndex:
    """Unit vectors of labels [m, d] and the faiss index over them.

    `off` is how far a rounded vector is from its own at most, 0 where none was rounded.
    """

    vectors: Vectors
    searcher: Any
    exact: bool
    off: float = 0.0

    @classmethod
    def of(cls, vectors: Vectors, exact_up_to: int = EXACT_UP_TO, rounded_from: int = ROUNDED_FROM) -> "VectorIndex":
        try:
            faiss = importlib.import_module("faiss")
        except ImportError as error:
            raise MissingExtraError("the shortlist", "shortlist") from error
        count, width = vectors.shape
        if count <= exact_up_to and count >= rounded_from:
            return cls._rounded(vectors, faiss)
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

    @classmethod
    def _rounded(cls, vectors: Vectors, faiss: Any) -> "VectorIndex":
        kind = faiss.ScalarQuantizer.QT_fp16
        searcher = faiss.IndexScalarQuantizer(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        off = 0.0
        for start in range(0, len(vectors), BATCH):
            part = vectors[start : start + BATCH]
            searcher.add(part)
            off = max(off, float(np.linalg.norm(part.astype(np.float16).astype(np.float32) - part, axis=1).max()))
        return cls(vectors, searcher, True, off)

    def nearest(self, queries: Vectors, depth: int) -> tuple[Vectors, IntArray]:
        """Cosines and labels [n, depth] of unit vectors [n, d], best first.

        -1 stands for a label where cells held too few.
        """
        if not self.off:
            cosines, labels = self.searcher.search(queries, depth)
            return cosines, np.asarray(labels, dtype=np.int64)
        read = min(len(self.vectors), WIDER * depth)
        rough, labels = self.searcher.search(queries, read)
        labels = np.asarray(labels, dtype=np.int64)
        cosines = np.stack([self.vectors[row] @ query for row, query in zip(labels, queries, strict=True)])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :depth]
        cosines, labels = np.take_along_axis(cosines, best, axis=1), np.take_along_axis(labels, best, axis=1)
        unsure = rough[:, -1] + self.off + ROUNDING > cosines[:, -1]
        for row in np.flatnonzero(unsure) if read < len(self.vectors) else ():
            cosines[row], labels[row] = self._in_full(queries[row], depth)
        return cosines, labels

    def _in_full(self, query: Vectors, depth: int) -> tuple[Vectors, IntArray]:
        cosines = self.vectors @ query
        some = np.argpartition(-cosines, depth - 1)[:depth]
        best = some[np.argsort(-cosines[some], kind="stable")]
        return cosines[best], best


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
