"""The few Newton steps against scikit-learn, and where the answers are all alike or separable."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from setscore.logistic import Prior, fit_logistic


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


CENTRE = np.array([1.0, -0.5, 2.0])


def answered(seed, n=50):
    random = np.random.default_rng(seed)
    features = random.normal(size=(n, 2))
    return features, random.random(n) < expit(features @ [-1.0, 2.0] - 1)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_with_a_prior_the_gradient_vanishes_at_the_optimum(seed, size):
    features, right = answered(seed)
    prior = Prior(CENTRE, np.array([1.0, 0.3, 5.0]))
    found = fit_logistic(size * features, right, prior)
    x = np.column_stack([size * features, np.ones(len(features))])
    gradient = x.T @ (expit(x @ found) - right) + prior.precision * (found - CENTRE)
    assert (np.abs(gradient) < 1e-3 * np.maximum(1, np.abs(x).sum(axis=0))).all()


def test_without_data_the_coefficients_are_the_centre():
    found = fit_logistic(np.empty((0, 2)), np.empty(0, dtype=bool), Prior(CENTRE, np.ones(3)))
    np.testing.assert_allclose(found, CENTRE)


@pytest.mark.parametrize("seed", range(3))
def test_the_prior_leads_from_the_fit_without_it_to_its_centre(seed):
    features, right = answered(seed)
    path = [fit_logistic(features, right, Prior(CENTRE, np.full(3, 10.0**power))) for power in range(-6, 7)]
    np.testing.assert_allclose(path[0], fit_logistic(features, right), atol=1e-2)
    np.testing.assert_allclose(path[-1], CENTRE, atol=1e-3)
    distances = [np.linalg.norm(found - CENTRE) for found in path]
    assert distances == sorted(distances, reverse=True)
