"""Rows of tokens laid end to end without padding, and which queries see which keys.

    flat      d d d d d d | q q q | q q q q | d d d | q q ...       one token after the other, whatever the length
    position  0 1 2 3 4 5 | 6 7 8 | 6 7 8 9 | 0 1 2 | 3 4           each question goes on after its document

A document and each of its questions are a segment (shared attention); document and question together are one segment
with exact attention. Attention has two parts, merged by their log-sum-exp: every segment sees itself, and a question
sees its document, its context. In a block-causal model a token sees the blocks up to its own; segments begin on a block
boundary there, so a block of a segment sees the segment up to its own end, and the whole context.

In the last layer only the positions that are read have queries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from setscore.backbones.asking import Row

Span = tuple[int, int]  # start and stop in the flat order


@dataclass(frozen=True)
class Segment:
    """Tokens that see each other, and the context that they all see."""

    span: Span
    first_position: int
    context: Span | None
    reads: tuple[int, ...] = ()  # flat places of the hidden states to read

    def blocks(self, size: int) -> list[Span]:
        """The segment as blocks of `size` tokens; as one block when size is 0."""
        start, stop = self.span
        step = size or stop - start
        return [(first, min(first + step, stop)) for first in range(start, stop, step)]


@dataclass(frozen=True)
class Part:
    """Attention of groups of queries, each to its own group of keys. Rows of `queries` and `keys` are flat places.

    `None` stands for every place in order, which needs no copy.
    """

    queries: Tensor | None
    keys: Tensor | None
    query_lengths: tuple[int, ...]
    key_lengths: tuple[int, ...]
    query_starts: Tensor  # [groups + 1] int32, cumulative lengths
    key_starts: Tensor


@dataclass(frozen=True)
class Sight:
    """What the queries of a layer see: themselves and, where there is one, a context."""

    own: Part
    context: Part | None
    with_context: Tensor | None  # the rows among the layer's queries that have a context; None: all of them


@dataclass(frozen=True)
class Layout:
    """One batch: T tokens, S positions to read."""

    token_ids: Tensor  # [T]
    positions: Tensor  # [T]
    reads: Tensor  # [S] flat places
    owners: tuple[int, ...]  # [S] query numbers
    sight: Sight  # of all T queries
    last_sight: Sight  # of the S queries of the last layer

    @property
    def tokens(self) -> int:
        return len(self.token_ids)


def lay_out(rows: Sequence[Row], *, shared: bool, block: int, shift: int, device: torch.device | str) -> Layout:
    """The batch of some rows; the value for slot p is read at p - shift."""
    tokens: list[int] = []
    segments: list[Segment] = []
    owners: list[int] = []
    for row in rows:
        begin = len(tokens)
        tokens += row.document
        document = (begin, len(tokens))
        context = document if shared and row.document else None
        if context:
            segments.append(Segment(document, 0, None))
        for question in row.questions:
            start = len(tokens) if shared else begin
            first = len(tokens)
            tokens += question.tokens
            reads = tuple(first + slot - shift for slot in question.slots)
            position = len(row.document) if shared else 0
            segments.append(Segment((start, len(tokens)), position, context, reads))
            owners += [question.query] * len(reads)
    positions = np.concatenate([np.arange(s.span[1] - s.span[0]) + s.first_position for s in segments])
    places = [place for segment in segments for place in segment.reads]
    return Layout(
        token_ids=torch.tensor(tokens, dtype=torch.int64, device=device),
        positions=torch.as_tensor(positions, dtype=torch.int64).to(device),
        reads=torch.tensor(places, dtype=torch.int64, device=device),
        owners=tuple(owners),
        sight=_sight(segments, len(tokens), block, device),
        last_sight=_last_sight(segments, block, device),
    )


def _sight(segments: Sequence[Segment], tokens: int, block: int, device: torch.device | str) -> Sight:
    pairs = [((start, stop), (segment.span[0], stop)) for segment in segments for start, stop in segment.blocks(block)]
    own = _part(None, [query for query, _ in pairs], [key for _, key in pairs], tokens, device)
    asked = [segment for segment in segments if segment.context]
    if not asked:
        return Sight(own, None, None)
    places = _places([segment.span for segment in asked])
    context = _context([(segment.span[1] - segment.span[0], segment.context) for segment in asked], places, device)
    return Sight(own, context, torch.from_numpy(places).to(device))


def _last_sight(segments: Sequence[Segment], block: int, device: torch.device | str) -> Sight:
    """The queries are the reads, in their order."""
    spans: list[Span] = []
    keys: list[Span] = []
    asked: list[tuple[int, Span | None]] = []
    count = 0
    for segment in segments:
        for start, stop in segment.blocks(block):
            reads = sum(start <= place < stop for place in segment.reads)
            if reads:
                spans.append((count, count + reads))
                keys.append((segment.span[0], stop))
                asked.append((reads, segment.context))
                count += reads
    own = _part(None, spans, keys, None, device)
    with_context = np.repeat([context is not None for _, context in asked], [reads for reads, _ in asked])
    if not with_context.any():
        return Sight(own, None, None)
    places = np.flatnonzero(with_context)
    context = _context([entry for entry in asked if entry[1]], places, device)
    return Sight(own, context, None if with_context.all() else torch.from_numpy(places).to(device))


def _context(
    asked: Iterable[tuple[int, Span | None]], places: "np.typing.NDArray[np.int64]", device: torch.device | str
) -> Part:
    """Neighbours with the same context become one group: its keys are read once for all of them."""
    lengths: list[int] = []
    keys: list[Span] = []
    for length, context in asked:
        if context and keys and keys[-1] == context:
            lengths[-1] += length
        elif context:
            lengths.append(length)
            keys.append(context)
    stops = np.cumsum(lengths).tolist()
    spans = [(stop - length, stop) for stop, length in zip(stops, lengths, strict=True)]
    return _part(torch.from_numpy(places).to(device), spans, keys, None, device)


def _part(
    queries: Tensor | None, spans: Sequence[Span], keys: Sequence[Span], tokens: int | None, device: torch.device | str
) -> Part:
    """`tokens`: keys that are exactly every place in order need no index."""
    key_places = _places(keys)
    plain = tokens is not None and len(key_places) == tokens and bool((np.diff(key_places) == 1).all())
    query_lengths = tuple(stop - start for start, stop in spans)
    key_lengths = tuple(stop - start for start, stop in keys)
    return Part(
        queries=queries,
        keys=None if plain else torch.from_numpy(key_places).to(device),
        query_lengths=query_lengths,
        key_lengths=key_lengths,
        query_starts=_starts(query_lengths).to(device),
        key_starts=_starts(key_lengths).to(device),
    )


def _places(spans: Sequence[Span]) -> "np.typing.NDArray[np.int64]":
    return np.concatenate([np.arange(start, stop, dtype=np.int64) for start, stop in spans])


def _starts(lengths: Sequence[int]) -> Tensor:
    return torch.from_numpy(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
