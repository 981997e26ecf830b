"""Isotonic regression over all pairs: any increasing map from log-odds to probabilities, where data allow."""

from typing import ClassVar

import numpy as np
from scipy.special import logit

from setscore.calibration.base import Calibration
from setscore.calibration.temperature import best_temperature
from setscore.records import BoolArray, FloatArray, IntArray

LEAST_PAIRS = 50  # gold and others; below this a step function fits noise; a temperature is used and `choice_` says so
EDGE = 1e-4  # probabilities stay this far from 0 and 1


class IsotonicCalibration(Calibration):
    """Fitted: `knots_` [k] log-odds and `values_` [k] probabilities, linear in between; else `temperature_`."""

    name: ClassVar[str] = "isotonic"
    fitted: ClassVar[tuple[str, ...]] = ("temperature_", "knots_", "values_")

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:  # noqa: ARG002
        asked = np.isfinite(log_odds)
        u, y = log_odds[asked], gold[asked]
        positives = int(y.sum())
        self.temperature_, self.knots_, self.values_ = best_temperature(u, y), np.empty(0), np.empty(0)
        if min(positives, len(y) - positives) < LEAST_PAIRS:
            return (
                f"temperature {self.temperature_:.3g}: {positives} gold and {len(y) - positives} other pairs are too"
                f" few for isotonic regression, which takes {LEAST_PAIRS} of each"
            )
        from sklearn.isotonic import IsotonicRegression

        fitted = IsotonicRegression(y_min=EDGE, y_max=1 - EDGE, out_of_bounds="clip").fit(u, y)
        self.knots_, self.values_ = fitted.X_thresholds_, fitted.y_thresholds_
        return f"isotonic regression with {len(self.knots_)} knots"

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        if not len(self.knots_):
            return log_odds / self.temperature_
        return np.asarray(logit(np.clip(np.interp(log_odds, self.knots_, self.values_), EDGE, 1 - EDGE)))
