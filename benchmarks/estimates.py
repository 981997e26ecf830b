"""Estimates with bootstrap intervals that can be averaged: every estimate keeps what it was on each drawn sample."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setscore.metrics import Counts, macro_f1, micro_f1
from setscore.metrics.measures import ECE_BINS

ROUNDS, SEED, LEVEL = 2000, 13, 95  # of the bootstrap; percent


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, and the same of each drawn sample [rounds]."""

    value: float
    drawn: np.ndarray

    @property
    def interval(self) -> tuple[float, float]:
        tail = (100 - LEVEL) / 2
        low, high = np.percentile(self.drawn, [tail, 100 - tail])
        return float(low), float(high)

    def show(self, digits: int = 1, *, scale: float = 100.0) -> str:
        """The number and its interval: 61.2 (55.0 to 67.1)."""
        low, high = self.interval
        return f"{scale * self.value:.{digits}f} ({scale * low:.{digits}f} to {scale * high:.{digits}f})"

    def plain(self) -> dict[str, float]:
        """As JSON values."""
        low, high = self.interval
        return {"value": self.value, "low": low, "high": high}


def draws(count: int, seed: int = SEED) -> np.ndarray:
    """How often each of `count` things is drawn in each round [rounds, count]."""
    return np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=ROUNDS).astype(np.float64)


def mean(values: Sequence[float], seed: int = SEED) -> Estimate:
    """Of single measurements, which are drawn again."""
    numbers = np.asarray(values, dtype=np.float64)
    return Estimate(float(numbers.mean()), draws(len(numbers), seed) @ numbers / len(numbers))


def average(several: Sequence[Estimate]) -> Estimate:
    """Of estimates on different documents, which were drawn apart."""
    return Estimate(float(np.mean([one.value for one in several])), np.mean([one.drawn for one in several], axis=0))


def f1(gold: np.ndarray, predicted: np.ndarray, seed: int = SEED) -> dict[str, Estimate]:
    """Micro and macro F1; documents are drawn again.

    In a macro mean a label that no drawn document knows keeps its value: counting it as 0 would put the interval below
    the estimate.
    """
    whole, drawn = Counts.of(gold, predicted), Counts.of(gold, predicted, draws(len(gold), seed))
    known = drawn.tp + drawn.fp + drawn.fn > 0
    macro = np.where(known, drawn.f1(), whole.f1()).mean(axis=-1)
    return {
        "micro_f1": Estimate(float(micro_f1(whole)), micro_f1(drawn)),
        "macro_f1": Estimate(float(macro_f1(whole)), macro),
    }


def ece(gold: np.ndarray, probabilities: np.ndarray, seed: int = SEED) -> Estimate:
    """Expected calibration error over all pairs of document and label; documents are drawn again.

    It sums sizes, so drawing again adds noise to it: that much is taken off, as in `setscore.metrics.bootstrap`.
    """
    which = np.minimum((probabilities * ECE_BINS).astype(np.int64), ECE_BINS - 1)
    surplus = np.stack([((probabilities - gold) * (which == one)).sum(axis=1) for one in range(ECE_BINS)], axis=1)
    weights = np.concatenate([np.ones((1, len(gold))), draws(len(gold), seed)])
    errors = np.abs(weights @ surplus).sum(axis=1) / gold.size
    noise = np.median(errors[1:]) - errors[0]
    return Estimate(float(errors[0]), np.clip(errors[1:] - noise, 0.0, 1.0))
