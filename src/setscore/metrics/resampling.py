"""How sure one can be of a metric, and of the difference between two runs: documents are drawn again."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setscore.metrics.measures import (
    ECE_BINS,
    STATISTICS,
    Counts,
    checked_probabilities,
    indicators,
    ratio,
    same_shape,
)
from setscore.records import BoolArray, FloatArray


@dataclass(frozen=True)
class Interval:
    """An estimate with its bootstrap interval."""

    value: float
    low: float
    high: float


def bootstrap(
    gold: npt.ArrayLike,
    predicted: npt.ArrayLike,
    probabilities: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    rounds: int = 1000,
    seed: int = 13,
) -> dict[str, Interval]:
    """Percentile intervals from resampled documents: of F1s, precision and recall, Jaccard, exact match and Hamming.

    With `probabilities` also of ECE and Brier score. In macro means a label that none of the drawn documents has keeps
    its value: it was measured, and counting it as 0 would put the interval below the estimate. The ECE sums the
    sizes of gaps, and drawing documents again adds noise to every gap, so that all of its drawn values may lie above
    the estimate: they are moved by what their median is too high.
    """
    y, p = indicators(gold, predicted)
    drawn = _resamples(len(y), rounds, seed)
    whole, resampled = _whole_and_drawn(y, p, drawn)
    if probabilities is not None:
        scores = checked_probabilities(probabilities)
        same_shape(y, scores)
        whole |= _weighted_probability_metrics(y, scores, np.ones((1, len(y))))
        resampled |= _weighted_probability_metrics(y, scores, drawn)
        noise = np.median(resampled["ece"]) - whole["ece"]
        resampled["ece"] = np.clip(resampled["ece"] - noise, 0.0, 1.0)
    found = {}
    for name, values in resampled.items():
        low, high = np.percentile(values, _tails(level))
        found[name] = Interval(float(whole[name][0]), float(low), float(high))
    return found


@dataclass(frozen=True)
class Comparison:
    """Run b minus run a: the difference, its bootstrap interval and the p-value of a randomisation test."""

    difference: float
    low: float
    high: float
    p_value: float


def compare(
    gold: npt.ArrayLike,
    run_a: npt.ArrayLike,
    run_b: npt.ArrayLike,
    *,
    level: float = 0.95,
    rounds: int = 1000,
    seed: int = 13,
) -> dict[str, Comparison]:
    """Whether two runs on the same documents differ, in each metric of the decisions that `bootstrap` has.

    The interval resamples documents, the same ones for both runs. The p-value swaps the two runs' decisions on randomly
    chosen documents and counts how often the difference is at least as large (two-sided, never 0).
    """
    y, a = indicators(gold, run_a)
    _, b = indicators(gold, run_b)
    swap = np.random.default_rng(seed + 1).random((rounds, len(y))) < 0.5
    keep, other = (~swap).astype(np.float64), swap.astype(np.float64)
    mixed_a, mixed_b = (_Sums.of(y, x, keep).plus(_Sums.of(y, z, other)).metrics() for x, z in ((a, b), (b, a)))
    drawn = _resamples(len(y), rounds, seed)
    (whole_a, drawn_a), (whole_b, drawn_b) = (_whole_and_drawn(y, run, drawn) for run in (a, b))
    found = {}
    for name in whole_a:
        difference = float(whole_b[name][0] - whole_a[name][0])
        low, high = np.percentile(drawn_b[name] - drawn_a[name], _tails(level))
        null = np.abs(mixed_b[name] - mixed_a[name])
        p_value = (1 + int((null >= abs(difference) - 1e-12).sum())) / (rounds + 1)
        found[name] = Comparison(difference, float(low), float(high), p_value)
    return found


@dataclass(frozen=True)
class _Sums:
    """What the metrics of decisions follow from, summed over documents that are weighted [rounds, n_documents].

    counts     per label [rounds, n_labels]
    documents  per metric that is a mean over documents: its sum [rounds]
    total      documents [rounds]
    """

    counts: Counts
    documents: Mapping[str, FloatArray]
    total: FloatArray

    @classmethod
    def of(cls, y: BoolArray, p: BoolArray, weights: FloatArray) -> "_Sums":
        each = Counts.of(y.T, p.T)  # per document
        values = {
            "sample_f1": each.f1(),
            "jaccard": ratio(each.tp, each.tp + each.fp + each.fn),
            "exact_match": (y == p).all(axis=1).astype(np.float64),
            "hamming_loss": (y != p).mean(axis=1),
        }
        sums = {name: weights @ value for name, value in values.items()}
        return cls(Counts.of(y, p, weights), sums, weights.sum(axis=-1))

    def plus(self, other: "_Sums") -> "_Sums":
        documents = {name: value + other.documents[name] for name, value in self.documents.items()}
        return _Sums(_add(self.counts, other.counts), documents, self.total + other.total)

    def metrics(self) -> dict[str, FloatArray]:
        """Each metric [rounds]."""
        micro = self.counts.micro()
        found = {name: statistic(self.counts) for name, statistic in STATISTICS.items()}
        found |= {name: ratio(value, self.total) for name, value in self.documents.items()}
        found |= {"micro_precision": micro.precision(), "micro_recall": micro.recall()}
        means = {"macro_precision": self.counts.precision(), "macro_recall": self.counts.recall()}
        return found | {name: np.asarray(value.mean(axis=-1)) for name, value in means.items()}

    def macro_filled(self, whole: Counts) -> dict[str, FloatArray]:
        """Macro means [rounds] in which a label that no document knows has the value that it has on the whole."""
        mine = self.counts
        parts = {
            "macro_f1": (mine.tp + mine.fp + mine.fn, mine.f1(), whole.f1()),
            "macro_precision": (mine.tp + mine.fp, mine.precision(), whole.precision()),
            "macro_recall": (mine.tp + mine.fn, mine.recall(), whole.recall()),
        }
        return {name: np.where(known > 0, own, kept).mean(axis=-1) for name, (known, own, kept) in parts.items()}


def _whole_and_drawn(y: BoolArray, p: BoolArray, drawn: FloatArray) -> tuple[dict[str, FloatArray], ...]:
    """Each metric on all documents [1], and on those that were drawn [rounds]."""
    whole, resampled = (_Sums.of(y, p, weights) for weights in (np.ones((1, len(y))), drawn))
    return whole.metrics(), resampled.metrics() | resampled.macro_filled(whole.counts)


def _weighted_probability_metrics(y: BoolArray, p: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
    """ECE and Brier score [rounds] over all pairs of the weighted documents."""
    rows, which = np.repeat(np.arange(len(y)), y.shape[1]), np.minimum((p * ECE_BINS).astype(np.int64), ECE_BINS - 1)
    place, shape = rows * ECE_BINS + which.ravel(), (len(y), ECE_BINS)
    promised, true = (np.bincount(place, part.ravel(), len(y) * ECE_BINS).reshape(shape) for part in (p, y))
    pairs = weights.sum(axis=-1) * y.shape[1]
    gap = np.abs(weights @ promised - weights @ true).sum(axis=-1)  # count times |confidence - accuracy| of each bin
    return {"ece": ratio(gap, pairs), "brier": ratio(weights @ ((p - y) ** 2).sum(axis=1), pairs)}


def _tails(level: float) -> list[float]:
    return [100 * (1 - level) / 2, 100 * (1 + level) / 2]


def _resamples(documents: int, rounds: int, seed: int) -> FloatArray:
    """How often each document is drawn in each round, [rounds, documents]."""
    drawn = np.random.default_rng(seed).multinomial(documents, np.full(documents, 1 / documents), size=rounds)
    return drawn.astype(np.float64)


def _add(a: Counts, b: Counts) -> Counts:
    return Counts(a.tp + b.tp, a.fp + b.fp, a.fn + b.fn)
