"""From log-odds to probabilities and decisions.

    p_i(x) = sigmoid(u_i(x) / T),    label i is predicted where p_i(x) >= tau                    (Section 3.5)

T and tau are fitted on a few hundred labelled documents: T by likelihood, tau by micro-F1.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray

TEMPERATURES = (0.05, 20.0)  # where T is searched


class TemperatureThreshold(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One temperature and one threshold for all labels.

    `transform` maps log-odds [n_documents, n_labels] to probabilities, `predict` to decisions. Log-odds of -inf mean
    that a label was not asked: probability 0, never predicted, and left out of the fit.
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fits on log-odds `X` and the gold indicator `y`, both [n_documents, n_labels]."""
        log_odds = self._check(X, reset=True)
        gold = _indicator(y, log_odds.shape)
        asked = np.isfinite(log_odds)
        self.temperature_ = _best_temperature(log_odds[asked], gold[asked])
        self.threshold_ = _best_threshold(expit(log_odds[asked] / self.temperature_), gold[asked], int(gold.sum()))
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(expit(self._check(X, reset=False) / self.temperature_))

    def predict(self, X: npt.ArrayLike) -> BoolArray:
        check_is_fitted(self)
        log_odds = self._check(X, reset=False)
        asked = np.isfinite(log_odds)  # a threshold of 0 must not predict what was never asked
        return np.asarray(asked & (expit(log_odds / self.temperature_) >= self.threshold_))

    @classmethod
    def unfitted(cls, n_labels: int, threshold: float = 0.5) -> Self:
        """The state before any labelled document was seen: T = 1."""
        return cls.restore({"temperature": 1.0, "threshold": threshold}, n_labels)

    def state(self) -> dict[str, float]:
        """What was fitted, as JSON values."""
        check_is_fitted(self)
        return {"temperature": self.temperature_, "threshold": self.threshold_}

    @classmethod
    def restore(cls, state: dict[str, float], n_labels: int) -> Self:
        calibration = cls()
        calibration.temperature_, calibration.threshold_ = float(state["temperature"]), float(state["threshold"])
        calibration.n_features_in_ = n_labels
        if not (calibration.temperature_ > 0 and 0 <= calibration.threshold_ <= 1):
            raise SetScoreError(f"a temperature above 0 and a threshold in [0, 1] are needed, got {state}.")
        return calibration

    def _check(self, X: npt.ArrayLike, *, reset: bool) -> FloatArray:
        log_odds = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        if np.isnan(log_odds).any() or np.isposinf(log_odds).any():
            raise ValueError("log-odds hold NaN or inf; only -inf (not asked) is allowed.")
        return np.asarray(log_odds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _indicator(y: npt.ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    if y is None:
        raise ValueError("calibration requires y to be passed, but the target y is None.")
    gold = np.asarray(y)
    if gold.ndim == 1 and shape[1] == 1:
        gold = gold[:, None]
    if gold.shape != shape:
        raise ValueError(f"gold must be an indicator of shape {shape} like the log-odds, got shape {gold.shape}.")
    if type_of_target(gold) not in ("binary", "multilabel-indicator") or not np.isin(gold, (0, 1)).all():
        raise ValueError("gold must hold only 0 and 1.")
    return gold.astype(np.bool_)


def _best_temperature(log_odds: FloatArray, gold: BoolArray) -> float:
    """The T that makes the gold answers most likely; 1 when there is nothing to learn from."""
    if gold.size == 0 or gold.all() or not gold.any():
        return 1.0
    signed = np.where(gold, log_odds, -log_odds)

    def loss(log_temperature: float) -> float:
        return float(np.logaddexp(0, -signed / np.exp(log_temperature)).mean())

    low, high = np.log(TEMPERATURES)
    return float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded").x))


def _best_threshold(probabilities: FloatArray, gold: BoolArray, positives: int) -> float:
    """The cut with the highest micro-F1, exactly: every distinct probability is tried; of equals the highest cut.

    `positives` counts all gold labels, those never asked included, because they are missed at every cut.
    """
    if positives == 0 or not gold.any():
        return 0.5
    order = np.argsort(-probabilities, kind="stable")
    ranked, hits = probabilities[order], np.cumsum(gold[order])
    last_of_ties = np.append(ranked[1:] != ranked[:-1], True)
    f1 = 2 * hits / (np.arange(1, len(ranked) + 1) + positives)
    best = int(np.argmax(np.where(last_of_ties, f1, -1.0)))
    below = ranked[best + 1] if best + 1 < len(ranked) else 0.0
    halfway = (ranked[best] + below) / 2  # so that rounding cannot move the cut
    return float(halfway if halfway > below else ranked[best])  # between two neighbouring floats there is no halfway
