"""Examples packed into rows without waste."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recipes.kinds import Example
from recipes.store import Ints

LIST_WIDTH = 12


@dataclass(frozen=True)
class Batch:
    """Packed rows [R, C], and lists of what is learned where (row, column, ...)."""

    tokens: Ints
    positions: Ints
    segments: Ints
    parts: Ints
    slots: Ints  # [S, 2]
    yes: npt.NDArray[np.float32]  # [S]
    final: npt.NDArray[np.bool_]  # [S] answers of which no teacher of the rounds has a say
    groups: Ints  # [G, LIST_WIDTH] slot numbers, -1 where there is none
    same: Ints  # [P, 2] slot numbers: one question in two wordings
    twins: Ints  # [T, 2] slot numbers: one question to two twins, of which the first answers yes
    masked: Ints  # [M, 3] row, column, token
    weights: npt.NDArray[np.float32]  # [M]
    maskable: int
    embeddings: Ints  # [E, 3] row, part, target


def pack(stream: Iterator[Example], rows: int, columns: int, tries: int = 24) -> Iterator[Batch]:
    """Batches of `rows` rows: each example goes into the fullest row that has room; what fits nowhere waits."""
    waiting: list[Example] = []
    while True:
        room = np.full(rows, columns)
        placed: list[tuple[int, int, Example]] = []
        late: list[Example] = []
        for example in waiting:
            _place(example, room, placed, late)
        while len(late) < tries:
            _place(next(stream), room, placed, late)
        waiting = late
        yield _batch(placed, rows, columns)


def _place(example: Example, room: Ints, placed: list[tuple[int, int, Example]], late: list[Example]) -> None:
    left = room - len(example.tokens)
    left[left < 0] = 1 << 20
    row = int(left.argmin())
    if left[row] == 1 << 20:
        late.append(example)
        return
    placed.append((row, int(room[row]), example))
    room[row] -= len(example.tokens)


def _batch(placed: Sequence[tuple[int, int, Example]], rows: int, columns: int) -> Batch:
    tokens, positions, segments, parts = (np.zeros((rows, columns), dtype=np.int32) for _ in range(4))
    count = np.zeros(rows, dtype=np.int32)
    slots, yes, groups, same, masked, weights, embeddings = [], [], [], [], [], [], []
    final: list[bool] = []
    asked: dict[int, list[int]] = {}
    for row, room, example in placed:
        start, length = columns - room, len(example.tokens)
        count[row] += 1
        cells = slice(start, start + length)
        tokens[row, cells], positions[row, cells] = example.tokens, example.positions
        segments[row, cells], parts[row, cells] = example.segments, count[row]
        if example.group:
            group = [len(slots) + number for number in example.group]
            groups.append((group + [-1] * LIST_WIDTH)[:LIST_WIDTH])
        same += [(len(slots) + one, len(slots) + other) for one, other in example.same]
        for pair, slot in example.paired:
            asked.setdefault(pair, []).append(len(slots) + slot)
        slots += [(row, start + offset) for offset, _ in example.slots]
        yes += [answer for _, answer in example.slots]
        final += [example.final] * len(example.slots)
        masked += [(row, start + offset, token) for offset, token, _ in example.masked]
        weights += [weight for _, _, weight in example.masked]
        if example.embedding >= 0:
            embeddings.append((row, int(count[row]), example.embedding))
    # a twin that found no room waits for another batch: its questions then stand alone
    twins = [sorted(both, key=lambda slot: -yes[slot]) for both in asked.values() if len(both) == 2]
    return Batch(
        tokens,
        positions,
        segments,
        parts,
        np.array(slots, dtype=np.int64).reshape(-1, 2),
        np.array(yes, dtype=np.float32),
        np.array(final, dtype=np.bool_),
        np.array(groups, dtype=np.int64).reshape(-1, LIST_WIDTH),
        np.array(same, dtype=np.int64).reshape(-1, 2),
        np.array(twins, dtype=np.int64).reshape(-1, 2),
        np.array(masked, dtype=np.int64).reshape(-1, 3),
        np.array(weights, dtype=np.float32),
        sum(example.length for _, _, example in placed),
        np.array(embeddings, dtype=np.int64).reshape(-1, 3),
    )
