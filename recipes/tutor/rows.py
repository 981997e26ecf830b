"""Examples of the tutor in rows without waste, and rows in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recipes.store import Ints
from recipes.tutor.tokens import Questions

WINDOW = 2048  # pieces that are put into rows together


class Piece(NamedTuple):
    """A document with some of the questions about it."""

    document: int  # text number
    start: int  # of all answers
    stop: int
    size: int  # tokens


@dataclass(frozen=True)
class Rows:
    """A batch: what stands in each cell [R, C], and where the answers are read."""

    tokens: Ints
    positions: Ints
    parts: Ints  # which example of the row, 0 for padding
    segments: Ints  # 1 the document, 2 .. the questions
    slots: Ints  # [S, 2]
    numbers: Ints  # [S] which of all answers


def batches(asked: Questions, order: Sequence[int], *, rows: int, columns: int) -> Iterator[Rows]:
    """All examples, in about this order; the questions of a long one stand behind their document in several rows."""
    pieces, full = list(_pieces(asked, order, columns)), list[list[Piece]]()
    for start in range(0, len(pieces), WINDOW):
        full += _filled(pieces[start : start + WINDOW], columns)
        while len(full) >= rows:
            yield _batch(asked, full[:rows], rows, columns)
            full = full[rows:]
    if full:
        yield _batch(asked, full, rows, columns)


def _pieces(asked: Questions, order: Sequence[int], columns: int) -> Iterator[Piece]:
    """Each example whole, or cut where a row would be full."""
    sizes, offsets = np.diff(asked.texts.offsets).tolist(), asked.questions.offsets.tolist()
    documents, questions = asked.document.tolist(), asked.questions.values.tolist()
    for example in order:
        document, start = documents[example], offsets[example]
        used = sizes[document]
        for number in range(start, offsets[example + 1]):
            size = sizes[questions[number]]
            if sizes[document] + size > columns:
                raise ValueError(
                    f"A document and a question have {sizes[document] + size} tokens, and a row {columns}."
                )
            if used + size > columns:
                yield Piece(document, start, number, used)
                start, used = number, sizes[document]
            used += size
        if start < offsets[example + 1]:
            yield Piece(document, start, offsets[example + 1], used)


def _filled(pieces: Sequence[Piece], columns: int) -> list[list[Piece]]:
    """Rows of pieces: the longest first, each into the fullest row that has room."""
    room, found = np.zeros(0, dtype=np.int64), list[list[Piece]]()
    for piece in sorted(pieces, key=lambda each: -each.size):
        left = room - piece.size
        fitting = np.flatnonzero(left >= 0)
        if len(fitting):
            row = int(fitting[left[fitting].argmin()])
        else:
            row, room = len(found), np.append(room, columns)
            found.append([])
        room[row] -= piece.size
        found[row].append(piece)
    return found


def _batch(asked: Questions, together: Sequence[Sequence[Piece]], rows: int, columns: int) -> Rows:
    tokens, positions, parts, segments = (np.zeros((rows, columns), dtype=np.int32) for _ in range(4))
    slots, numbers = list[tuple[int, int]](), list[int]()
    for row, pieces in enumerate(together):
        end = 0
        for part, piece in enumerate(pieces, start=1):
            document = asked.texts[piece.document]
            texts = [document, *(asked.texts[n] for n in asked.questions.values[piece.start : piece.stop])]
            for segment, text in enumerate(texts, start=1):
                cells = slice(end, end + len(text))
                tokens[row, cells], parts[row, cells], segments[row, cells] = text, part, segment
                before = 0 if segment == 1 else len(document)
                positions[row, cells] = np.arange(before, before + len(text))
                end += len(text)
                if segment > 1:
                    slots.append((row, end - 1))
            numbers += range(piece.start, piece.stop)
    places, which = np.array(slots, dtype=np.int64), np.array(numbers, dtype=np.int64)
    return Rows(tokens, positions, parts, segments, places, which)
