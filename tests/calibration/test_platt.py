"""Platt scaling with a bias per label: the optimum, what it recovers, and what must not influence it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from slices import NOT_ASKED, biased, slices

from setscore.calibration import PlattCalibration, TemperatureCalibration
from setscore.calibration.base import assign_folds
from setscore.calibration.platt import STRENGTHS, common_strengths, newton
from setscore.calibration.thresholds import steady_thresholds
from setscore.metrics import probability_metrics

BIASES = (-4.0, -3.0, -2.0, -1.0, 0.0, 1.0)


def solve(log_odds, gold, strength, start=None):
    asked = np.isfinite(log_odds)
    neutral = (1.0, 0.0, np.zeros(log_odds.shape[1]))
    return newton(np.where(asked, log_odds, 0.0), gold, asked, strength, start or neutral)


def loss(parameters, log_odds, gold, strength):
    """The docstring of `newton`, written out."""
    slope, common, own = parameters[0], parameters[1], parameters[2:]
    asked = np.isfinite(log_odds)
    z = (slope * np.where(asked, log_odds, 0.0) + common + own)[asked]
    likelihood = np.logaddexp(0, np.where(gold[asked], -z, z)).sum()
    common_loss = common_strengths(log_odds[asked]) @ [(slope - 1) ** 2, common**2] / 2
    return likelihood + strength / 2 * (own**2).sum() + common_loss


def gradient(parameters, *arguments):
    steps = 1e-5 * np.eye(len(parameters))
    return np.array([(loss(parameters + h, *arguments) - loss(parameters - h, *arguments)) / 2e-5 for h in steps])


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_at_the_optimum_the_gradient_vanishes(strength, missing):
    log_odds, gold = biased(1, missing=missing)
    slope, common, own = solve(log_odds, gold, strength)
    found = np.array([slope, common, *own])
    assert np.abs(gradient(found, log_odds, gold, strength)).max() < 1e-2
    assert np.abs(gradient(np.array([1.0, 0.0, *np.zeros(6)]), log_odds, gold, strength)).max() > 10


@settings(deadline=None)
@given(slices(values=st.floats(-6, 6)), st.sampled_from(STRENGTHS), st.floats(-2, 2), st.floats(-2, 2))
def test_no_neighbour_is_better(labelled, strength, first, second):
    log_odds, gold = labelled
    slope, common, own = solve(log_odds, gold, strength)
    found = np.array([slope, common, *own])
    beside = found + 0.1 * np.array([first, second, *np.full(len(own), first * second)])
    assert loss(found, log_odds, gold, strength) <= loss(beside, log_odds, gold, strength) + 1e-4


def test_the_start_does_not_matter():
    log_odds, gold = biased(2)
    far = solve(log_odds, gold, 1.0, start=(0.2, 1.0, np.linspace(-2, 2, 6)))
    for a, b in zip(solve(log_odds, gold, 1.0), far, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


def test_separable_data_stay_finite():
    # With a gap around 0: the slope is finite, so a pair just below the cut may be predicted for the sake of F1.
    log_odds = np.concatenate([np.linspace(-3, -0.5, 20), np.linspace(0.5, 3, 20)]).reshape(20, 2)
    calibration = PlattCalibration().fit(log_odds, log_odds > 0)
    assert np.isfinite([calibration.slope_, *calibration.bias_]).all()
    assert calibration.slope_ > 1
    np.testing.assert_array_equal(calibration.predict(log_odds), log_odds > 0)


def test_strengths_follow_the_spread_of_flat_log_odds_alone():
    log_odds = np.random.default_rng(0).normal(size=1000)
    wide, flat, flatter = (common_strengths(scale * log_odds)[0] for scale in (5.0, 0.2, 0.02))
    assert wide == 1
    assert flat == pytest.approx(0.2**2, rel=0.1)
    assert flatter < flat / 10
    assert common_strengths(np.empty(0)).tolist() == [1.0, 1.0]
    assert common_strengths(np.array([-2.0]))[0] == 0.5  # one pair cannot be called flat


@pytest.mark.parametrize("gold", [False, True])
def test_gold_of_one_kind_stays_finite(gold):
    log_odds, _ = biased(0, documents=30)
    calibration = PlattCalibration().fit(log_odds, np.full(log_odds.shape, gold))
    assert np.isfinite([calibration.slope_, *calibration.bias_]).all()
    assert ((calibration.transform(log_odds) > 0.5) == gold).all()


def test_slope_and_biases_are_recovered_from_data_that_follow_them():
    calibration = PlattCalibration().fit(*biased(3, documents=3000, slope=0.6))
    assert calibration.slope_ == pytest.approx(0.6, abs=0.05)
    np.testing.assert_allclose(calibration.bias_, BIASES, atol=0.35)


def test_a_rare_label_has_a_lower_bias_than_a_frequent_one():
    log_odds = np.random.default_rng(4).normal(size=(200, 2))
    gold = np.random.default_rng(5).random((200, 2)) < expit(log_odds + np.array([-3.0, 1.0]))
    assert gold[:, 0].sum() < gold[:, 1].sum()
    rare, frequent = PlattCalibration().fit(log_odds, gold).bias_
    assert rare < frequent - 2


@pytest.mark.parametrize("centred", [False, True])
def test_pairs_that_were_not_asked_do_not_influence_the_fit(centred):
    log_odds, gold = biased(6, missing=0.4)
    first = PlattCalibration(centred=centred).fit(log_odds, gold)
    turned = PlattCalibration(centred=centred).fit(log_odds, gold ^ ~np.isfinite(log_odds))
    assert turned.slope_ == first.slope_
    np.testing.assert_array_equal(turned.bias_, first.bias_)
    beside = np.full((len(gold), 1), NOT_ASKED)
    wider = PlattCalibration(centred=centred).fit(np.hstack([log_odds, beside]), np.hstack([gold, beside < 0]))
    assert wider.slope_ == pytest.approx(first.slope_, rel=1e-6)
    np.testing.assert_allclose(wider.bias_[:6], first.bias_, rtol=1e-6, atol=1e-6)


def test_a_label_that_was_never_asked_gets_the_common_bias():
    log_odds, gold = biased(7)
    log_odds[:, 2] = NOT_ASKED
    calibration = PlattCalibration().fit(log_odds, gold)
    _, common, own = solve(log_odds, gold, calibration.strength_)
    assert own[2] == pytest.approx(0, abs=1e-9)
    assert calibration.bias_[2] == pytest.approx(common, abs=1e-2)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_calibrated_on_fresh_documents(seed):
    calibration = PlattCalibration().fit(*biased(seed))
    log_odds, gold = biased(100 + seed, documents=2000)
    assert probability_metrics(gold, calibration.transform(log_odds))["ece"] < 0.05
    plain = TemperatureCalibration().fit(*biased(seed)).transform(log_odds)
    assert probability_metrics(gold, plain)["ece"] > 0.05  # biases are what one temperature cannot mend


def test_centred_forgets_a_shift_of_a_label():
    log_odds, gold = biased(8)
    shift = np.array([5.0, -3.0, 0.0, 1.0, 2.0, -8.0])
    before, after = PlattCalibration(centred=True), PlattCalibration(centred=True)
    np.testing.assert_allclose(
        after.fit(log_odds + shift, gold).transform(log_odds + shift), before.fit(log_odds, gold).transform(log_odds)
    )
    np.testing.assert_allclose(after.centre_ - before.centre_, shift)


def test_biases_that_are_noise_are_pulled_hardest():
    generator = np.random.default_rng(9)
    log_odds, gold = generator.normal(size=(40, 30)), generator.random((40, 30)) < 0.1
    calibration = PlattCalibration().fit(log_odds, gold)
    assert calibration.strength_ == max(STRENGTHS)
    assert f"strength {max(STRENGTHS):g} by cross-validated likelihood" in calibration.choice_


def test_thresholds_are_chosen_on_documents_that_the_fit_had_not_seen():
    log_odds, gold = biased(10, documents=50)
    calibration, fold, logits = PlattCalibration().fit(log_odds, gold), assign_folds(50), np.empty(log_odds.shape)
    for number in range(5):
        slope, common, own = solve(log_odds[fold != number], gold[fold != number], calibration.strength_)
        logits[fold == number] = slope * log_odds[fold == number] + common + own
    expected = steady_thresholds(expit(logits), gold, np.ones_like(gold), "micro_f1")
    np.testing.assert_allclose(calibration.thresholds_, expected, atol=1e-3)


def test_one_document_and_nothing_asked_stay_neutral():
    one = PlattCalibration().fit([[2.0, -2.0]], [[1, 0]])
    assert one.predict([[2.0, -2.0]]).tolist() == [[True, False]]
    nothing = PlattCalibration().fit([[NOT_ASKED] * 2] * 3, [[1, 0]] * 3)
    assert (nothing.slope_, nothing.bias_.tolist(), nothing.thresholds_.tolist()) == (1.0, [0.0, 0.0], [0.5, 0.5])
