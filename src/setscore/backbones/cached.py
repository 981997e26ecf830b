"""A backbone that asks another one only what nobody has asked before."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b

import numpy as np

from setscore.backbones.base import Backbone, Embedder, Emitter, MassReader
from setscore.errors import ScoreError
from setscore.records import FloatArray, Query, Slot
from setscore.store import Store, answered

BLOCK = 8192  # queries between two savings, as scorers ask them: what a kill costs a small model is seconds,
LARGE, LARGE_BLOCK = 10**9, 512  # but with billions of parameters it would be an hour


class CachedBackbone:
    """Another backbone with a store in front of it. Its identity is the other's: so are its answers."""

    def __init__(self, backbone: Backbone, store: Store) -> None:
        self.backbone, self.store = backbone, store
        self.spec, self.attention = backbone.spec, backbone.attention
        if isinstance(backbone, Embedder):
            self._embed = backbone.embed
            self.embed, self.read = self._embedded, self._read
        # What a backbone may offer besides is passed on where it does; it is not stored.
        if isinstance(backbone, Emitter):
            self.most_likely = backbone.most_likely
        if isinstance(backbone, MassReader):
            self.answer_mass = backbone.answer_mass

    @property
    def identity(self) -> str:
        return self.backbone.identity

    def spans(self, text: str) -> list[tuple[int, int]]:
        return self.backbone.spans(text)

    def log_odds(self, queries: Sequence[Query]) -> list[FloatArray]:
        block = LARGE_BLOCK if self.spec.parameters >= LARGE else BLOCK
        return answered(self.store, query_keys(self.identity, queries), partial(self._ask, queries), block)

    def _embedded(self, queries: Sequence[Query]) -> list[FloatArray]:
        """An embedding is kept as the answer to a query without a question."""
        bare = [replace(query, question=()) for query in queries]
        keys = query_keys(self.identity, bare)
        return answered(self.store, keys, lambda places: self._embed([bare[place] for place in places]), BLOCK)

    def _read(self, queries: Sequence[Query]) -> tuple[list[FloatArray], list[FloatArray]]:
        return self.log_odds(queries), self._embedded(queries)

    def _ask(self, queries: Sequence[Query], places: Sequence[int]) -> list[FloatArray]:
        try:
            answers = self.backbone.log_odds([queries[place] for place in places])
            bad = [number for number, values in enumerate(answers) if not np.isfinite(values).all()]
        except ScoreError as error:
            bad = list(error.queries)
            if not bad:
                raise
        if bad:  # by their numbers among all queries, not among those that were asked now
            numbers = tuple(places[number] for number in bad)
            message = f"{self.spec.name} gave NaN or infinity for {len(bad)} queries, the first is number {numbers[0]}."
            raise ScoreError(message, numbers)
        return answers


def query_keys(identity: str, queries: Sequence[Query]) -> list[bytes]:
    """A digest of the model's identity and of each query. Equal texts are digested once."""
    texts: dict[tuple[str, str], bytes] = {}
    questions: dict[tuple[str | Slot, ...], bytes] = {}
    begin = _digest(identity)
    keys = []
    for query in queries:
        text = (query.prefix, query.document)
        if text not in texts:
            texts[text] = _digest(text)
        if query.question not in questions:
            questions[query.question] = _digest([_plain(piece) for piece in query.question])
        keys.append(blake2b(begin + texts[text] + questions[query.question], digest_size=16).digest())
    return keys


def _plain(piece: str | Slot) -> object:
    return piece if isinstance(piece, str) else [piece.answer]


def _digest(value: object) -> bytes:
    return blake2b(json.dumps(value).encode(), digest_size=16).digest()
