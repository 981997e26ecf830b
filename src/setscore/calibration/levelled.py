"""Platt scaling that also looks at how high the other labels of the document stand.

    v_i(x) = a u_i(x) + c mean_j u_j(x) + d max_j u_j(x) + e,    logit p_i(x) = Platt of v_i(x)
    a ~ N(1, s),    c, d ~ N(0, s),    e ~ N(0, 1),    s = 1 / min(1, var u)

Some documents draw a yes to many questions, some to none; a document where another label stands out needs this one
less. Four numbers for all labels say how much that counts, fitted by logistic regression. The centre of their prior, 1
and three times 0, is the model's own probabilities: a handful of documents with hardly a gold label does not carry the
fit far away from them. A label that was not asked stands in with its mean, so that asking fewer labels moves the level
little. Mean and maximum do not depend on the order of the labels, but a decision now depends on which labels there are.
"""

from typing import Any, ClassVar, Self

import numpy as np

from setscore.calibration.platt import PlattCalibration, common_strengths
from setscore.logistic import Prior, fit_logistic
from setscore.records import BoolArray, FloatArray

OWN = np.array([1.0, 0.0, 0.0, 0.0])  # a, c, d and e that leave the model's own probabilities


class LevelledCalibration(PlattCalibration):
    """Fitted beside what Platt scaling has: `means_` [n_labels] of the log-odds, and `levels_`: a, c, d and e."""

    name: ClassVar[str] = "levelled"
    fitted: ClassVar[tuple[str, ...]] = (*PlattCalibration.fitted, "means_", "levels_")

    def label_by_label(self) -> PlattCalibration:
        return PlattCalibration(**self.get_params(deep=False))

    @classmethod
    def restore(cls, state: dict[str, Any], n_labels: int) -> Self:
        """The calibration that `state` describes; levels from before there was e are the same as with e = 0."""
        fitted = dict(state["fitted"])
        if len(fitted.get("levels_", ())) == 3:
            fitted["levels_"] = [*fitted["levels_"], 0.0]
        return super().restore(state | {"fitted": fitted}, n_labels)

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray) -> str:
        asked = np.isfinite(log_odds)
        counts = asked.sum(axis=0)
        overall = log_odds[asked].mean() if asked.any() else 0.0
        sums = np.where(asked, log_odds, 0.0).sum(axis=0)
        self.means_ = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
        self.levels_ = self._fit_levels(log_odds, gold)
        a, c, d, e = self.levels_
        level = f"level {a:.3g} own {c:+.3g} mean {d:+.3g} maximum {e:+.3g} constant"
        return f"{super()._fit_logits(self._levelled(log_odds), gold)}; {level}"

    def _fit_levels(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:
        asked = np.isfinite(log_odds)
        parts = np.stack([part[asked] for part in self._parts(log_odds)], axis=1)
        slope, bias = common_strengths(log_odds[asked])
        return fit_logistic(parts, gold[asked], Prior(OWN, np.array([slope, slope, slope, bias])))

    def _levelled(self, log_odds: FloatArray) -> FloatArray:
        *weights, bias = self.levels_
        found = np.tensordot(weights, np.stack(self._parts(log_odds)), axes=1) + bias
        return np.where(np.isfinite(log_odds), found, -np.inf)

    def _parts(self, log_odds: FloatArray) -> list[FloatArray]:
        """Own log-odds, and mean and maximum of the document, each [n_documents, n_labels]."""
        u = np.where(np.isfinite(log_odds), log_odds, self.means_)
        return [u, *(np.broadcast_to(part, u.shape) for part in (u.mean(1, keepdims=True), u.max(1, keepdims=True)))]

    def _probabilities(self, log_odds: FloatArray) -> FloatArray:
        return super()._probabilities(self._levelled(log_odds))
