"""Which labels are asked for a document, when asking all of them would cost too much (Section 3.4 of the paper)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from setscore.errors import SetScoreError, unknown_name
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet
from setscore.shortlist.encoder import ENCODER, Encode, Vectors, load_encoder, unit
from setscore.shortlist.fusion import best, fuse
from setscore.shortlist.index import VectorIndex, label_vectors
from setscore.shortlist.lexical import LexicalIndex
from setscore.shortlist.windows import split_words

RETRIEVERS = ("fused", "cosine", "bm25")
DEPTH = 4  # labels ranked by each part for one that is kept
LEAST_DEPTH = 256
BLOCK = 32  # documents encoded at a time
# In the fusion, beside 1 for the cosine; chosen by cross-validation on 200 EURLEX documents.
LEXICAL_WEIGHT, RATES_WEIGHT = 0.25, 2.0


class ShortlistWarning(UserWarning):
    """A shortlist that does not shorten anything."""


@dataclass(frozen=True)
class Shortlist:
    """The k labels of a document that are asked; every other label is predicted negative.

    k          labels per document
    retriever  "cosine": the paper's, the nearest label texts to the beginning of the document;
               "fused": whole documents by windows (the nearest window counts), BM25 over names and descriptions,
               and the labels' rates where they are known, fused by reciprocal rank;
               "bm25": words alone, without any encoder
    encoder    a sentence encoder: a name or a folder
    windows    how many windows of a document are read at most, spread evenly over it; None reads them all
    cache      a folder that keeps the labels' vectors
    rates      how often each label applied in a labelled slice [n_labels]; `fitted` gives them
    """

    k: int = 32
    retriever: str = "fused"
    encoder: str = ENCODER
    windows: int | None = 16
    cache: str | None = None
    rates: tuple[float, ...] | None = None

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
            rates = source.get("rates")
            return cls(**source | {"rates": None if rates is None else tuple(rates)})
        if not isinstance(source, str):
            return cls(source)
        name, _, number = source.rpartition(":") if ":" in source or source.isdecimal() else (source, "", "")
        if number and not number.isdecimal():
            raise SetScoreError(
                f"a shortlist is a number of labels, a retriever, or both as in fused:32; got {source!r}."
            )
        return cls(int(number) if number else cls.k, name or cls.retriever)

    def fitted(self, gold: BoolArray) -> "Shortlist":
        """The same with the labels' rates in a labelled slice [n_documents, n_labels]; only "fused" uses them."""
        return replace(self, rates=tuple(gold.mean(axis=0).tolist())) if self.retriever == "fused" else self

    def select(
        self, texts: Sequence[str], labels: LabelSet, *, within: BoolArray | None = None, encode: Encode | None = None
    ) -> BoolArray:
        """The labels to ask [n_documents, n_labels], of those `within` where that is given.

        `encode` takes the place of the encoder. k at or above the inventory keeps every label, and says so.
        """
        allowed = np.ones((len(texts), len(labels)), dtype=np.bool_) if within is None else within
        if self.k >= len(labels):
            if self.k > len(labels):
                message = f"the shortlist of {self.k} is above the inventory of {len(labels)} labels; all are asked."
                warnings.warn(ShortlistWarning(message), stacklevel=3)
            return allowed
        kept = np.zeros_like(allowed)
        for row, (scores, ties) in enumerate(self._ranked(texts, labels, encode)):
            kept[row, best(np.where(allowed[row], scores, -np.inf), self.k, ties)] = True
        if empty := np.flatnonzero(allowed.any(axis=1) & ~kept.any(axis=1)).tolist():
            raise SetScoreError(
                f"the shortlists of {len(empty)} of {len(texts)} documents are empty, the first is document {empty[0]}:"
                " it shares no word with any label. Use the retriever 'fused'. Documents count from 0."
            )
        return kept

    def _ranked(self, texts: Sequence[str], labels: LabelSet, encode: Encode | None) -> "list[_Evidence]":
        """For each document the scores that rank its labels, and what parts equals."""
        if self.rates is not None and len(self.rates) != len(labels):
            raise SetScoreError(f"the shortlist knows the rates of {len(self.rates)} labels, there are {len(labels)}.")
        depth = min(len(labels), max(DEPTH * self.k, LEAST_DEPTH))
        if self.retriever == "bm25":
            lexical = _lexical_index(labels.names, labels.texts)
            return [(_positive(lexical.scores(text)), None) for text in texts]
        encode_ = encode or load_encoder(self.encoder)
        index = _vector_index(labels.texts, self.encoder, self.cache, encode_)
        if self.retriever == "cosine":
            return [(scores, None) for scores in _cosines(index, [[text] for text in texts], encode_, depth)]
        passages = [split_words(text, most=self.windows) for text in texts]
        lexical = _lexical_index(labels.names, labels.texts)
        rates = [] if self.rates is None else [_positive(np.array(self.rates))]
        weights = [1.0, LEXICAL_WEIGHT] + [RATES_WEIGHT] * len(rates)
        found: list[_Evidence] = []
        for text, dense in zip(texts, _cosines(index, passages, encode_, depth), strict=True):
            found.append((fuse([dense, _positive(lexical.scores(text)), *rates], weights, depth), dense))
        return found


_Evidence = tuple[FloatArray, FloatArray | None]


@lru_cache(maxsize=8)
def _vector_index(texts: tuple[str, ...], encoder: str, cache: str | None, encode: Encode) -> VectorIndex:
    return VectorIndex.of(label_vectors(texts, encode, encoder, None if cache is None else Path(cache)))


@lru_cache(maxsize=4)
def _lexical_index(names: tuple[str, ...], texts: tuple[str, ...]) -> LexicalIndex:
    return LexicalIndex.of(
        [name if name == text else f"{name} {text}" for name, text in zip(names, texts, strict=True)]
    )


def _cosines(index: VectorIndex, passages: Sequence[Sequence[str]], encode: Encode, depth: int) -> list[FloatArray]:
    """For each document the largest cosine of its passages with every label [m]; -inf beyond `depth`.

    The labels nearest to the document are among those nearest to one of its passages, so none is missed.
    """
    found = []
    for start in range(0, len(passages), BLOCK):
        block = passages[start : start + BLOCK]
        cosines, labels = index.nearest(unit(encode([passage for document in block for passage in document])), depth)
        end = 0
        for document in block:
            begin, end = end, end + len(document)
            found.append(_largest(cosines[begin:end], labels[begin:end], len(index.vectors)))
    return found


def _largest(cosines: Vectors, labels: IntArray, count: int) -> FloatArray:
    """The largest cosine of every label [count]; -inf for one that is not among `labels`, where -1 stands for none."""
    scores = np.full(count, -np.inf)
    np.maximum.at(scores, labels[labels >= 0], cosines[labels >= 0].astype(np.float64))
    return scores


def _positive(scores: FloatArray) -> FloatArray:
    """Zero is no evidence."""
    return np.where(scores > 0, scores, -np.inf)
