"""Rows in blocks: each is scored, written and forgotten before the next is read, and no row waits long for others.

A block is full at so many questions or characters, about a second of the embedded model's time on two cores. Blocks
begin small and double while they take less than half of two seconds; one that takes longer makes the next smaller, so
that a slow model, too, gives rows every two seconds, or one document at a time. Rows that come slowly, from a pipe or
the keyboard, are awaited in a thread of their own: two seconds after its first row a block ends, whatever follows.
"""

import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from setscore.datasets import InputRow

BLOCK_QUESTIONS = 2048
BLOCK_CHARACTERS = 32_768
FIRST = 1 / 16  # of a full block
PATIENCE = 2.0  # seconds
TICK = 0.1  # seconds between two looks at the clock while no row comes
AHEAD = 16  # rows that are read while a block is scored


def blocks(rows: Iterable[InputRow | None], labels: int) -> Iterator[list[InputRow]]:
    """Rows, each asked so many labels, in blocks; None among them only says that time goes by.

    Whoever takes a block comes back for the next one when it is scored and written: that is how long it took.
    """
    share, block, characters, since = FIRST, list[InputRow](), 0, 0.0
    for row in rows:
        if row is not None:
            since = since if block else monotonic()
            block.append(row)
            characters += 0 if row.document is None else len(row.document.text)
        filled = max(len(block) * labels / BLOCK_QUESTIONS, characters / BLOCK_CHARACTERS)
        if block and (filled >= share or monotonic() - since > PATIENCE):
            handed = monotonic()
            yield block
            share = _next_share(share, monotonic() - handed)
            block, characters = [], 0
    if block:
        yield block


def _next_share(share: float, took: float) -> float:
    """How full the next block may be, in powers of two: sizes, and with them answers to the last digit, seldom vary."""
    if took < PATIENCE / 2:
        return min(1.0, 2 * share)
    while took > PATIENCE:
        share, took = share / 2, took / 2
    return share


def awaited(rows: Iterable[InputRow]) -> Iterator[InputRow | None]:
    """The same rows from a thread of their own, and None now and then while there is none."""
    found: queue.Queue[InputRow | _End] = queue.Queue(AHEAD)

    def read() -> None:
        end = _End()
        try:
            for row in rows:
                found.put(row)
        except Exception as error:  # it is the reader's to raise
            end = _End(error)
        found.put(end)

    threading.Thread(target=read, daemon=True).start()  # a daemon: nobody waits for a keyboard after Ctrl-C
    while True:
        try:
            row = found.get(timeout=TICK)
        except queue.Empty:
            yield None
            continue
        if not isinstance(row, _End):
            yield row
        elif row.error is None:
            return
        else:
            raise row.error


@dataclass(frozen=True)
class _End:
    """There are no more rows, perhaps because of an error."""

    error: Exception | None = None
