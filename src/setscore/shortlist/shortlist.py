"""Which labels are asked for a document, when asking all of them would cost too much (Section 3.4 of the paper)."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from setscore.encoders import EMBEDDED, ENCODER, Encode, Vectors, load_encoder, unit
from setscore.errors import SetScoreError, counted, unknown_name
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet
from setscore.shortlist.fusion import best, fuse
from setscore.shortlist.index import VectorIndex, label_vectors
from setscore.shortlist.lexical import LexicalIndex
from setscore.shortlist.memory import Memory
from setscore.shortlist.windows import READ_TOKENS, split_words

RETRIEVERS = ("fused", "cosine", "bm25")
ENCODERS = {"fused": EMBEDDED, "cosine": ENCODER}
DEPTH = 4  # labels ranked by each part for one that is kept
LEAST_DEPTH = 256
BLOCK = 32  # documents encoded at a time
# In the fusion, beside 1 for the cosine; chosen by cross-validation on 200 EURLEX documents.
LEXICAL_WEIGHT, NEIGHBOURS_WEIGHT = 0.25, 2.0


class ShortlistWarning(UserWarning):
    """A shortlist that does not shorten anything."""


@dataclass(frozen=True)
class Shortlist:
    """The k labels of a document that are asked; every other label is predicted negative.

    k          labels per document
    retriever  "cosine": the paper's, the nearest label texts to the beginning of the document;
               "fused": whole documents by windows (the nearest window counts), BM25 over names and descriptions,
               and what is remembered of a slice, fused by reciprocal rank;
               "bm25": words alone, without any encoder
    encoder    a sentence encoder: "setscore-mini" (packaged, no torch), a name of sentence-transformers, or a folder;
               None is the paper's all-MiniLM-L6-v2 for "cosine" and setscore-mini for "fused"
    windows    how many windows of a document are read at most, the first ones and some of the rest; None reads them all
    cache      a folder that keeps the labels' vectors
    memory     what is remembered of a slice of documents; `fitted` gives it, only "fused" uses it
    """

    k: int = 32
    retriever: str = "fused"
    encoder: str | None = None
    windows: int | None = 3
    cache: str | None = None
    memory: Memory | None = None

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise SetScoreError(f"an empty shortlist asks nothing: k is a whole number from 1, got {self.k!r}.")
        if self.retriever not in RETRIEVERS:
            raise SetScoreError(unknown_name("retriever", self.retriever, RETRIEVERS))
        if self.windows is not None and self.windows < 1:
            raise SetScoreError(f"a document is read in at least one window, got {self.windows}.")

    @classmethod
    def of(cls, source: Any) -> "Shortlist":
        """From a Shortlist, k, "32", "cosine", "cosine:32", or a dict of the fields."""
        if isinstance(source, Shortlist):
            return source
        if isinstance(source, dict):
            memory = source.get("memory")
            return cls(**source | {"memory": Memory.restore(memory) if isinstance(memory, dict) else memory})
        if not isinstance(source, str):
            return cls(source)
        name, _, number = source.rpartition(":") if ":" in source or source.isdecimal() else (source, "", "")
        if number and not number.isdecimal():
            raise SetScoreError(
                f"a shortlist is a number of labels, a retriever, or both as in fused:32; got {source!r}."
            )
        return cls(int(number) if number else cls.k, name or cls.retriever)

    def settings(self) -> dict[str, Any]:
        """What it depends on, as JSON values; where vectors are kept does not matter."""
        return {key: value for key, value in vars(self).items() if key not in ("cache", "memory")}

    @property
    def encoder_name(self) -> str:
        """The encoder given, or the retriever's own."""
        return self.encoder or ENCODERS[self.retriever]

    @property
    def _read(self) -> int | None:
        return None if self.retriever == "cosine" else READ_TOKENS

    def load(self) -> Encode:
        """The encoder, as the retriever reads with it: the paper's as it was trained, windows to a fixed length."""
        return load_encoder(self.encoder_name, read=self._read)

    def _index(self, labels: LabelSet, encode: Encode) -> VectorIndex:
        return _vector_index(labels.texts, f"{self.encoder_name} {self._read}", self.cache, encode)

    def fitted(
        self, texts: Sequence[str], labels: LabelSet, gold: BoolArray | None = None, *, encode: Encode | None = None
    ) -> "Shortlist":
        """The same with what it remembers of a slice, whose gold labels [n_documents, n_labels] may be unknown."""
        if self.retriever != "fused" or self.k >= len(labels):
            return self
        encode_ = encode or self.load()
        index = self._index(labels, encode_)
        found = list(_cosines(index, self._passages(texts), encode_, len(labels)))
        cosines, vectors = (np.stack(part) for part in zip(*found, strict=True))
        return replace(self, memory=Memory.of(cosines, vectors, gold))

    def select(
        self, texts: Sequence[str], labels: LabelSet, *, within: BoolArray | None = None, encode: Encode | None = None
    ) -> BoolArray:
        """The labels to ask [n_documents, n_labels], of those `within` where that is given.

        `encode` takes the place of the encoder. k at or above the inventory keeps every label, and says so.
        """
        allowed = np.ones((len(texts), len(labels)), dtype=np.bool_) if within is None else within
        if self.k >= len(labels):
            if self.k > len(labels):
                inventory = f"the inventory of {counted(len(labels), 'label')}"
                message = f"the shortlist of {self.k} is above {inventory}; all are asked."
                warnings.warn(ShortlistWarning(message), stacklevel=3)
            return allowed
        kept = np.zeros_like(allowed)
        for row, (scores, ties) in enumerate(self._ranked(texts, labels, encode)):
            kept[row, best(np.where(allowed[row], scores, -np.inf), self.k, ties)] = True
        if empty := np.flatnonzero(allowed.any(axis=1) & ~kept.any(axis=1)).tolist():
            raise SetScoreError(
                f"the shortlists of {len(empty)} of {counted(len(texts), 'document')} are empty, the first is document"
                f" {empty[0]}: it shares no word with any label. Use the retriever 'fused'. Documents count from 0."
            )
        return kept

    def _ranked(self, texts: Sequence[str], labels: LabelSet, encode: Encode | None) -> "list[_Evidence]":
        """For each document the scores that rank its labels, and what parts equals."""
        if self.memory is not None and len(self.memory.hubs) != len(labels):
            raise SetScoreError(
                f"the shortlist remembers {counted(len(self.memory.hubs), 'label')}, there are {len(labels)}."
            )
        depth = min(len(labels), max(DEPTH * self.k, LEAST_DEPTH))
        if self.retriever == "bm25":
            lexical = _lexical_index(labels.names, labels.texts)
            return [(_positive(lexical.scores(text)), None) for text in texts]
        encode_ = encode or self.load()
        index = self._index(labels, encode_)
        if self.retriever == "cosine":
            return [(scores, None) for scores, _ in _cosines(index, [[text] for text in texts], encode_, depth)]
        lexical = _lexical_index(labels.names, labels.texts)
        found: list[_Evidence] = []
        for text, (dense, vector) in zip(texts, _cosines(index, self._passages(texts), encode_, depth), strict=True):
            rankings, weights = [dense, _positive(lexical.scores(text))], [1.0, LEXICAL_WEIGHT]
            if self.memory is not None:
                rankings[0] = self.memory.nearness(dense)
                rankings.append(_positive(self.memory.neighbours(vector)))
                weights.append(NEIGHBOURS_WEIGHT)
            found.append((fuse(rankings, weights, depth), rankings[0]))
        return found

    def _passages(self, texts: Sequence[str]) -> list[list[str]]:
        return [split_words(text, most=self.windows) for text in texts]


