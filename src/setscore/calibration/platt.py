"""Regularised Platt scaling: one slope for all labels and a bias for each; and with the level of the document.

    logit p_i(x) = a u_i(x) + b + d_i,    d_i ~ N(0, 1 / strength),    a ~ N(1, 1 / min(1, var u)),    b ~ N(0, 1)

A label's bias says how often it applies, which a question about one document cannot know: it is what one temperature
and one threshold leave on the table. With few documents a bias stays near the common one; how near is chosen by
cross-validated likelihood inside the slice. Slope and common bias stay near 1 and 0 then, the model's own
probabilities; scores that are flatter than log-odds, such as cosines, leave the slope freer, which has to make log-odds
of them. `centred` takes the label's mean log-odds off first, which needs no gold labels: a label that every document is
given then starts where the others do.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from setscore.calibration.base import Calibration
from setscore.calibration.thresholds import TINY, expected_thresholds, steady_thresholds
from setscore.logistic import Prior, fit_logistic
from setscore.records import BoolArray, FloatArray, IntArray

Solution = tuple[float, FloatArray, FloatArray]  # slope, bias [n_labels], centre [n_labels]

STRENGTHS = (30.0, 10.0, 3.0, 1.0, 0.3)  # the strongest first: with own biases near 0 it is the quickest start
COMMON_STRENGTH = 1.0  # of slope and common bias; keeps them finite too when the labels are separable
LEARNED_STRENGTH = 20.0  # of the levels after a read-out, which has learned most of it
STEPS = 25
OWN = np.array([1.0, 0.0, 0.0, 0.0])  # a, c, d and e that leave the model's own probabilities


class PlattCalibration(Calibration):
    """Fitted: `slope_`, `bias_` [n_labels] (common and own together), `centre_` [n_labels], `strength_`."""

    name: ClassVar[str] = "platt"
    fitted: ClassVar[tuple[str, ...]] = ("slope_", "bias_", "centre_", "strength_")

    def __init__(
        self,
        *,
        centred: bool = False,
        objective: str = "micro_f1",
        cost: tuple[float, float] = (1.0, 1.0),
        least: int = 0,
        most: int | None = None,
        margin: float = 0.0,
    ) -> None:
        super().__init__(objective=objective, cost=cost, least=least, most=most, margin=margin)
        self.centred = centred

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:
        asked, unseen = np.isfinite(log_odds), self._out_of_fold(log_odds, gold, fold)
        losses = {strength: log_loss(logits, gold, asked) for strength, logits in unseen.items()}
        self.strength_ = min(losses, key=losses.__getitem__)
        # Out of fold too: in the fit's own eyes its probabilities look better than they are.
        probabilities = np.where(asked, expit(unseen[self.strength_]), 0.0)
        self.thresholds_ = steady_thresholds(probabilities, gold, asked, self.objective, self.cost)
        ((self.slope_, self.bias_, self.centre_),) = self._solve(log_odds, gold, (self.strength_,))
        return (
            f"slope {self.slope_:.3g} and a bias per label, strength {self.strength_:g} by cross-validated likelihood"
        )

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:  # noqa: ARG002
        return self.thresholds_  # found together with the strength

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return np.asarray(self.slope_ * (log_odds - self.centre_) + self.bias_)

    def _out_of_fold(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> dict[float, FloatArray]:
        """For each strength, logits of documents that the fit has not seen; the bias alone where nothing was asked."""
        logits = {strength: np.empty(log_odds.shape) for strength in STRENGTHS}
        for number in range(fold.max() + 1):
            inside = fold == number
            solved = self._solve(log_odds[~inside], gold[~inside], STRENGTHS)
            for strength, (slope, bias, centre) in zip(STRENGTHS, solved, strict=True):
                u = np.where(np.isfinite(log_odds[inside]), log_odds[inside], centre)
                logits[strength][inside] = slope * (u - centre) + bias
        return logits

    def _solve(self, log_odds: FloatArray, gold: BoolArray, strengths: Sequence[float]) -> list[Solution]:
        """Slope, biases and centres for each strength; every fit starts where the one before it ended."""
        asked = np.isfinite(log_odds)
        u = np.where(asked, log_odds, 0.0)
        count = np.maximum(asked.sum(axis=0), 1)
        centre = u.sum(axis=0) / count if self.centred else np.zeros(u.shape[1])
        fit, found = (1.0, 0.0, np.zeros(u.shape[1])), []
        for strength in strengths:
            fit = newton(np.where(asked, u - centre, 0.0), gold, asked, strength, fit)
            found.append((fit[0], fit[1] + fit[2], centre))
        return found


class LevelledCalibration(PlattCalibration):
    """Platt scaling that also looks at how high the other labels of the document stand.

        v_i(x) = a u_i(x) + c mean_j u_j(x) + d max_j u_j(x) + e,    logit p_i(x) = Platt of v_i(x)
        a ~ N(1, s),    c, d ~ N(0, s),    e ~ N(0, 1),    s = 1 / min(1, var u)

    Some documents draw a yes to many questions, some to none; a document where another label stands out needs this one
    less. Four numbers for all labels say how much that counts, fitted by logistic regression. The centre of their
    prior, 1 and three times 0, is the model's own probabilities: a handful of documents with hardly a gold label does
    not carry the fit far away from them. A label that was not asked stands in with its mean, so that asking fewer
    labels moves the level little. Mean and maximum do not depend on the order of the labels, but a decision now depends
    on which labels there are.

    Fitted beside what Platt scaling has: `means_` [n_labels] of the log-odds, and `levels_`: a, c, d and e.
    """

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

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:
        self.means_ = self._means(log_odds)
        self.levels_ = self._fit_levels(log_odds, gold)
        a, c, d, e = self.levels_
        level = f"level {a:.3g} own {c:+.3g} mean {d:+.3g} maximum {e:+.3g} constant"
        return f"{super()._fit_logits(self._levelled(log_odds), gold, fold)}; {level}"

    def _means(self, log_odds: FloatArray) -> FloatArray:
        """Of each label [n_labels], over the documents it was asked of; of all for one that never was."""
        asked = np.isfinite(log_odds)
        counts = asked.sum(axis=0)
        overall = log_odds[asked].mean() if asked.any() else 0.0
        sums = np.where(asked, log_odds, 0.0).sum(axis=0)
        return np.where(counts > 0, sums / np.maximum(counts, 1), overall)

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


class LearnedCalibration(LevelledCalibration):
    """For log-odds of a read-out, which are calibrated nearly: the level of the document once more, held strongly.

    Thresholds are those that its probabilities expect to be best, so that a handful of gold labels decides little; and
    with hardly any they stay near the log-odds at which the zero-shot answer is in doubt (`starting_at`).
    Fitted: `means_` and `levels_` as above, and `common_`, the threshold of a label that is added later.
    """

    name: ClassVar[str] = "learned"
    fitted: ClassVar[tuple[str, ...]] = ("means_", "levels_", "common_")
    _doubt = 0.0

    def __init__(
        self,
        *,
        objective: str = "balanced",
        cost: tuple[float, float] = (1.0, 1.0),
        least: int = 0,
        most: int | None = None,
        margin: float = 0.0,
    ) -> None:
        super().__init__(objective=objective, cost=cost, least=least, most=most, margin=margin)

    def starting_at(self, doubt: float) -> Self:
        """The same; `fit` then starts its cuts from there."""
        self._doubt = doubt
        return self

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:  # noqa: ARG002
        asked = np.isfinite(log_odds)
        self.means_ = self._means(log_odds)
        parts = np.stack([part[asked] for part in self._parts(log_odds)], axis=1)
        self.levels_ = fit_logistic(parts, gold[asked], Prior(OWN, np.full(len(OWN), LEARNED_STRENGTH)))
        doubt = self._doubt + self._moved(log_odds[asked], self._levelled(log_odds)[asked])
        self.thresholds_, self.common_ = expected_thresholds(
            self._probabilities(log_odds), gold, asked, self.objective, self.cost, doubt
        )
        return (
            f"thresholds expected to be best for {self.objective}, {self.common_:.2f} for a label that is added later"
        )

    def _moved(self, before: FloatArray, after: FloatArray) -> float:
        """How far levels moved log-odds that are near the start."""
        near = expit(before - self._doubt)
        return float(np.average(after - before, weights=near * (1 - near) + TINY)) if len(before) else 0.0

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return log_odds  # levelled before


def common_strengths(u: FloatArray) -> FloatArray:
    """How strongly a slope is held at 1 and a bias at 0, for log-odds u [n] that were asked: precisions [2].

    A slope is held by the variance of u where that is below 1, in units of their spread: alike however flat they are.
    One pair at distance 1 is added, because a few pairs may be near each other without being flat.
    """
    spread = ((u - u.mean()) ** 2).sum() if len(u) else 0.0
    return COMMON_STRENGTH * np.array([min(1.0, (spread + 1) / (len(u) + 1)), 1.0])


def newton(
    u: FloatArray, gold: BoolArray, asked: BoolArray, strength: float, start: tuple[float, float, FloatArray]
) -> tuple[float, float, FloatArray]:
    """Slope a, common bias b and own biases d that minimise

        sum log(1 + exp(-y (a u + b + d_i))) + strength / 2 |d|^2 + s / 2 (a - 1)^2 + t / 2 b^2

    with s and t from `common_strengths`. The Hessian is an arrow (two dense rows, the rest diagonal), so a step costs
    one pass over the data.
    """
    weight = asked.astype(np.float64)
    common, neutral, theta, own = common_strengths(u[asked]), np.array([1.0, 0.0]), np.array(start[:2]), start[2]

    def at(theta: FloatArray, own: FloatArray) -> tuple[float, FloatArray]:
        """The loss and the probabilities there: both come from the same exponential."""
        z = theta[0] * u + theta[1] + own
        small = np.exp(-np.abs(z))
        softplus = np.maximum(z, 0) + np.log1p(small)
        fit = float(np.vdot(weight, softplus - gold * z))
        loss = fit + strength / 2 * own @ own + common @ (theta - neutral) ** 2 / 2
        return float(loss), np.where(z >= 0, 1.0, small) / (1.0 + small)

    current, p = at(theta, own)
    for _ in range(STEPS):
        residual, curvature = weight * (p - gold), weight * p * (1 - p)
        curved = curvature * u
        pull = np.array([np.vdot(residual, u), residual.sum()]) + common * (theta - neutral)
        pull_own = residual.sum(axis=0) + strength * own
        cross = np.stack([curved.sum(axis=0), curvature.sum(axis=0)])  # [2, n_labels]
        diagonal = cross[1] + strength
        dense = np.array([[np.vdot(curved, u), cross[0].sum()], [cross[0].sum(), cross[1].sum()]])
        schur = dense + np.diag(common) - (cross / diagonal) @ cross.T
        step = np.linalg.solve(schur, pull - (cross / diagonal) @ pull_own)
        step_own = (pull_own - step @ cross) / diagonal
        size = 1.0
        while (there := at(theta - size * step, own - size * step_own))[0] > current and size > 1e-4:
            size /= 2
        if there[0] > current:
            break
        theta, own = theta - size * step, own - size * step_own
        gained, (current, p) = current - there[0], there
        if gained < 1e-6 * max(1.0, current):
            break
    return float(theta[0]), float(theta[1]), own


def log_loss(logits: FloatArray, gold: BoolArray, asked: BoolArray) -> float:
    """Mean over the pairs that were asked; 0 without any."""
    if not asked.any():
        return 0.0
    return float(np.logaddexp(0, np.where(gold, -logits, logits))[asked].mean())
