"""Mixtures of posteriors, as the paper mixes methods (Section 3.5, "Ensemble blend weights").

    p(x) = sum_k w_k p_k(x),    w_k >= 0,  sum_k w_k = 1

p_k are the members' probabilities after their own calibration. Weights come from the simplex in steps of one quarter
(or finer); each mixture has one threshold of the paper's grid, and the pair with the highest micro-F1 on the validation
documents is taken. A member alone is a point of the grid, so the choice is never below its best member there. Ties: the
mixture with fewest members, then the first; the highest threshold.

On the evaluated documents themselves, as the paper's two printed blends were tuned, it is an oracle: never a result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from setscore.calibration.paper import THRESHOLDS
from setscore.ensemble import check_same, simplex
from setscore.errors import SetScoreError
from setscore.metrics import Counts
from setscore.records import BoolArray, FloatArray


@dataclass(frozen=True)
class Mixture:
    """names and weights of the members, one threshold for all labels, and the micro-F1 that chose them of `tried`."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    threshold: float
    reached: float
    tried: int

    def mix(self, posteriors: Mapping[str, FloatArray]) -> FloatArray:
        """Probabilities [n, m]."""
        return mixed(posteriors, self.names, self.weights)

    def decide(self, posteriors: Mapping[str, FloatArray]) -> BoolArray:
        return self.mix(posteriors) >= self.threshold

    def sentence(self) -> str:
        used = [f"{weight:g} {name}" for name, weight in zip(self.names, self.weights, strict=True) if weight > 0]
        return f"{' + '.join(used)} at {self.threshold:g}"


def choose(posteriors: Mapping[str, FloatArray], gold: BoolArray, steps: int = 4) -> Mixture:
    """The mixture with the highest micro-F1 on these documents, of all weights in multiples of 1 / steps."""
    return _best(posteriors, gold, simplex(len(posteriors), steps))


def thresholded(posteriors: Mapping[str, FloatArray], gold: BoolArray, weights: Sequence[float]) -> Mixture:
    """The mixture with these weights, at the threshold with the highest micro-F1 on these documents."""
    return _best(posteriors, gold, [tuple(weights)])


def _best(posteriors: Mapping[str, FloatArray], gold: BoolArray, grid: Sequence[tuple[float, ...]]) -> Mixture:
    check_same(posteriors, gold)
    names = tuple(posteriors)
    found: Mixture | None = None
    for weights in sorted(grid, key=lambda one: sum(weight > 0 for weight in one)):  # fewest members first
        probabilities = mixed(posteriors, names, weights)
        for threshold in THRESHOLDS:  # the highest first
            reached = float(Counts.of(gold, probabilities >= threshold).micro().f1())
            if found is None or reached > found.reached:
                found = Mixture(names, weights, threshold, reached, len(grid))
    if found is None:
        raise SetScoreError("a mixture has at least one member and one point in its grid.")
    return found


def mixed(posteriors: Mapping[str, FloatArray], names: Sequence[str], weights: Sequence[float]) -> FloatArray:
    """Probabilities of the mixture [n, m]; where a label was not asked of a member, its probability is 0."""
    return np.asarray(sum(weight * posteriors[name] for name, weight in zip(names, weights, strict=True)))
