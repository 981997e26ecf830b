"""A backbone without weights, for tests that are about everything else."""

import re
import zlib
from collections.abc import Sequence

import numpy as np

from setscore.backbones import Attention, BackboneSpec
from setscore.errors import BackboneError
from setscore.prompts import LAYOUTS, QUESTIONS
from setscore.records import FloatArray, Query, Slot

_WORD = re.compile(r"\w+|[^\w\s]")
# Words of the prompt itself say nothing about a document.
_PROMPT_WORDS = frozenset(_WORD.findall((LAYOUTS["paper"] + QUESTIONS["express"]).lower()))

DIMENSIONS = 16


class FakeBackbone:
    """Log-odds between about -4 and 4: the share of the label's words that the document holds, plus a small offset.

    The offset is a hash of prompt and slot, so no two questions tie by accident and a question that was asked about the
    wrong document or label shows. `queries` and `calls` count what was asked.
    """

    def __init__(self, attention: Attention = "shared", context: int = 2000) -> None:
        self.attention = attention
        self.spec = BackboneSpec(
            name="fake",
            family="fake",
            summary="word overlap, no weights",
            parameters=0,
            context=context,
            attention=("shared", "exact"),
            licence="none",
            mask="[MASK]",
            leading_space=False,
            begin=("[CLS]",),
        )
        self.queries = 0
        self.calls = 0

    @property
    def identity(self) -> str:
        return f"fake {self.attention} {self.spec.context}"

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(text)]

    def log_odds(self, queries: Sequence[Query]) -> list[FloatArray]:
        self.calls += 1
        self.queries += len(queries)
        return [self._answer(query) for query in queries]

    def _answer(self, query: Query) -> FloatArray:
        question = " ".join(piece for piece in query.question if isinstance(piece, str))
        slots = sum(isinstance(piece, Slot) for piece in query.question)
        tokens = sum(len(self.spans(text)) for text in (query.prefix, query.document, question)) + slots
        if tokens + self.spec.special_tokens > self.spec.context:
            raise BackboneError(f"a query has {tokens} tokens, fake reads {self.spec.context}.")
        asked = set(_WORD.findall((query.prefix + question).lower())) - _PROMPT_WORDS
        found = asked & set(_WORD.findall(query.document.lower()))
        base = 7 * len(found) / max(1, len(asked)) - 3.5
        return np.array([base + _offset(f"{query!r} {slot}") for slot in range(query.open_slots)])


def _offset(text: str) -> float:
    """In [-0.5, 0.5), the same in every process, unlike `hash`."""
    return zlib.crc32(text.encode()) / 2**32 - 0.5


class EmbeddingBackbone(FakeBackbone):
    """Has sentence embeddings as well: its words, hashed into DIMENSIONS places."""

    def embed(self, queries: Sequence[Query]) -> list[FloatArray]:
        found = np.zeros((len(queries), DIMENSIONS))
        for row, query in enumerate(queries):
            for word in query.document.split():
                found[row, zlib.crc32(word.encode()) % DIMENSIONS] += 1
        return list(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12))

    def read(self, queries: Sequence[Query]) -> tuple[list[FloatArray], list[FloatArray]]:
        return self.log_odds(queries), self.embed(queries)


class PlantedBackbone(FakeBackbone):
    """Knows what it will answer: affinity(document, label) + bias of the slot + what the filled answers say.

    bias      log-odds added to slot 0, 1, .. of a prompt with several labels; slots beyond it get 0
    pull      log-odds added for every other answer that is filled with yes, taken away for every no
    emitted   the text that `most_likely` gives for every query
    """

    def __init__(self, bias=(), pull: float = 0.0, emitted: str = "", attention: Attention = "exact") -> None:
        super().__init__(attention, context=4000)
        self.bias, self.pull, self.emitted = tuple(bias), pull, emitted

    def affinity(self, document: str, label: str) -> float:
        return 6 * _offset(f"{document} / {label}")

    def _answer(self, query: Query) -> FloatArray:
        text = query.prefix + "".join(piece for piece in query.question if isinstance(piece, str))
        slots = [piece for piece in query.question if isinstance(piece, Slot)]
        labels = re.findall(r"^- (.*?):?$", text, re.MULTILINE) or re.findall(r"express (.*)\?", text)
        assert len(labels) == len(slots), "a slot for each label"
        signs = [0 if slot.answer is None else 1 if slot.answer else -1 for slot in slots]
        values = [
            self.affinity(query.document, label)
            + (self.bias[place] if place < len(self.bias) else 0.0)
            + self.pull * (sum(signs) - signs[place])
            for place, label in enumerate(labels)
        ]
        return np.array([value for value, slot in zip(values, slots, strict=True) if slot.answer is None])

    def answer_mass(self, queries: Sequence[Query]) -> list[FloatArray]:
        return [np.full(query.open_slots, 0.5) for query in queries]


class EmittingBackbone(PlantedBackbone):
    def most_likely(self, queries: Sequence[Query]) -> list[str]:
        return [self.emitted for _ in queries]
