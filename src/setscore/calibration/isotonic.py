"""Isotonic regression over all pairs: any increasing map from log-odds to probabilities, where data allow."""

from typing import ClassVar

import numpy as np
from scipy.special import logit
from sklearn.isotonic import IsotonicRegression

from setscore.calibration.base import Calibration
from setscore.calibration.temperature import best_temperature
from setscore.records import BoolArray, FloatArray

LEAST_POSITIVES = 50  # below this a step function fits noise; a temperature is used and `choice_` says so
EDGE = 1e-4  # probabilities stay this far from 0 and 1


class IsotonicCalibration(Calibration):
    """Fitted: `knots_` [k] log-odds and `values_` [k] probabilities, linear in between."""

    name: ClassVar[str] = "isotonic"

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray) -> str:
        asked = np.isfinite(log_odds)
        u, y = log_odds[asked], gold[asked]
        positives = int(y.sum())
        if min(positives, len(y) - positives) < LEAST_POSITIVES:
            temperature = best_temperature(u, y)
            self.knots_ = np.linspace(u.min() - 1e-9, u.max() + 1e-9, 256)
            self.values_ = 1 / (1 + np.exp(-self.knots_ / temperature))
            return f"only {positives} of {len(y)} pairs are gold, too few for isotonic regression: temperature instead"
        fitted = IsotonicRegression(y_min=EDGE, y_max=1 - EDGE, out_of_bounds="clip").fit(u, y)
        self.knots_, self.values_ = fitted.X_thresholds_, fitted.y_thresholds_
        return f"isotonic regression with {len(self.knots_)} knots"

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return np.asarray(logit(np.clip(np.interp(log_odds, self.knots_, self.values_), EDGE, 1 - EDGE)))
