"""One temperature and one threshold: the formulas, the likelihood, and slices that teach nothing."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit
from slices import NOT_ASKED, f1, slices

from setscore.calibration import TemperatureCalibration
from setscore.calibration.temperature import TEMPERATURES


def at(temperature, threshold=0.5, labels=1):
    fitted = {"temperature_": temperature, "thresholds_": [threshold] * labels}
    return TemperatureCalibration.restore({"options": {}, "fitted": fitted}, labels)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.floats(0.05, 20), st.floats(0, 1))
def test_probability_is_sigmoid_of_u_over_t_and_decision_is_at_or_above_tau(values, temperature, threshold):
    calibration, log_odds = at(temperature, threshold), np.array(values)[:, None]
    probabilities = calibration.transform(log_odds)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-log_odds / temperature)), rtol=1e-12)
    np.testing.assert_array_equal(calibration.predict(log_odds), probabilities >= threshold)


def test_a_probability_equal_to_the_threshold_is_predicted():
    neutral = at(1.0, labels=3)
    assert neutral.transform([[0.0, 1e-9, -1e-9]])[0, 0] == 0.5
    assert neutral.predict([[0.0, 1e-9, -1e-9]]).tolist() == [[True, True, False]]


@given(slices(), st.floats(0.05, 20))
def test_no_temperature_changes_an_ordering(labelled, temperature):
    log_odds, _ = labelled
    ranked = at(temperature, labels=log_odds.shape[1]).transform(log_odds).ravel()[np.argsort(log_odds, axis=None)]
    assert (np.diff(ranked) >= 0).all()


@given(slices())
def test_the_fitted_temperature_is_at_least_as_likely_as_one(labelled):
    log_odds, gold = labelled
    asked = np.isfinite(log_odds)
    calibration = TemperatureCalibration().fit(log_odds, gold)

    def loss(temperature):
        signed = np.where(gold[asked], log_odds[asked], -log_odds[asked])
        return np.logaddexp(0, -signed / temperature).mean() if signed.size else 0.0

    assert loss(calibration.temperature_) <= loss(1.0) + 1e-6
    assert TEMPERATURES[0] <= calibration.temperature_ <= TEMPERATURES[1]


@given(slices())
def test_the_fitted_threshold_reaches_the_best_micro_f1_of_all_cuts(labelled):
    log_odds, gold = labelled
    asked = np.isfinite(log_odds)
    assume(gold[asked].any())
    calibration = TemperatureCalibration().fit(log_odds, gold)
    probabilities = calibration.transform(log_odds)
    best = max(f1(gold, asked & (probabilities >= cut)) for cut in np.unique(probabilities[asked]))
    assert f1(gold, calibration.predict(log_odds)) == pytest.approx(best, abs=1e-12)


def test_the_threshold_lies_halfway_between_the_probabilities_it_separates():
    calibration = TemperatureCalibration().fit([[2.0], [1.0], [-1.0], [-3.0]], [1, 1, 0, 0])
    above, below = expit(np.array([1.0, -1.0]) / calibration.temperature_)
    assert calibration.thresholds_.tolist() == [pytest.approx((above + below) / 2)]


def test_the_temperature_is_recovered_from_data_that_follow_it():
    generator = np.random.default_rng(0)
    log_odds = generator.normal(scale=6, size=(4000, 1))
    gold = generator.random((4000, 1)) < expit(log_odds / 3)
    calibration = TemperatureCalibration().fit(log_odds, gold)
    assert calibration.temperature_ == pytest.approx(3, rel=0.1)
    assert calibration.choice_ == f"temperature {calibration.temperature_:.3g} by likelihood"


@pytest.mark.parametrize(
    ("gold", "everything"), [([[0, 0], [0, 0]], False), ([[1, 1], [1, 1]], True)], ids=["no gold", "all gold"]
)
def test_gold_of_one_kind_teaches_no_temperature(gold, everything):
    log_odds = [[3.0, -3.0], [0.5, -9.0]]
    calibration = TemperatureCalibration().fit(log_odds, gold)
    assert calibration.temperature_ == 1.0
    if everything:
        assert calibration.predict(log_odds).all()
    else:
        assert calibration.thresholds_.tolist() == [0.5, 0.5]


def test_what_was_not_asked_teaches_nothing():
    log_odds, gold = np.array([[2.0], [0.5], [-1.0], [-2.0]]), np.array([[1], [0], [1], [0]])
    alone = TemperatureCalibration().fit(log_odds, gold)
    beside = np.full_like(log_odds, NOT_ASKED)
    both = TemperatureCalibration().fit(np.hstack([log_odds, beside]), np.hstack([gold, np.zeros_like(gold)]))
    assert both.temperature_ == alone.temperature_
    assert both.thresholds_.tolist() == [alone.thresholds_[0]] * 2


def test_nothing_asked_at_all_stays_neutral():
    calibration = TemperatureCalibration().fit([[NOT_ASKED, NOT_ASKED]], [[1, 0]])
    assert (calibration.temperature_, calibration.thresholds_.tolist()) == (1.0, [0.5, 0.5])
