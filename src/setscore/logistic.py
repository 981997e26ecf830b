"""Logistic regression on a handful of numbers: a few Newton steps, fast enough for hundreds of fits."""

import numpy as np
from scipy.special import expit

from setscore.records import BoolArray, FloatArray

RIDGE = 1e-4  # keeps coefficients finite where the answers are separable
STEPS = 30


def fit_logistic(features: FloatArray, right: BoolArray) -> FloatArray:
    """Coefficients [p + 1], the bias last, for features [n, p] and answers [n]; features are best near unit size.

    Minimises  sum log(1 + exp(-y z)) + ridge / 2 |coefficients|^2,  the bias free of the penalty.
    """
    x = np.column_stack([features, np.ones(len(features))])
    penalty = np.full(x.shape[1], RIDGE)
    penalty[-1] = 1e-9
    theta = np.zeros(x.shape[1])

    def loss(theta: FloatArray) -> float:
        z = x @ theta
        return float((np.logaddexp(0, z) - right * z).sum() + penalty @ theta**2 / 2)

    current = loss(theta)
    for _ in range(STEPS):
        p = expit(x @ theta)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, x.T @ (p - right) + penalty * theta)
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
