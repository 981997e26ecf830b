"""Thresholds per label, shrunk toward the global one.

Each label's best cut on its own is noise when it has a handful of gold documents. The cut used is

    t_i = (n_i own_i + k global) / (n_i + k),    n_i gold documents of label i,

so a label never seen gets the global cut and one seen often its own. k is chosen by cross-validated micro-F1. Cuts are
exact and lie between log-odds: with the global cut, any increasing transformation of the scores gives the same
decisions on the slice.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from setscore.calibration.base import Calibration
from setscore.calibration.folds import assign
from setscore.calibration.objectives import best_cut, halfway
from setscore.calibration.temperature import best_temperature
from setscore.metrics import Counts, micro_f1
from setscore.records import BoolArray, FloatArray

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, np.inf)  # inf: the global cut for all


class ShrunkCalibration(Calibration):
    """Fitted: `cuts_` [n_labels] in log-odds, `temperature_`, `strength_`."""

    name: ClassVar[str] = "shrunk"

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray) -> str:
        fold, margins = assign(len(log_odds)), {k: np.empty(log_odds.shape) for k in STRENGTHS}
        for number in range(fold.max() + 1):
            inside = fold == number
            cuts = Cuts.of(log_odds[~inside], gold[~inside])
            for strength in STRENGTHS:
                margins[strength][inside] = log_odds[inside] - cuts.shrunk(strength)
        scores = {k: float(micro_f1(Counts.of(gold, margin >= 0))) for k, margin in margins.items()}
        self.strength_ = max(scores, key=lambda k: (scores[k], k))  # of equals the strongest
        self.cuts_ = Cuts.of(log_odds, gold).shrunk(self.strength_)
        asked = np.isfinite(log_odds)
        self.temperature_ = best_temperature((log_odds - self.cuts_)[asked], gold[asked])
        return f"thresholds per label, shrunk to the global one with strength {self.strength_:g} by cross-validation"

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:
        if self.objective != "micro_f1":
            return super()._fit_thresholds(log_odds, gold)
        return np.full(log_odds.shape[1], 0.5)  # the cuts are the decision

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return np.asarray((log_odds - self.cuts_) / self.temperature_)


@dataclass(frozen=True)
class Cuts:
    """The best cuts in log-odds: each label's own [n_labels], the common one, and the gold documents behind each."""

    own: FloatArray
    common: float
    gold: FloatArray

    @classmethod
    def of(cls, log_odds: FloatArray, gold: BoolArray) -> "Cuts":
        asked = np.isfinite(log_odds)
        common = _cut(log_odds[asked], gold[asked], int(gold.sum()))
        own = np.full(log_odds.shape[1], common)
        for i in np.flatnonzero((gold & asked).any(axis=0)):
            own[i] = _cut(log_odds[asked[:, i], i], gold[asked[:, i], i], int(gold[:, i].sum()))
        return cls(own, common, (gold & asked).sum(axis=0).astype(np.float64))

    def shrunk(self, strength: float) -> FloatArray:
        if np.isinf(strength):
            return np.full(self.own.shape, self.common)
        return (self.gold * self.own + strength * self.common) / (self.gold + strength)


def _cut(log_odds: FloatArray, gold: BoolArray, positives: int) -> float:
    """`best_cut` works on [0, 1]; the cut between the same neighbours in log-odds."""
    if not gold.any():
        return 0.0
    values, ranks = np.unique(log_odds, return_inverse=True)
    place = int(np.ceil(best_cut((ranks + 1) / len(values), gold, positives) * len(values))) - 1
    below = values[place - 1] if place else values[0] - 1
    return halfway(float(values[place]), float(below))