_Evidence = tuple[FloatArray, FloatArray | None]


@lru_cache(maxsize=8)
def _vector_index(texts: tuple[str, ...], encoder: str, cache: str | None, encode: Encode) -> VectorIndex:
    return VectorIndex.of(label_vectors(texts, encode, encoder, None if cache is None else Path(cache)))


@lru_cache(maxsize=4)
def _lexical_index(names: tuple[str, ...], texts: tuple[str, ...]) -> LexicalIndex:
    return LexicalIndex.of(
        [name if name == text else f"{name} {text}" for name, text in zip(names, texts, strict=True)]
    )


def _cosines(
    index: VectorIndex, passages: Sequence[Sequence[str]], encode: Encode, depth: int
) -> Iterator[tuple[FloatArray, Vectors]]:
    """For each document the largest cosine of its passages with every label [m], -inf beyond `depth`, and its vector.

    The labels nearest to the document are among those nearest to one of its passages, so none is missed.
    """
    for start in range(0, len(passages), BLOCK):
        block = passages[start : start + BLOCK]
        vectors = unit(encode([passage for document in block for passage in document]))
        cosines, labels = index.nearest(vectors, depth)
        end = 0
        for document in block:
            begin, end = end, end + len(document)
            nearest = _largest(cosines[begin:end], labels[begin:end], len(index.vectors))
            yield nearest, unit(vectors[begin:end].mean(axis=0, keepdims=True))[0]


def _largest(cosines: Vectors, labels: IntArray, count: int) -> FloatArray:
    """The largest cosine of every label [count]; -inf for one that is not among `labels`, where -1 stands for none."""
    scores = np.full(count, -np.inf)
    np.maximum.at(scores, labels[labels >= 0], cosines[labels >= 0].astype(np.float64))
    return scores


def _positive(scores: FloatArray) -> FloatArray:
    """Zero is no evidence."""
    return np.where(scores > 0, scores, -np.inf)
