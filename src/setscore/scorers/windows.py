"""Long documents: what a backbone can read of them, and how the parts' scores become the document's."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setscore.backbones import Backbone
from setscore.errors import BackboneError, SetScoreError, unknown_name
from setscore.records import FloatArray, Query, Slot

LONG_DOCUMENTS = ("auto", "truncate", "chunk")
POOLS = ("max", "mean", "logmeanexp")
LEAST_ROOM = 16  # a document part shorter than this says nothing
MOST_TOKENS_OF_A_CHARACTER = 4  # canonical decomposition and UTF-8 bytes both stop at four
CHARACTERS_OF_A_TOKEN = 8  # of a beginning that is likely to be enough
MOST_CHARACTERS_OF_A_TOKEN = 128  # a document with longer ones (blanks, an endless word) is cut there
UNSURE = 256  # characters before a cut whose tokens may be others in the whole text


@dataclass(frozen=True)
class Reading:
    """How documents are read: see `SetScoreClassifier`. "auto" truncates where all labels stand in one prompt."""

    long_documents: str = "auto"
    pool: str = "logmeanexp"
    overlap: int = 64
    max_document_tokens: int | None = 600

    def __post_init__(self) -> None:
        if self.long_documents not in LONG_DOCUMENTS:
            raise SetScoreError(unknown_name("long_documents mode", self.long_documents, LONG_DOCUMENTS))
        if self.pool not in POOLS:
            raise SetScoreError(unknown_name("pool", self.pool, POOLS))
        if self.overlap < 0:
            raise SetScoreError(f"overlap is a number of tokens, 0 or more, got {self.overlap}.")


def document_room(
    backbone: Backbone, queries: Sequence[Query], limit: int | None, *, places: Sequence[int] | None = None
) -> int:
    """Tokens left for a document beside the longest of `queries`, so that every label sees the same document part.

    `limit` is the paper's budget for a document (600 tokens). `places` number the questions in an error.
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
            f"question {places[longest] if places else longest} takes {lengths[longest]} of the"
            f" {backbone.spec.context} tokens that {backbone.spec.name} reads and leaves fewer than {LEAST_ROOM}"
            " for the document. Shorten that label."
        )
    return room if limit is None else min(room, limit)


def read_document(backbone: Backbone, text: str, reading: Reading, *, room: int, most: int) -> tuple[list[str], bool]:
    """The windows of a document that are read, and whether any is left out. `most` is how many "auto" reads.

    Only as much of a text is tokenised as those windows need: its beginning, which is doubled until it holds them. What
    lies behind it can change the tokens near its end alone, so those are not counted.
    """
    if reading.long_documents == "chunk":
        return split_document(backbone, text, room=room, overlap=reading.overlap), False
    wanted = 1 if reading.long_documents == "truncate" else most
    size, last = CHARACTERS_OF_A_TOKEN * room * wanted, MOST_CHARACTERS_OF_A_TOKEN * room * wanted
    while size < len(text):
        sure = bisect_right([end for _, end in backbone.spans(text[:size])], size - UNSURE)
        if sure > room * wanted or size >= last:
            windows = split_document(backbone, text[:size], room=room, overlap=reading.overlap)
            return windows[:wanted], True
        size *= 2
    windows = split_document(backbone, text, room=room, overlap=reading.overlap)
    return windows[:wanted], len(windows) > wanted


def split_document(backbone: Backbone, text: str, *, room: int, overlap: int) -> list[str]:
    """Overlapping windows of at most `room` tokens each, cut between words; a short text is its own only window."""
    if MOST_TOKENS_OF_A_CHARACTER * len(text) <= room:  # no need to look
        return [text]
    spans = backbone.spans(text)
    if len(spans) <= room:
        return [text]
    first, *others = (text[start:stop] for start, stop in window_cuts(spans, room=room, overlap=overlap))
    # A window that begins inside a word longer than `room` may have more tokens on its own: split it once more.
    return [first, *(part for other in others for part in split_document(backbone, other, room=room, overlap=overlap))]


def window_cuts(spans: Sequence[tuple[int, int]], *, room: int, overlap: int) -> list[tuple[int, int]]:
    """Where the windows begin and end, in characters, given what each token covers."""
    cuts: list[tuple[int, int]] = []
    start, stop = 0, 0
    while stop < len(spans):
        stop = start + room
        stop = len(spans) if stop >= len(spans) else _boundary(spans, start, stop) or stop
        cuts.append((spans[start][0], spans[stop - 1][1]))
        start = _boundary(spans, start, stop - overlap) or stop
    return cuts


def _boundary(spans: Sequence[tuple[int, int]], low: int, high: int) -> int | None:
    """The last token in (low, high] that begins a word, or else a character (one character may have several tokens)."""
    places = range(min(high, len(spans) - 1), low, -1)
    word = (place for place in places if spans[place][0] > spans[place - 1][1])
    character = (place for place in places if spans[place][0] == spans[place - 1][1])
    return next(word, None) or next(character, None)


def pool_windows(parts: FloatArray, pool: str) -> FloatArray:
    """Log-odds [n_windows, n_labels] to [n_labels]. "max": a label applies if it applies anywhere."""
    if pool == "max":
        return np.asarray(parts.max(axis=0))
    if pool == "mean":
        return np.asarray(parts.mean(axis=0))
    top = parts.max(axis=0)
    return np.asarray(top + np.log(np.exp(parts - top).mean(axis=0)))
