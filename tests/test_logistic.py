"""The few Newton steps against scikit-learn, and where the answers are all alike or separable."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setscore.logistic import fit_logistic


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_scikit_learn(seed):
    random = np.random.default_rng(seed)
    features = random.normal(size=(300, 3))
    right = random.random(300) < 1 / (1 + np.exp(-features @ [1.0, -2.0, 0.0] + 1))
    reference = LogisticRegression(C=1e4, max_iter=1000, tol=1e-8).fit(features, right)
    np.testing.assert_allclose(fit_logistic(features, right), [*reference.coef_[0], *reference.intercept_], atol=1e-3)


@pytest.mark.parametrize("right", [[True] * 4, [False] * 4, [False, False, True, True]])
def test_answers_that_are_alike_or_separable_stay_finite(right):
    found = fit_logistic(np.array([[-2.0, -2.0], [-1.0, -1.0], [1.0, 1.0], [2.0, 2.0]]), np.array(right))
    assert np.isfinite(found).all()
