"""BM25 over label texts: a label is a document of the index, a document to classify is the query."""

import importlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setscore.backbones.tokens import MOST_CHARACTERS
from setscore.errors import MissingExtraError
from setscore.records import FloatArray

_WORD = re.compile(r"[^\W_]{2,}")
STOPWORDS = frozenset(
    _WORD.findall(
        "about all an and any are as at be been but by can for from has have if in into is it its may more no not of on"
        " or other others out shall should so some such than that the their them there these they this those to under"
        " up was were which who will with"
    )
)


@dataclass(frozen=True)
class LexicalIndex:
    """The BM25 index of label texts; without a single usable word in them there is none."""

    searcher: Any
    labels: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> "LexicalIndex":
        try:
            bm25s = importlib.import_module("bm25s")
        except ImportError as error:
            raise MissingExtraError("a shortlist with BM25", "shortlist") from error
        words = [stems(text) for text in texts]
        if not any(words):
            return cls(None, len(texts))
        searcher = bm25s.BM25()
        searcher.index(words, show_progress=False)
        return cls(searcher, len(texts))

    def scores(self, text: str) -> FloatArray:
        """BM25 of every label [m]; 0 where a label shares no word with the document.

        A word that stands often counts more, but not in proportion: long documents repeat themselves. A million
        characters are read of a text, as of one that is embedded.
        """
        found = np.zeros(self.labels)
        if self.searcher is None:
            return found
        counts = Counter(stems(text[:MOST_CHARACTERS]))
        for times in range(1, max(map(_level, counts.values()), default=0) + 1):
            known = [word for word, count in counts.items() if _level(count) >= times and self._knows(word)]
            if known:
                found += np.asarray(self.searcher.get_scores(known), dtype=np.float64)
        return found

    def _knows(self, word: str) -> bool:
        return word in self.searcher.vocab_dict


def stems(text: str) -> list[str]:
    """Words in lower case, without stop words and plural endings."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOPWORDS]


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _level(count: int) -> int:
    """1, 2, 3, ... for 1, 2 to 3, 4 to 7, ... times."""
    return count.bit_length()
