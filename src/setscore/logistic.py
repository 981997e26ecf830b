"""Logistic regression on a handful of numbers: a few Newton steps, fast enough for hundreds of fits."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from setscore.records import BoolArray, FloatArray

RIDGE = 1e-4  # keeps coefficients finite where the answers are separable
STEPS = 30


@dataclass(frozen=True)
class Prior:
    """Where coefficients stay as long as the data say little: each is normal, both arrays [p + 1], the bias last."""

    centre: FloatArray
    precision: FloatArray  # 1 / variance


def fit_logistic(features: FloatArray, right: BoolArray, prior: Prior | None = None) -> FloatArray:
    """Coefficients [p + 1], the bias last, for features [n, p] and answers [n]; features are best near unit size.

    Minimises  sum log(1 + exp(-y z)) + 1/2 sum precision (coefficient - centre)^2.  Without a prior the centre is 0 and
    the precision just enough to keep coefficients finite, the bias free of it.
    """
    x = np.column_stack([features, np.ones(len(features))])
    held = prior or Prior(np.zeros(x.shape[1]), np.append(np.full(x.shape[1] - 1, RIDGE), 1e-9))
    theta = np.zeros(x.shape[1])  # not the centre: where it is far off, all curvature may be gone there

    def loss(theta: FloatArray) -> float:
        z = x @ theta
        return float((np.logaddexp(0, z) - right * z).sum() + held.precision @ (theta - held.centre) ** 2 / 2)

    current = loss(theta)
    for _ in range(STEPS):
        p = expit(x @ theta)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.diag(held.precision)
        step = np.linalg.solve(hessian, x.T @ (p - right) + held.precision * (theta - held.centre))
        size = 1.0
        while (new := loss(theta - size * step)) > current and size > 1e-6:
            size /= 2
        if new > current:
            break
        theta = theta - size * step
        if current - new < 1e-9 * max(1.0, current):
            break
        current = new
    return theta
