"""The paper's calibrator, faithfully (Section 3.5 and the appendix "Calibration grid").

T in {0.5, 0.75, 1, 1.25, 1.5, 2} and thresholds in {0.1, ..., 0.9}, three strategies, the best by micro-F1 on the very
slice they were fitted on. Ties, which the paper leaves open, go to the first in this order: global, expected
cardinality, per label; then the temperature nearest to 1, of two as near the lower; then the highest threshold (so a
label without gold documents in the slice gets 0.9 under "per_label", which is the kindest reading).
"""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from setscore.calibration.base import Calibration
from setscore.calibration.thresholds import halfway
from setscore.errors import SetScoreError, unknown_name
from setscore.metrics import Counts
from setscore.records import BoolArray, FloatArray, IntArray

TEMPERATURES = (1.0, 0.75, 1.25, 0.5, 1.5, 2.0)  # nearest to 1 first
THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(9, 0, -1))  # the highest first
STRATEGIES = ("global", "cardinality", "per_label")


class PaperCalibration(Calibration):
    """`strategy` is "auto" or one of global, cardinality, per_label. The objective is always validation micro-F1."""

    name: ClassVar[str] = "paper"
    fitted: ClassVar[tuple[str, ...]] = ("strategy_", "temperature_")

    def __init__(self, *, strategy: str = "auto", least: int = 0, most: int | None = None, margin: float = 0.0) -> None:
        super().__init__(least=least, most=most, margin=margin)
        self.strategy = strategy

    def check_options(self) -> None:
        super().check_options()
        if self.strategy not in ("auto", *STRATEGIES):
            raise SetScoreError(unknown_name("strategy", self.strategy, ("auto", *STRATEGIES)))

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:  # noqa: ARG002
        wanted = STRATEGIES if self.strategy == "auto" else (self.strategy,)
        asked, best = np.isfinite(log_odds), -1.0
        for strategy in wanted:
            for temperature in TEMPERATURES:
                probabilities = np.where(asked, expit(log_odds / temperature), 0.0)
                thresholds = _STRATEGIES[strategy](probabilities, gold)
                score = float(Counts.of(gold, asked & (probabilities >= thresholds)).micro().f1())
                if score > best:
                    best, self.strategy_, self.temperature_, self.thresholds_ = score, strategy, temperature, thresholds
        return f"{self.strategy_} thresholds at T = {self.temperature_:g}, micro-F1 {best:.3f} on the slice they fit"

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:  # noqa: ARG002
        return self.thresholds_  # found together with the temperature

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return log_odds / self.temperature_


def _global(probabilities: FloatArray, gold: BoolArray) -> FloatArray:
    scores = [float(Counts.of(gold, probabilities >= threshold).micro().f1()) for threshold in THRESHOLDS]
    return np.full(gold.shape[1], THRESHOLDS[int(np.argmax(scores))])


def _per_label(probabilities: FloatArray, gold: BoolArray) -> FloatArray:
    """The threshold with the highest F1 of each label."""
    f1 = np.stack([Counts.of(gold, probabilities >= threshold).f1() for threshold in THRESHOLDS])
    return np.asarray(np.array(THRESHOLDS)[np.argmax(f1, axis=0)])


def _cardinality(probabilities: FloatArray, gold: BoolArray) -> FloatArray:
    """The cut at which as many labels are predicted as are gold; not tied to the grid."""
    ranked, wanted = np.sort(probabilities, axis=None)[::-1], int(gold.sum())
    if wanted == 0:
        return np.ones(gold.shape[1])
    below = float(ranked[wanted]) if wanted < len(ranked) else 0.0
    return np.full(gold.shape[1], halfway(float(ranked[wanted - 1]), below))


_STRATEGIES = {"global": _global, "cardinality": _cardinality, "per_label": _per_label}
