"""Queries as rows of token ids: the document once, the questions beside it, as little padding as can be.

A row is a grid of N = D + m L columns:

    segment    1 1 1 1 1 1 | 2 2 2 2 . | 3 3 3 3 3 | 4 4 . . .       a dot is padding, segment 0
    position   0 1 2 3 4 5 | 6 7 8 9   | 6 7 8 9 10| 6 7             each question goes on after the document

A token sees segment 1 and its own segment. In `exact` mode each row has one question, and that question belongs to
segment 1, so the document sees it too: the attention of the paper. In `shared` mode the document sees only itself and
is computed once for all its questions, so m (D + Q) tokens become D + m Q.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from setscore.records import IntArray

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """The tokens of one query's question and the offsets in it that are read."""

    query: int  # the query's number among those asked
    tokens: Tokens
    slots: tuple[int, ...]


Documents = dict[Tokens, list[Question]]


@dataclass(frozen=True)
class Row:
    """One document (with everything before it) and the questions asked about it in one pass."""

    document: Tokens
    questions: tuple[Question, ...]

    @property
    def longest(self) -> int:
        return max(len(question.tokens) for question in self.questions)

    @property
    def tokens(self) -> int:
        """Tokens without any padding."""
        return len(self.document) + sum(len(question.tokens) for question in self.questions)


@dataclass(frozen=True)
class Packed:
    """Rows as arrays, and for each slot read which query it answers."""

    token_ids: IntArray  # [B, N]
    positions: IntArray  # [B, N]
    segments: IntArray  # [B, N]
    slots: IntArray  # [B, S] columns
    owners: IntArray  # [B, S] query numbers; -1 where a row has fewer slots than S


def fit_blocks(documents: Documents, *, shared: bool, block: int, mask: int) -> Documents:
    """Documents and questions for a block-causal model; as they are when block is 0.

    The answer's block is filled with masks to its end, as when the model writes. With shared attention a document ends
    on a block boundary, so its last tokens, those of a begun block, go with each question: the split changes nothing.
    """
    if block == 0:
        return documents
    fitted: Documents = {}
    for document, questions in documents.items():
        cut = len(document) // block * block if shared else len(document)
        begun = document[cut:]
        for question in questions:
            filling = (mask,) * (-(len(document) + len(question.tokens)) % block)
            slots = tuple(slot + len(begun) for slot in question.slots)
            moved = Question(question.query, begun + question.tokens + filling, slots)
            fitted.setdefault(document[:cut], []).append(moved)
    return fitted


def make_rows(documents: Documents, *, shared: bool, row_tokens: int) -> list[Row]:
    """One row per question, or per document and as many of its questions as `row_tokens` allows.

    Questions of one row are padded to the longest of them, so they are split by length, not in the order asked. Equal
    lengths go by their tokens: then no rounding error depends on the order of the labels either.
    """
    rows: list[Row] = []
    for document, questions in documents.items():
        if not shared:
            rows += [Row(document, (question,)) for question in questions]
            continue
        ordered = sorted(questions, key=lambda question: (len(question.tokens), question.tokens))
        while ordered:
            count = max(1, (row_tokens - len(document)) // len(ordered[-1].tokens))
            rows.append(Row(document, tuple(ordered[-count:])))
            del ordered[-count:]
    return rows


def make_batches(rows: Sequence[Row], *, shared: bool, batch_tokens: int, grid: int = 1) -> Iterator[list[Row]]:
    """Rows of one shape together, each batch within `batch_tokens` cells (a single larger row goes alone).

    Sums of floating-point numbers are rounded differently over rows of another length. So a row is as wide in a batch
    as it is alone, its document rounded up to a multiple of `grid`, and no answer depends on what else was asked.
    """

    def shape(row: Row) -> tuple[int, int]:
        return _up(len(row.document), grid) if shared else _up(len(row.document) + row.longest, grid), row.longest

    batch: list[Row] = []
    for row in sorted(rows, key=lambda row: (*shape(row), len(row.questions)), reverse=True):
        widened = [*batch, row]
        cells = _columns(widened, shared=shared, grid=grid) * len(widened)
        if batch and (shape(row)[: 1 + shared] != shape(batch[0])[: 1 + shared] or cells > batch_tokens):
            yield batch
            widened = [row]
        batch = widened
    if batch:
        yield batch


def _up(length: int, grid: int) -> int:
    return -(-length // grid) * grid


def _columns(rows: Sequence[Row], *, shared: bool, grid: int) -> int:
    if not shared:
        return _up(max(len(row.document) + row.longest for row in rows), grid)
    return _up(max(len(row.document) for row in rows), grid) + max(len(row.questions) for row in rows) * max(
        row.longest for row in rows
    )


def pack(rows: Sequence[Row], *, shared: bool, grid: int = 1) -> Packed:
    """The arrays of one batch."""
    width, length = _up(max(len(row.document) for row in rows), grid), max(row.longest for row in rows)
    shape = (len(rows), _columns(rows, shared=shared, grid=grid))
    token_ids, positions, segments = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    # At least two: a product of one row only is computed by another kernel, which rounds in another way.
    slot_count = max(2, *(sum(len(question.slots) for question in row.questions) for row in rows))
    slots = np.zeros((len(rows), slot_count), dtype=np.int64)
    owners = np.full((len(rows), slot_count), -1, dtype=np.int64)
    for b, row in enumerate(rows):
        start = len(row.document)
        token_ids[b, :start], positions[b, :start], segments[b, :start] = row.document, np.arange(start), 1
        read = 0
        for j, question in enumerate(row.questions):
            column = width + j * length if shared else start
            cells = slice(column, column + len(question.tokens))
            token_ids[b, cells] = question.tokens
            positions[b, cells] = np.arange(start, start + len(question.tokens))
            segments[b, cells] = 2 + j if shared else 1
            stop = read + len(question.slots)
            slots[b, read:stop] = [column + slot for slot in question.slots]
            owners[b, read:stop] = question.query
            read = stop
    return Packed(token_ids, positions, segments, slots, owners)
