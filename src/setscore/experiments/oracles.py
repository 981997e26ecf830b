"""Thresholds tuned on the very documents they are measured on: never results, but what scores would allow."""

import numpy as np
from scipy.special import expit

from setscore.calibration.thresholds import best_cut
from setscore.experiments.scored import Scored
from setscore.records import BoolArray, IntArray


def oracle_decisions(test: Scored) -> dict[str, tuple[BoolArray, str]]:
    """Decisions [n, m] and what was chosen, by the name of the oracle. Each is the best there is in what it tunes."""
    probabilities, asked = expit(test.log_odds), np.isfinite(test.log_odds)
    common = best_cut(probabilities[asked], test.gold[asked], int(test.gold.sum()))
    return {
        "oracle global": (asked & (probabilities >= common), "one threshold with the highest micro-F1"),
        "oracle per label, micro": (_best_micro(test), "a threshold per label, together with the highest micro-F1"),
        "oracle per label, macro": (_best_macro(test), "for each label the threshold with its highest F1"),
    }


def _best_macro(test: Scored) -> BoolArray:
    """For each label the cut with the highest F1. One without gold documents has F1 0 everywhere: never predicted."""
    decisions = np.zeros(test.gold.shape, dtype=np.bool_)
    for i in np.flatnonzero(test.gold.any(axis=0)):
        hits, ends, order = _prefixes(test, int(i))
        best = int(np.argmax(2 * hits / (ends + test.gold[:, i].sum())))
        decisions[order[: ends[best]], i] = True
    return decisions


def _best_micro(test: Scored) -> BoolArray:
    """The cuts per label with the highest micro-F1, exactly.

    F1 = 2 tp / (predicted + gold) is a quotient, so Dinkelbach's iteration finds its maximum: for the F reached so far,
    each label takes the cut with the largest 2 tp - F predicted, until F no longer grows.
    """
    labels = [_prefixes(test, i) for i in range(test.gold.shape[1])]
    gold, reached = int(test.gold.sum()), -1.0
    f1, cuts = 0.0, [0] * len(labels)
    while f1 > reached:
        reached = f1
        found = [_largest(hits, ends, f1) for hits, ends, _ in labels]
        cuts = [cut for _, cut in found]
        f1 = 2 * sum(hits for hits, _ in found) / max(1, sum(cuts) + gold)
    decisions = np.zeros(test.gold.shape, dtype=np.bool_)
    for i, (cut, (_, _, order)) in enumerate(zip(cuts, labels, strict=True)):
        decisions[order[:cut], i] = True
    return decisions


def _prefixes(test: Scored, label: int) -> tuple[IntArray, IntArray, IntArray]:
    """Where the ranking of a label's documents can be cut: gold documents and documents before each cut, and the order.

    The first cut takes nothing; equal scores are never parted.
    """
    asked = np.flatnonzero(np.isfinite(test.log_odds[:, label]))
    order = asked[np.argsort(-test.log_odds[asked, label], kind="stable")]
    scores = test.log_odds[order, label]
    last_of_ties = np.append(scores[1:] != scores[:-1], True) if len(order) else np.zeros(0, dtype=np.bool_)
    ends = np.append(0, np.flatnonzero(last_of_ties) + 1)
    hits = np.append(0, np.cumsum(test.gold[order, label]))[ends]
    return hits, ends, order


def _largest(hits: IntArray, ends: IntArray, price: float) -> tuple[int, int]:
    """Gold documents and documents before the cut with the largest 2 tp - price predicted."""
    best = int(np.argmax(2 * hits - price * ends))
    return int(hits[best]), int(ends[best])
