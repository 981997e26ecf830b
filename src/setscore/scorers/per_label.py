"""Per-label entailment scoring, the paper's recommended method (Section 3.2, Algorithm 3).

One short prompt per (document, label) pair, one masked position, and

    u_i(x) = log p(yes | prompt_i, r_i) - log p(no | prompt_i, r_i)                                  (Eq. 2)

Every label is asked at the same place, so the scores do not depend on the order of the labels. Cost: one forward per
pair with exact attention, one per document (or window of it) with shared attention.

Before that, a document that is longer than a backbone can read is cut into windows; their scores are pooled. With
`long_documents="passages"` its passages are asked about the labels that are then still in doubt.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from setscore.backbones import Backbone, Embedder
from setscore.errors import BackboneError, SetScoreError, TemplateError, brief, unknown_name
from setscore.prompts import Template
from setscore.records import BoolArray, FloatArray, LabelSet, Progress, Query, Scores, Slot, steps
from setscore.scorers.passages import in_doubt, passages, with_passages

LONG_DOCUMENTS = ("auto", "truncate", "chunk", "passages")
POOLS = ("max", "mean", "logmeanexp")
LEAST_ROOM = 16  # a document part shorter than this says nothing
MOST_TOKENS_OF_A_CHARACTER = 4  # canonical decomposition and UTF-8 bytes both stop at four
CHARACTERS_OF_A_TOKEN = 8  # of a beginning that is likely to be enough
MOST_CHARACTERS_OF_A_TOKEN = 128  # a document with longer ones (blanks, an endless word) is cut there
UNSURE = 256  # characters before a cut whose tokens may be others in the whole text
BLOCK_QUERIES = 8192  # queries held in memory at once; progress is told after each block
LONGEST = 256  # label texts whose tokens are counted, beside those that are asked

Place = tuple[
    int, list[int], list[str]
]  # a document, the labels that are asked about it, the texts that are read of it


@dataclass(frozen=True)
class Reading:
    """How documents are read: see `SetScoreClassifier`. "auto" truncates where all labels stand in one prompt.

    "passages" cuts as "auto" does, and reads passages where a label is in doubt (scorers/passages.py).
    """

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
    backbone: Backbone, queries: Sequence[Query], limit: int | None, *, asked: Sequence[str] | None = None
) -> int:
    """Tokens left for a document beside the longest of `queries`, so that every label sees the same document part.

    `limit` is the paper's budget for a document (600 tokens). `asked` are labels, to name
    the one whose question is too long.
    """

    def length(query: Query) -> int:
        texts = [query.prefix, *(piece for piece in query.question if isinstance(piece, str))]
        slots = sum(isinstance(piece, Slot) for piece in query.question)
        return sum(len(backbone.spans(text)) for text in texts) + slots

    lengths = [length(query) for query in queries]
    longest = int(np.argmax(lengths))
    room = backbone.spec.context - backbone.spec.special_tokens - lengths[longest]
    if room < LEAST_ROOM:
        question = f"question {longest}" if asked is None else f"the question about {brief(asked[longest])}"
        raise BackboneError(
            f"{question} takes {lengths[longest]} of the"
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


@dataclass(frozen=True)
class PerLabelScorer:
    """The options of the method; `score` is the method."""

    template: Template
    reading: Reading = field(default_factory=Reading)

    def cost(self, labels: int, *, shared: bool) -> int:
        """Forwards for one window or passage of a document and so many labels."""
        return min(labels, 1) if shared else labels

    def score(
        self,
        backbone: Backbone,
        documents: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
        embed: bool = False,
    ) -> Scores:
        """Scores of every label, or of each document's `candidates` [n_documents, n_labels] only.

        With `embed` the vectors of the documents come along, means over windows, where the backbone offers them.
        """
        texts, shared = labels.texts, backbone.attention == "shared"
        scored = np.ones((len(documents), len(labels)), dtype=np.bool_) if candidates is None else candidates
        wide = _may_be_longest(texts, scored)
        if shared and self.template.label_first:
            raise TemplateError(
                "this template names the label before the document, so the document cannot be shared between labels."
                " Put {document} first or use attention='exact'."
            )
        longest = [self.template.query("", texts[i]) for i in wide]
        room = document_room(backbone, longest, self.reading.max_document_tokens, asked=[labels.names[i] for i in wide])
        if self.reading.overlap >= room:
            overlap = self.reading.overlap
            raise SetScoreError(f"windows of {room} tokens cannot overlap by {overlap}; choose a smaller overlap.")
        log_odds = np.full(scored.shape, -np.inf)
        truncated = np.zeros(len(documents), dtype=np.bool_)
        reader = backbone if embed and isinstance(backbone, Embedder) else None
        vectors: dict[int, FloatArray] = {}  # by document
        forwards = 0
        step = steps(progress, "scoring", len(documents))
        for block in _blocks(documents, int(scored.sum(axis=1).max(initial=1))):
            places: list[Place] = []
            for row in block:
                most = backbone.spec.windows
                windows, truncated[row] = read_document(backbone, documents[row], self.reading, room=room, most=most)
                places.append((row, np.flatnonzero(scored[row]).tolist(), windows))
            queries = self._queries(places, texts)
            found, read = (backbone.log_odds(queries), []) if reader is None else reader.read(queries)
            vectors |= _mean_vectors(places, read)
            for (row, asked, _), parts in _by_place(places, found):
                log_odds[row, asked] = pool_windows(parts, self.reading.pool)
            if self.reading.long_documents == "passages" and (again := _in_doubt(places, log_odds)):
                for (row, asked, _), parts in _by_place(again, backbone.log_odds(self._queries(again, texts))):
                    log_odds[row, asked] = with_passages(log_odds[row, asked], parts)
                places += again
            forwards += sum(len(read) * self.cost(len(asked), shared=shared) for _, asked, read in places)
            step(len(block))
        return Scores(log_odds, scored, truncated, forwards, vectors=_unit(vectors, len(documents)))

    def _queries(self, places: Sequence[Place], texts: Sequence[str]) -> list[Query]:
        return [self.template.query(text, texts[i]) for _, asked, read in places for text in read for i in asked]


def _by_place(places: Sequence[Place], answers: Sequence[FloatArray]) -> Iterator[tuple[Place, FloatArray]]:
    """Each place with its log-odds [n_texts, n_labels], of the answers to the queries of all of them."""
    values, start = np.array([float(answer[0]) for answer in answers]), 0
    for place in places:
        _, asked, read = place
        stop = start + len(read) * len(asked)
        yield place, values[start:stop].reshape(len(read), len(asked))
        start = stop


def _in_doubt(places: Sequence[Place], log_odds: FloatArray) -> list[Place]:
    """The passages of documents, and of their labels those that are in doubt after the whole was read."""
    again: list[Place] = []
    for row, asked, windows in places:
        doubtful = [i for i, doubt in zip(asked, in_doubt(log_odds[row, asked]), strict=True) if doubt]
        if doubtful and (parts := [passage for window in windows for passage in passages(window)]):
            again.append((row, doubtful, parts))
    return again


def _mean_vectors(places: Sequence[Place], read: Sequence[FloatArray]) -> dict[int, FloatArray]:
    """By document the mean over its windows of what was embedded, a vector for each query; nothing of no vectors."""
    found, start = dict[int, FloatArray](), 0
    for row, asked, windows in places if read else ():
        stop = start + len(windows) * len(asked)
        if asked:
            found[row] = np.mean(read[start : stop : len(asked)], axis=0)
        start = stop
    return found


def _unit(vectors: dict[int, FloatArray], documents: int) -> FloatArray | None:
    """Vectors by document as rows of length 1; zeros for a document that was asked nothing. None without any."""
    if not vectors:
        return None
    found = np.zeros((documents, len(next(iter(vectors.values())))))
    for row, vector in vectors.items():
        found[row] = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return found


def _may_be_longest(texts: Sequence[str], scored: BoolArray) -> list[int]:
    """Places of the labels with most characters, whoever is asked, and of those that are: never a hundred thousand."""
    if len(texts) <= LONGEST:
        return list(range(len(texts)))
    wide = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)[:LONGEST]
    return sorted({*wide, *np.flatnonzero(scored.any(axis=0)).tolist()})


def _blocks(documents: Sequence[str], labels: int) -> Iterator[list[int]]:
    """Row numbers, long documents first, in blocks of like length."""
    order = sorted(range(len(documents)), key=lambda row: len(documents[row]), reverse=True)
    size = max(1, BLOCK_QUERIES // labels)
    for start in range(0, len(order), size):
        yield order[start : start + size]
