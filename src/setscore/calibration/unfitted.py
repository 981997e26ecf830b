"""What stands in before any labelled document was seen; two numbers per backbone, none of them the user's to fit.

    p_i(x) = sigmoid((u_i(x) + c (1 - r_i(x))) / T),    r_i = log(1 + sum_{j != i} exp(k u_j)) / k,  k = 4

r is a soft maximum of 0 and the other labels' log-odds: near 0 while no other label stands out, near the highest of
them when one does. So c lies between independent questions (0) and a choice of one label (1): where nothing else
applies a label needs a little less, beside a likely one a little more. T only sets how sure the probabilities sound.
With c = 0 and T = 1 these are the model's own. The order of the labels plays no part, and adding a label that does not
apply changes nothing.
"""

from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, logsumexp

from setscore.calibration.base import Calibration
from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray, IntArray

SHARPNESS = 4.0  # k: how nearly the soft maximum is the maximum


class UnfittedCalibration(Calibration):
    """`temperature` T and `competition` c as above, the same `threshold` for every label; `fit` learns nothing."""

    name: ClassVar[str] = "unfitted"

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        competition: float = 0.0,
        threshold: float = 0.5,
        least: int = 0,
        most: int | None = None,
        margin: float = 0.0,
    ) -> None:
        super().__init__(least=least, most=most, margin=margin)
        self.temperature = temperature
        self.competition = competition
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
        return (log_odds + self.competition * (1.0 - others(log_odds))) / self.temperature

    def _probabilities(self, log_odds: FloatArray) -> FloatArray:
        return np.where(np.isfinite(log_odds), expit(self._logits(log_odds)), 0.0)

    def check_options(self) -> None:
        super().check_options()
        if not self.temperature > 0:
            raise SetScoreError(f"a temperature above 0 is needed, got {self.temperature}.")
        if not 0 <= self.competition <= 1:
            raise SetScoreError(f"competition lies between 0 (independent) and 1 (one label), got {self.competition}.")
        if not 0 <= self.threshold <= 1:
            raise SetScoreError(f"a threshold lies between 0 and 1, got {self.threshold}.")


def others(log_odds: FloatArray) -> FloatArray:
    """r [n_documents, n_labels]: for each label the soft maximum of 0 and the document's other log-odds."""
    scaled = SHARPNESS * log_odds
    everyone = np.logaddexp(0.0, logsumexp(scaled, axis=1, keepdims=True))
    # Taking a label out of the sum is safe for all but the highest, which may be nearly the whole of it.
    rows, highest = np.arange(len(scaled)), scaled.argmax(axis=1)
    rest = scaled.copy()
    rest[rows, highest] = -np.inf
    share = np.exp(scaled - everyone)
    share[rows, highest] = 0.0
    found = everyone + np.log1p(-share)
    found[rows, highest] = np.logaddexp(0.0, logsumexp(rest, axis=1))
    return np.asarray(found / SHARPNESS)
