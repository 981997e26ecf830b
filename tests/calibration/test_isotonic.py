"""Isotonic regression: increasing, better where the truth is no sigmoid, and honest about too few documents."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import NOT_ASKED, biased, slices

from setscore.calibration import IsotonicCalibration, TemperatureCalibration
from setscore.calibration.isotonic import EDGE, LEAST_PAIRS
from setscore.metrics import probability_metrics


def stairs(seed, documents=400):
    """P(gold) is 0.05 below -1, 0.6 between and 0.7 above 2: no sigmoid comes near."""
    generator = np.random.default_rng(seed)
    log_odds = generator.normal(scale=3, size=(documents, 3))
    truth = np.select([log_odds < -1, log_odds < 2], [0.05, 0.6], 0.7)
    return log_odds, generator.random(log_odds.shape) < truth


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.lists(st.floats(-50, 50), min_size=2, max_size=20))
def test_higher_log_odds_never_give_a_lower_probability(seed, values):
    calibration = IsotonicCalibration().fit(*stairs(seed, documents=100))
    assert len(calibration.knots_) > 1
    probabilities = calibration.transform(np.repeat(np.sort(values)[:, None], 3, axis=1))
    assert (np.diff(probabilities, axis=0) >= 0).all()
    assert ((probabilities >= EDGE / 2) & (probabilities <= 1 - EDGE / 2)).all()


def test_probabilities_follow_a_truth_that_is_no_sigmoid():
    calibration = IsotonicCalibration().fit(*stairs(0))
    log_odds, gold = stairs(1, documents=3000)
    ece = probability_metrics(gold, calibration.transform(log_odds))["ece"]
    plain = TemperatureCalibration().fit(*stairs(0)).transform(log_odds)
    assert ece < 0.05 < probability_metrics(gold, plain)["ece"]
    assert calibration.choice_ == f"isotonic regression with {len(calibration.knots_)} knots"


@settings(deadline=None)
@given(slices())
def test_with_few_documents_it_is_a_temperature_and_says_so(labelled):
    log_odds, gold = labelled
    calibration, plain = IsotonicCalibration().fit(log_odds, gold), TemperatureCalibration().fit(log_odds, gold)
    np.testing.assert_array_equal(calibration.transform(log_odds), plain.transform(log_odds))
    np.testing.assert_array_equal(calibration.predict(log_odds), plain.predict(log_odds))
    asked = np.isfinite(log_odds)
    positives, others = (gold & asked).sum(), (~gold & asked).sum()
    assert calibration.choice_ == (
        f"temperature {plain.temperature_:.3g}: {positives} gold and {others} other pairs are too few for isotonic"
        f" regression, which takes {LEAST_PAIRS} of each"
    )


@pytest.mark.parametrize(("positives", "isotonic"), [(49, False), (50, True)])
def test_fifty_gold_pairs_are_enough(positives, isotonic):
    log_odds = np.linspace(-5, 5, 200)[:, None]
    gold = np.arange(200)[:, None] >= 200 - positives
    calibration = IsotonicCalibration().fit(log_odds, gold)
    assert bool(len(calibration.knots_)) == isotonic
    np.testing.assert_array_equal(calibration.predict(log_odds), gold)


def test_nothing_asked_at_all_stays_neutral():
    calibration = IsotonicCalibration().fit([[NOT_ASKED, NOT_ASKED]], [[1, 0]])
    assert (calibration.temperature_, calibration.thresholds_.tolist()) == (1.0, [0.5, 0.5])


def test_pairs_that_were_not_asked_do_not_influence_the_fit():
    log_odds, gold = biased(0, missing=0.3)
    first = IsotonicCalibration().fit(log_odds, gold)
    turned = IsotonicCalibration().fit(log_odds, gold ^ ~np.isfinite(log_odds))
    np.testing.assert_array_equal(first.knots_, turned.knots_)
    np.testing.assert_array_equal(first.values_, turned.values_)
