"""One temperature for all labels: p = sigmoid(u / T), T by likelihood (Guo et al., 2017); or one that is not fitted.

`UnfittedCalibration` stands in before any labelled document was seen: three numbers per backbone, none of them the
user's to fit.

    p_i(x) = sigmoid((u_i(x) + c (alone_i(x) - g beside_i(x))) / T)

The competition c lies between independent questions (0) and a choice of one label (1): where no other label stands out
(alone, see `competition.py`) a label needs up to c less. The handicap g says whether it needs more beside a likely one:
with 1 as much as that one stands out, with 0 nothing. T only sets how sure the probabilities sound. With c = 0 and
T = 1 these are the model's own.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from setscore.calibration.base import Calibration
from setscore.competition import standing
from setscore.errors import SetScoreError
from setscore.metrics import Counts, micro_f1
from setscore.records import BoolArray, FloatArray, IntArray

TEMPERATURES = (0.05, 20.0)  # where T is searched
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, np.inf)  # inf: the global cut for all


class UnfittedCalibration(Calibration):
    """`temperature`, `competition` and `handicap` as above, one `threshold` for every label; `fit` learns nothing."""

    name: ClassVar[str] = "unfitted"

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        competition: float = 0.0,
        handicap: float = 1.0,
        threshold: float = 0.5,
        least: int = 0,
        most: int | None = None,
        margin: float = 0.0,
    ) -> None:
        super().__init__(least=least, most=most, margin=margin)
        self.temperature = temperature
        self.competition = competition
        self.handicap = handicap
        self.threshold = threshold

    def for_labels(self, n_labels: int) -> Self:
        """Ready to be used on `n_labels` labels; there is nothing to fit."""
        self.check_options()
        self.n_features_in_ = n_labels
        self.thresholds_ = np.full(n_labels, float(self.threshold))
        self.choice_ = f"nothing fitted: temperature {self.temperature:g}, competition {self.competition:g}"
        return self

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:  # noqa: ARG002
        return self.for_labels(log_odds.shape[1]).choice_

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:  # noqa: ARG002
        return self.thresholds_

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        alone, beside = standing(log_odds)
        return (log_odds + self.competition * (alone - self.handicap * beside)) / self.temperature

    def _probabilities(self, log_odds: FloatArray) -> FloatArray:
        return np.where(np.isfinite(log_odds), expit(self._logits(log_odds)), 0.0)

    def check_options(self) -> None:
        super().check_options()
        if not self.temperature > 0:
            raise SetScoreError(f"a temperature above 0 is needed, got {self.temperature}.")
        if not 0 <= self.competition <= 1:
            raise SetScoreError(f"competition lies between 0 (independent) and 1 (one label), got {self.competition}.")
        if not 0 <= self.handicap <= 1:
            raise SetScoreError(f"a handicap lies between 0 (none) and 1, got {self.handicap}.")
        if not 0 <= self.threshold <= 1:
            raise SetScoreError(f"a threshold lies between 0 and 1, got {self.threshold}.")


class TemperatureCalibration(Calibration):
    """The plainest calibration: a temperature, which never changes an ordering, and thresholds."""

    name: ClassVar[str] = "temperature"
    fitted: ClassVar[tuple[str, ...]] = ("temperature_",)

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:  # noqa: ARG002
        asked = np.isfinite(log_odds)
        self.temperature_ = best_temperature(log_odds[asked], gold[asked])
        return f"temperature {self.temperature_:.3g} by likelihood"

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return log_odds / self.temperature_


class ShrunkCalibration(Calibration):
    """Thresholds per label, shrunk toward the global one.

    Each label's best cut on its own is noise when it has a handful of gold documents. The cut used is

        t_i = (n_i own_i + k global) / (n_i + k),    n_i gold documents of label i,

    so a label never seen gets the global cut and one seen often its own. k is chosen by cross-validated micro-F1. Cuts
    are exact and lie between log-odds: with the global cut, any increasing transformation of the scores gives the same
    decisions on the slice.

    Fitted: `cuts_` [n_labels] in log-odds, `temperature_`, `strength_`.
    """

    name: ClassVar[str] = "shrunk"
    fitted: ClassVar[tuple[str, ...]] = ("cuts_", "temperature_", "strength_")

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:
        margins = {k: np.empty(log_odds.shape) for k in STRENGTHS}
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
        seen = (gold & asked).sum(axis=0).astype(np.float64)
        common = float(_cuts(np.where(asked, log_odds, -np.inf).reshape(-1, 1), gold.reshape(-1, 1))[0])
        own = np.where(seen > 0, _cuts(log_odds, gold), common)
        return cls(own, common, seen)

    def shrunk(self, strength: float) -> FloatArray:
        if np.isinf(strength):
            return np.full(self.own.shape, self.common)
        return (self.gold * self.own + strength * self.common) / (self.gold + strength)


def _cuts(log_odds: FloatArray, gold: BoolArray) -> FloatArray:
    """For each column the cut with the highest F1, halfway to the next lower log-odds; of equals the highest cut.

    Every distinct value is tried, in all columns at once. What was not asked (-inf) comes last in the order and is
    never taken, but its gold labels are missed at every cut. A column without gold that was asked gets 0.
    """
    if not len(log_odds):
        return np.zeros(log_odds.shape[1])
    asked = np.isfinite(log_odds)
    order = np.argsort(-log_odds, axis=0, kind="stable")
    ranked, hits = np.take_along_axis(log_odds, order, axis=0), np.take_along_axis(gold & asked, order, axis=0)
    below = np.append(ranked[1:], np.full((1, ranked.shape[1]), -np.inf), axis=0)
    f1 = 2 * hits.cumsum(axis=0) / (np.arange(1, len(ranked) + 1)[:, None] + gold.sum(axis=0))
    best = np.argmax(np.where(np.isfinite(ranked) & (below != ranked), f1, -1.0), axis=0)[None]
    taken, under = (np.take_along_axis(part, best, axis=0)[0] for part in (ranked, below))
    under = np.where(np.isfinite(under), under, taken - 1)
    middle = (taken + under) / 2
    cuts = np.where(middle > under, middle, taken)  # between two neighbouring floats there is no middle
    return np.where(hits.any(axis=0), cuts, 0.0)


def best_temperature(log_odds: FloatArray, gold: BoolArray) -> float:
    """The T that makes the gold answers most likely; 1 when there is nothing to learn from."""
    from scipy.optimize import minimize_scalar  # here: who only classifies need not wait for it

    if gold.size == 0 or gold.all() or not gold.any():
        return 1.0
    signed = np.where(gold, log_odds, -log_odds)

    def loss(log_temperature: float) -> float:
        return float(np.logaddexp(0, -signed / np.exp(log_temperature)).mean())

    low, high = np.log(TEMPERATURES)
    return float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded").x))
