"""Rows in batches of a token budget, with back-off when memory runs out: nothing is lost and nothing is done twice."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from setscore.backbones.asking import Row
from setscore.backbones.devices import device_name, free_memory, out_of_memory
from setscore.backbones.shelf import SHELF
from setscore.errors import BackboneError

Result = TypeVar("Result")


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Long rows first, like lengths together; equal lengths by their tokens, so that no order of labels matters."""

    def key(row: Row) -> tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]]:
        return row.tokens, row.document, tuple(question.tokens for question in row.questions)

    return sorted(rows, key=key, reverse=True)


def in_batches(
    rows: Sequence[Row],
    batch_tokens: int,
    compute: Callable[[list[Row]], Result],
    *,
    device: torch.device | None = None,
) -> Iterator[Result]:
    """`compute` for batches of rows, each within `batch_tokens` (a longer row goes alone).

    A batch that runs out of memory has given nothing. Models that others left on the `device` go first; then the rows
    are taken again in smaller batches, and the budget stays smaller from there on.
    """
    waiting = deque(in_order(rows))
    budget = batch_tokens
    while waiting:
        batch = [waiting.popleft()]
        tokens = batch[0].tokens
        while waiting and tokens + waiting[0].tokens <= budget:
            batch.append(waiting.popleft())
            tokens += batch[-1].tokens
        try:
            result = compute(batch)
        except Exception as error:
            if not out_of_memory(error):
                raise
            dropped = device is not None and SHELF.drop_oldest(device_name(device), keep=1)
            if not dropped:
                batch = _smaller(batch, error)
        else:
            yield result
            continue
        # Out here the error is gone, and with it the half-made results that its traceback kept.
        free_memory()
        budget = budget if dropped else max(1, tokens // 2)
        waiting.extendleft(reversed(batch))


def _smaller(batch: list[Row], error: Exception) -> list[Row]:
    """The same rows in a form that fits into half the memory."""
    if len(batch) > 1:
        return batch
    (row,) = batch
    half = len(row.questions) // 2
    if half == 0:
        raise BackboneError(
            f"there is no memory for a single question of {row.tokens} tokens. Free some, use a smaller dtype"
            " (int8, int4), or shorten the documents."
        ) from error
    return [Row(row.document, row.questions[:half]), Row(row.document, row.questions[half:])]
