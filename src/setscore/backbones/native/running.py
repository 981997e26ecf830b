"""Rows in batches of a token budget, with back-off when memory runs out: nothing is lost and nothing is done twice."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from setscore.backbones.native.layout import row_tokens
from setscore.backbones.packing import Documents, Question, Row
from setscore.errors import BackboneError

Result = TypeVar("Result")


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


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Long rows first, like lengths together; equal lengths by their tokens, so that no order of labels matters."""

    def key(row: Row) -> tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]]:
        return row_tokens(row), row.document, tuple(question.tokens for question in row.questions)

    return sorted(rows, key=key, reverse=True)


def in_batches(rows: Sequence[Row], batch_tokens: int, compute: Callable[[list[Row]], Result]) -> Iterator[Result]:
    """`compute` for batches of rows, each within `batch_tokens` (a longer row goes alone).

    A batch that runs out of memory has given nothing; its rows are taken again in smaller batches, and the budget stays
    smaller from there on.
    """
    waiting = deque(in_order(rows))
    budget = batch_tokens
    while waiting:
        batch = [waiting.popleft()]
        tokens = row_tokens(batch[0])
        while waiting and tokens + row_tokens(waiting[0]) <= budget:
            batch.append(waiting.popleft())
            tokens += row_tokens(batch[-1])
        try:
            result = compute(batch)
        except Exception as error:
            if not out_of_memory(error):
                raise
            batch = _smaller(batch, error)
        else:
            yield result
            continue
        # Out here the error is gone, and with it the half-made results that its traceback kept.
        free_memory()
        budget = max(1, tokens // 2)
        waiting.extendleft(reversed(batch))


def _smaller(batch: list[Row], error: Exception) -> list[Row]:
    """The same rows in a form that fits into half the memory."""
    if len(batch) > 1:
        return batch
    (row,) = batch
    half = len(row.questions) // 2
    if half == 0:
        raise BackboneError(
            f"there is no memory for a single question of {row_tokens(row)} tokens. Free some, use a smaller dtype"
            " (int8, int4), or shorten the documents."
        ) from error
    return [Row(row.document, row.questions[:half]), Row(row.document, row.questions[half:])]


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out; on the CPU torch has no class of its own for it."""
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))


def free_memory() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
