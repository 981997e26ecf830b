"""Long documents: what a backbone can read of them, and how the parts' scores become the document's."""

from collections.abc import Sequence

import numpy as np

from setscore.backbones import Backbone
from setscore.errors import BackboneError, SetScoreError, unknown_name
from setscore.records import FloatArray, Query, Slot

LONG_DOCUMENTS = ("truncate", "chunk")
POOLS = ("max", "mean", "logmeanexp")
LEAST_ROOM = 16  # a document part shorter than this says nothing


def check_options(long_documents: str, pool: str, overlap: int) -> None:
    if long_documents not in LONG_DOCUMENTS:
        raise SetScoreError(unknown_name("long_documents mode", long_documents, LONG_DOCUMENTS))
    if pool not in POOLS:
        raise SetScoreError(unknown_name("pool", pool, POOLS))
    if overlap < 0:
        raise SetScoreError(f"overlap is a number of tokens, 0 or more, got {overlap}.")


def document_room(backbone: Backbone, queries: Sequence[Query], limit: int | None) -> int:
    """Tokens left for a document beside the longest of `queries`, so that every label sees the same document part.

    `limit` is the paper's budget for a document (600 tokens).
    """

    def length(query: Query) -> int:
        texts = [query.prefix, *(piece for piece in query.question if isinstance(piece, str))]
        slots = sum(isinstance(piece, Slot) for piece in query.question)
        return sum(len(backbone.spans(text)) for text in texts) + slots

    lengths = [length(query) for query in queries]
    longest = int(np.argmax(lengths))
    room = backbone.spec.context - backbone.spec.special_tokens - lengths[longest]
    if room < LEAST_ROOM:
        raise BackboneError(
            f"question {longest} takes {lengths[longest]} of the {backbone.spec.context} tokens that"
            f" {backbone.spec.name} reads and leaves fewer than {LEAST_ROOM} for the document. Shorten that label."
        )
    return room if limit is None else min(room, limit)


def split_document(backbone: Backbone, text: str, *, room: int, overlap: int) -> list[str]:
    """Overlapping windows of at most `room` tokens each, cut between words; a short text is its own only window."""
    if len(text) <= room:  # a token covers at least one character
        return [text]
    spans = backbone.spans(text)
    if len(spans) <= room:
        return [text]
    windows: list[str] = []
    start = 0
    while True:
        stop = min(start + room, len(spans))
        if stop < len(spans):
            stop = _word_boundary(spans, start, stop)
        windows.append(text[spans[start][0] : spans[stop - 1][1]])
        if stop == len(spans):
            return windows
        start = max(start + 1, _word_boundary(spans, start, max(stop - overlap, start + 1)))


def _word_boundary(spans: Sequence[tuple[int, int]], start: int, stop: int) -> int:
    """The last place at or before `stop`, but after `start`, where a token does not continue the one before."""
    for place in range(stop, start, -1):
        if spans[place][0] > spans[place - 1][1]:
            return place
    return stop


def pool_windows(parts: FloatArray, pool: str) -> FloatArray:
    """Log-odds [n_windows, n_labels] to [n_labels]. "max": a label applies if it applies anywhere."""
    if pool == "max":
        return np.asarray(parts.max(axis=0))
    if pool == "mean":
        return np.asarray(parts.mean(axis=0))
    top = parts.max(axis=0)
    return np.asarray(top + np.log(np.exp(parts - top).mean(axis=0)))
