"""Rankings of labels, and several of them fused by reciprocal rank (Cormack, Clarke and Buettcher, 2009).

Neither depends on the order of the inventory: equal scores share a rank. An inventory sorted by frequency would
otherwise lend its order to whatever ties, and a shortlist would look better than it is.
"""

from collections.abc import Sequence

import numpy as np

from setscore.records import FloatArray, IntArray

RANK_OFFSET = 60.0  # of the paper that proposed the fusion


def ranked(scores: FloatArray, depth: int) -> tuple[IntArray, FloatArray]:
    """The labels with the highest scores [at most depth] and their ranks from 1; -inf is no evidence, so no rank.

    Equal scores have equal ranks: one more than the number of labels above them.
    """
    known = np.flatnonzero(np.isfinite(scores))
    if len(known) > depth:
        least = np.partition(scores[known], len(known) - depth)[len(known) - depth]
        known = known[scores[known] >= least]  # ties at the end come along, so that none is preferred
    order = known[np.argsort(-scores[known], kind="stable")]
    values = scores[order]
    first = np.append(True, values[1:] != values[:-1]) if len(values) else np.zeros(0, dtype=np.bool_)
    ranks = np.maximum.accumulate(np.where(first, np.arange(1, len(values) + 1), 0)).astype(np.float64)
    return order, ranks


def fuse(rankings: Sequence[FloatArray], weights: Sequence[float], depth: int) -> FloatArray:
    """Sum over rankings of weight / (60 + rank) [m]; -inf for a label that none of them ranks."""
    total = np.zeros(len(rankings[0]))
    for scores, weight in zip(rankings, weights, strict=True):
        labels, ranks = ranked(scores, depth)
        total[labels] += weight / (RANK_OFFSET + ranks)
    return np.where(total > 0, total, -np.inf)


def best(scores: FloatArray, k: int, tie_breaker: FloatArray | None = None) -> IntArray:
    """The k labels with the highest scores, fewer where fewer have one; ties by `tie_breaker`, then by place."""
    near, _ = ranked(scores, k)
    ties = scores if tie_breaker is None else tie_breaker
    return near[np.lexsort((near, -ties[near], -scores[near]))[:k]]
