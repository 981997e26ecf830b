"""Platt scaling that also looks at how high the other labels of the document stand.

    v_i(x) = a u_i(x) + c mean_j u_j(x) + d max_j u_j(x),    logit p_i(x) = Platt of v_i(x)

Some documents draw a yes to many questions, some to none; a document where another label stands out needs this one
less. Three numbers for all labels say how much that counts, fitted by logistic regression. A label that was not asked
stands in with its mean, so that asking fewer labels moves the level little. Mean and maximum do not depend on the order
of the labels, but a decision now depends on which labels there are.
"""

from typing import ClassVar

import numpy as np

from setscore.calibration.platt import PlattCalibration
from setscore.logistic import fit_logistic
from setscore.records import BoolArray, FloatArray

LEAST_SPREAD = 1e-6  # of the log-odds; below this they are all the same, and nothing can be learnt from them


class LevelledCalibration(PlattCalibration):
    """Fitted beside what Platt scaling has: `means_` [n_labels] of the log-odds, and `levels_`: a, c and d."""

    name: ClassVar[str] = "levelled"

    def label_by_label(self) -> PlattCalibration:
        return PlattCalibration(**self.get_params(deep=False))

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray) -> str:
        asked = np.isfinite(log_odds)
        counts = asked.sum(axis=0)
        overall = log_odds[asked].mean() if asked.any() else 0.0
        sums = np.where(asked, log_odds, 0.0).sum(axis=0)
        self.means_ = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
        self.levels_ = self._fit_levels(log_odds, gold)
        a, c, d = self.levels_
        return (
            f"{super()._fit_logits(self._levelled(log_odds), gold)}; level {a:.3g} own {c:+.3g} mean {d:+.3g} maximum"
        )

    def _fit_levels(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:
        asked = np.isfinite(log_odds)
        right = gold[asked]
        if not right.any() or right.all() or np.ptp(log_odds[asked]) < LEAST_SPREAD:
            return np.array([1.0, 0.0, 0.0])
        parts = np.stack([part[asked] for part in self._parts(log_odds)], axis=1)
        spread = float(parts[:, 0].std())
        return fit_logistic((parts - parts.mean(axis=0)) / spread, right)[:-1] / spread

    def _levelled(self, log_odds: FloatArray) -> FloatArray:
        found = np.tensordot(self.levels_, np.stack(self._parts(log_odds)), axes=1)
        return np.where(np.isfinite(log_odds), found, -np.inf)

    def _parts(self, log_odds: FloatArray) -> list[FloatArray]:
        """Own log-odds, and mean and maximum of the document, each [n_documents, n_labels]."""
        u = np.where(np.isfinite(log_odds), log_odds, self.means_)
        return [u, *(np.broadcast_to(part, u.shape) for part in (u.mean(1, keepdims=True), u.max(1, keepdims=True)))]

    def _probabilities(self, log_odds: FloatArray) -> FloatArray:
        return super()._probabilities(self._levelled(log_odds))
