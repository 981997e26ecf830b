"""Examples of the tutor in rows without waste, and rows in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recipes.store import Ints
from recipes.tutor.tokens import Questions

WINDOW = 2048  # examples that are put into rows together


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
    """All examples, in about this order."""
    text_sizes = np.diff(asked.texts.offsets)
    sizes = text_sizes[asked.document] + np.add.reduceat(
        text_sizes[asked.questions.values], asked.questions.offsets[:-1]
    )
    if (longest := sizes.max(initial=0)) > columns:
        raise ValueError(f"An example has {longest} tokens, and a row {columns}.")
    full: list[list[int]] = []
    for start in range(0, len(order), WINDOW):
        full += _filled(order[start : start + WINDOW], sizes, columns)
        while len(full) >= rows:
            yield _batch(asked, full[:rows], rows, columns)
            full = full[rows:]
    if full:
        yield _batch(asked, full, rows, columns)


def _filled(order: Sequence[int], sizes: Ints, columns: int) -> list[list[int]]:
    """Rows of examples: the longest first, each into the fullest row that has room."""
    room, found = np.zeros(0, dtype=np.int64), list[list[int]]()
    for example in sorted(order, key=lambda n: -sizes[n]):
        left = room - sizes[example]
        fitting = np.flatnonzero(left >= 0)
        if len(fitting):
            row = int(fitting[left[fitting].argmin()])
        else:
            row, room = len(found), np.append(room, columns)
            found.append([])
        room[row] -= sizes[example]
        found[row].append(int(example))
    return found


def _batch(asked: Questions, examples: Sequence[Sequence[int]], rows: int, columns: int) -> Rows:
    tokens, positions, parts, segments = (np.zeros((rows, columns), dtype=np.int32) for _ in range(4))
    slots, numbers = list[tuple[int, int]](), list[int]()
    for row, together in enumerate(examples):
        end = 0
        for part, example in enumerate(together, start=1):
            document = asked.texts[asked.document[example]]
            first = int(asked.questions.offsets[example])
            pieces = [document, *(asked.texts[question] for question in asked.questions[example])]
            for number, piece in enumerate(pieces):
                cells = slice(end, end + len(piece))
                tokens[row, cells], parts[row, cells], segments[row, cells] = piece, part, number + 1
                start = 0 if number == 0 else len(document)
                positions[row, cells] = np.arange(start, start + len(piece))
                end += len(piece)
                if number:
                    slots.append((row, end - 1))
                    numbers.append(first + number - 1)
    return Rows(tokens, positions, parts, segments, np.array(slots, dtype=np.int64), np.array(numbers, dtype=np.int64))
