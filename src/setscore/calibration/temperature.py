"""One temperature for all labels: p = sigmoid(u / T), T by likelihood (Guo et al., 2017)."""

from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from setscore.calibration.base import Calibration
from setscore.records import BoolArray, FloatArray

TEMPERATURES = (0.05, 20.0)  # where T is searched


class TemperatureCalibration(Calibration):
    """The plainest calibration: a temperature, which never changes an ordering, and thresholds."""

    name: ClassVar[str] = "temperature"
    fitted: ClassVar[tuple[str, ...]] = ("temperature_",)

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray) -> str:
        asked = np.isfinite(log_odds)
        self.temperature_ = best_temperature(log_odds[asked], gold[asked])
        return f"temperature {self.temperature_:.3g} by likelihood"

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return log_odds / self.temperature_


def best_temperature(log_odds: FloatArray, gold: BoolArray) -> float:
    """The T that makes the gold answers most likely; 1 when there is nothing to learn from."""
    if gold.size == 0 or gold.all() or not gold.any():
        return 1.0
    signed = np.where(gold, log_odds, -log_odds)

    def loss(log_temperature: float) -> float:
        return float(np.logaddexp(0, -signed / np.exp(log_temperature)).mean())

    low, high = np.log(TEMPERATURES)
    return float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded").x))
