"""Label-bias correction without any gold labels.

Some labels get high log-odds whatever the document says. Their mean over unlabelled documents is taken off,

    u_i(x) - mean_i + mean over labels,

so that every label starts at the same place. Fit it on the documents at hand (batch mean), or on content-free ones such
as "N/A" (contextual calibration, Zhao et al., 2021). It needs no gold labels and therefore knows nothing of how often a
label truly applies: where some labels are common and others rare, it can hurt. With gold labels, use "auto".
"""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from setscore.calibration.base import Calibration, fingerprint
from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray, IntArray


class BiasCalibration(Calibration):
    """`share` of the bias that is taken off, 0 to 1. Fitted: `bias_` [n_labels]; the threshold stays 0.5."""

    name: ClassVar[str] = "bias"
    fitted: ClassVar[tuple[str, ...]] = ("bias_",)

    def __init__(self, *, share: float = 1.0, least: int = 0, most: int | None = None, margin: float = 0.0) -> None:
        super().__init__(least=least, most=most, margin=margin)
        self.share = share

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:  # noqa: ARG002
        """Fits on log-odds `X` [n_documents, n_labels]; `y` is ignored."""
        log_odds = self._check(X, reset=True)
        nothing = np.zeros(log_odds.shape, dtype=np.bool_)
        self.fingerprint_ = fingerprint(log_odds, nothing)
        return self._fit(log_odds, nothing)

    def _fingerprint_of(self, X: npt.ArrayLike, y: npt.ArrayLike) -> str:
        """Of the log-odds alone: it is fitted on documents, with or without gold labels."""
        return super()._fingerprint_of(X, np.zeros_like(np.asarray(y), dtype=np.bool_))

    def check_options(self) -> None:
        super().check_options()
        if not 0 <= self.share <= 1:
            raise SetScoreError(f"share lies between 0 and 1, got {self.share}.")

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:  # noqa: ARG002
        asked = np.isfinite(log_odds)
        count = np.maximum(asked.sum(axis=0), 1)
        means = np.where(asked, log_odds, 0.0).sum(axis=0) / count
        self.bias_ = self.share * (means - means.mean())
        return f"the mean log-odds of each label taken off, spread {means.std():.2g}; no gold labels used"

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:  # noqa: ARG002
        return np.full(log_odds.shape[1], 0.5)

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return np.asarray(log_odds - self.bias_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags
