"""Thresholds per label: exact cuts, and how far they are pulled to the common one."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from slices import NOT_ASKED, f1, slices

from setscore.calibration import ShrunkCalibration, temperature
from setscore.calibration.temperature import STRENGTHS, Cuts
from setscore.calibration.thresholds import best_thresholds

EIGHTHS = st.integers(-64, 64).map(lambda i: i / 8)  # far enough apart for every transformation below


def fitted_with(strength, log_odds, gold):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(temperature, "STRENGTHS", (strength,))
        return ShrunkCalibration().fit(log_odds, gold)


@given(slices(values=EIGHTHS))
def test_the_common_cut_is_the_best_of_all(labelled):
    log_odds, gold = labelled
    asked = np.isfinite(log_odds)
    assume(gold[asked].any())
    best = max(f1(gold, asked & (log_odds >= cut)) for cut in np.unique(log_odds[asked]))
    cuts = Cuts.of(log_odds, gold)
    assert f1(gold, log_odds >= cuts.common) == pytest.approx(best, abs=1e-12)
    predicted = fitted_with(np.inf, log_odds, gold).predict(log_odds)
    np.testing.assert_array_equal(predicted, log_odds >= cuts.common)


@given(slices(values=EIGHTHS))
def test_the_own_cut_is_the_best_of_the_label(labelled):
    log_odds, gold = labelled
    asked, cuts = np.isfinite(log_odds), Cuts.of(log_odds, gold)
    np.testing.assert_array_equal(cuts.gold, (gold & asked).sum(axis=0))
    for i in np.flatnonzero((gold & asked).any(axis=0)):
        tried = np.unique(log_odds[asked[:, i], i])
        best = max(f1(gold[:, i], log_odds[:, i] >= cut) for cut in tried)
        assert f1(gold[:, i], log_odds[:, i] >= cuts.own[i]) == pytest.approx(best, abs=1e-12)


@settings(deadline=None)
@given(
    slices(values=EIGHTHS),
    st.sampled_from([lambda u: 3 * u + 7, lambda u: u**3 + u, lambda u: np.exp(u / 4) - 2, np.arctan]),
)
def test_with_the_global_cut_an_increasing_transformation_changes_nothing(labelled, increasing):
    log_odds, gold = labelled
    assume(gold[np.isfinite(log_odds)].any())  # without gold the cut is 0, wherever the scores lie
    other = np.where(np.isfinite(log_odds), increasing(np.where(np.isfinite(log_odds), log_odds, 0.0)), NOT_ASKED)
    before, after = fitted_with(np.inf, log_odds, gold), fitted_with(np.inf, other, gold)
    np.testing.assert_array_equal(after.predict(other), before.predict(log_odds))
    assert f1(gold, after.predict(other)) == f1(gold, before.predict(log_odds))


def test_the_formula():
    cuts = Cuts(own=np.array([9.0, 4.0, 4.0]), common=1.0, gold=np.array([0.0, 3.0, 1e9]))
    np.testing.assert_allclose(cuts.shrunk(6.0), [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(cuts.shrunk(np.inf), 1.0)


@given(slices(values=EIGHTHS), st.floats(0.1, 100), st.floats(0.1, 100))
def test_a_stronger_pull_moves_every_cut_towards_the_common_one(labelled, weak, strong):
    weak, strong = sorted((weak, strong))
    cuts = Cuts.of(*labelled)
    nearer = np.abs(cuts.shrunk(strong) - cuts.common) <= np.abs(cuts.shrunk(weak) - cuts.common) + 1e-9
    assert nearer.all()
    within = np.abs(cuts.shrunk(weak) - cuts.common) <= np.abs(cuts.own - cuts.common) + 1e-9
    assert within.all()


def two_kinds(documents, seed=0):
    """Label 0 is right from 2 on, label 1 from -2 on; label 2 never has a gold document."""
    log_odds = np.random.default_rng(seed).normal(scale=3, size=(documents, 3))
    return log_odds, log_odds >= np.array([2.0, -2.0, np.inf])


def test_a_label_without_gold_documents_gets_the_global_cut_and_one_with_many_its_own():
    log_odds, gold = two_kinds(2000)
    calibration, cuts = ShrunkCalibration().fit(log_odds, gold), Cuts.of(log_odds, gold)
    assert calibration.strength_ == min(STRENGTHS)
    assert calibration.cuts_[2] == pytest.approx(cuts.common)
    np.testing.assert_allclose(calibration.cuts_[:2], [2.0, -2.0], atol=0.05)
    assert "shrunk to the global one with strength 1 by cross-validation" in calibration.choice_


def test_of_equal_strengths_the_strongest_is_taken():
    log_odds = np.array([[4.0, 4.0], [-4.0, -4.0]] * 10)
    assert ShrunkCalibration().fit(log_odds, log_odds > 0).strength_ == np.inf


def test_for_micro_f1_the_cuts_are_the_decision_and_probability_one_half():
    log_odds, gold = two_kinds(300)
    calibration = ShrunkCalibration().fit(log_odds, gold)
    np.testing.assert_array_equal(calibration.thresholds_, 0.5)
    np.testing.assert_array_equal(calibration.predict(log_odds), log_odds >= calibration.cuts_)
    np.testing.assert_allclose(calibration.transform([calibration.cuts_]), 0.5)


@pytest.mark.parametrize("objective", ["macro_f1", "sample_f1", "cost"])
def test_other_objectives_choose_thresholds_on_the_probabilities(objective):
    log_odds, gold = two_kinds(300)
    options = {"objective": objective} | ({"cost": (1.0, 3.0)} if objective == "cost" else {})
    calibration = ShrunkCalibration(**options).fit(log_odds, gold)
    everything = np.ones_like(gold)
    expected = best_thresholds(calibration.transform(log_odds), gold, everything, objective, (1.0, 3.0))
    np.testing.assert_array_equal(calibration.thresholds_, expected)
