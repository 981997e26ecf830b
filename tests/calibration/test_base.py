"""What every calibration does alike: caps, doubt, fingerprints, and what it refuses."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from slices import NOT_ASKED, slices

from setscore import fitting
from setscore.calibration import CALIBRATIONS, Calibration, TemperatureCalibration, UnfittedCalibration, restore
from setscore.errors import FewDocumentsWarning, SetScoreError

# MAPIE, an extra, stands behind "conformal", which needs more documents than these tests give.
FITTED_ON_FEW = sorted(CALIBRATIONS.keys() - {"conformal"})
GOLD_NEEDED = sorted(set(FITTED_ON_FEW) - {"bias"})
LOG_ODDS = np.array([[2.0, -1.0, 0.5], [-2.0, 3.0, 0.1], [1.0, -0.5, -3.0], [0.0, 1.5, -1.0]])
GOLD = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 0]])


def test_the_base_alone_is_no_calibration():
    with pytest.raises(TypeError, match="_fit_logits"):
        Calibration()
    assert all(not kind.__abstractmethods__ for kind in CALIBRATIONS.values())


@given(slices(), st.integers(0, 4), st.one_of(st.none(), st.integers(1, 4)), st.floats(0, 1))
def test_least_and_most(labelled, least, most, threshold):
    log_odds, _ = labelled
    most = most if most is None else max(most, least)
    asked, labels = np.isfinite(log_odds), log_odds.shape[1]
    state = UnfittedCalibration(threshold=threshold).for_labels(labels).state()
    free, bounded = restore(state, labels), restore(state | {"options": {"least": least, "most": most}}, labels)
    probabilities, before, after = free.transform(log_odds), free.predict(log_odds), bounded.predict(log_odds)
    sizes, available = after.sum(axis=1), asked.sum(axis=1)
    assert not (after & ~asked).any()
    assert (sizes >= np.minimum(least, available)).all()
    assert most is None or (sizes <= most).all()
    for row in range(len(log_odds)):
        if least <= before[row].sum() <= (most or labels):
            assert after[row].tolist() == before[row].tolist()
        kept, dropped = probabilities[row, after[row]], probabilities[row, asked[row] & ~after[row]]
        assert not len(kept) or not len(dropped) or kept.min() >= dropped.max()


def test_of_equally_likely_labels_the_first_are_taken():
    state = UnfittedCalibration().for_labels(3).state()
    at_least = restore(state | {"options": {"least": 2}}, 3)
    assert at_least.predict([[-1.0, -1.0, -1.0], [-1.0, NOT_ASKED, NOT_ASKED]]).tolist() == [
        [True, True, False],
        [True, False, False],
    ]
    assert restore(state | {"options": {"most": 1}}, 3).predict([[1.0, 1.0, 1.0]]).tolist() == [[True, False, False]]


@pytest.mark.parametrize("name", FITTED_ON_FEW)
def test_undecided_is_what_lies_near_the_threshold(name):
    calibration = CALIBRATIONS[name]().fit(LOG_ODDS, GOLD)
    probabilities = calibration.transform(LOG_ODDS)
    for margin in (0.05, 0.1, 0.3):
        near = np.abs(probabilities - calibration.thresholds_) < margin
        np.testing.assert_array_equal(calibration.undecided(LOG_ODDS, margin), near)
    assert calibration.undecided(LOG_ODDS, 1.1).all()
    assert not calibration.undecided(LOG_ODDS, 0.0).any()
    assert not calibration.undecided(LOG_ODDS).any()
    with_margin = CALIBRATIONS[name](margin=0.3).fit(LOG_ODDS, GOLD)
    np.testing.assert_array_equal(with_margin.undecided(LOG_ODDS), calibration.undecided(LOG_ODDS, 0.3))
    np.testing.assert_array_equal(with_margin.predict(LOG_ODDS), calibration.predict(LOG_ODDS))


def test_what_was_not_asked_has_probability_0_and_is_neither_predicted_nor_undecided():
    # Probability 0 reaches a threshold of 0; still nobody asked.
    calibration = UnfittedCalibration(threshold=0).for_labels(2)
    row = [[NOT_ASKED, -800.0]]
    assert calibration.transform(row).tolist() == [[0.0, 0.0]]
    assert calibration.predict(row).tolist() == [[False, True]]
    assert calibration.undecided(row, 0.1).tolist() == [[False, True]]


@pytest.mark.parametrize("name", FITTED_ON_FEW)
def test_the_slice_that_was_fitted_on_is_recognised_in_any_order(name):
    calibration = CALIBRATIONS[name]().fit(LOG_ODDS, GOLD)
    order = [2, 0, 3, 1]
    assert calibration.fitted_on(LOG_ODDS.tolist(), GOLD.astype(bool))
    assert calibration.fitted_on(LOG_ODDS[order], GOLD[order])
    assert restore(json.loads(json.dumps(calibration.state())), 3).fitted_on(LOG_ODDS[order], GOLD[order])
    assert calibration.seen(LOG_ODDS[order], GOLD[order]) == 4
    assert calibration.seen(np.vstack([LOG_ODDS[:2], LOG_ODDS + 1]), np.vstack([GOLD[:2], GOLD])) == 2
    assert calibration.seen(LOG_ODDS[[0, 0, 0]], GOLD[[0, 0, 0]]) == 1  # one document was fitted on once
    assert not calibration.fitted_on(LOG_ODDS[:3], GOLD[:3])
    assert calibration.fitted_on(LOG_ODDS, 1 - GOLD) == (name == "bias")  # it looks at no gold labels
    assert not calibration.fitted_on(LOG_ODDS + 1e-9, GOLD)
    assert not UnfittedCalibration().for_labels(3).fitted_on(LOG_ODDS, GOLD)


@pytest.mark.parametrize("name", FITTED_ON_FEW)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_positive_infinity_are_refused_everywhere(name, bad):
    message = r"log-odds hold NaN or inf; only -inf \(not asked\) is allowed\."
    with pytest.raises(ValueError, match=message):
        CALIBRATIONS[name]().fit([[1.0, bad]], [[1, 0]])
    fitted = CALIBRATIONS[name]().fit(LOG_ODDS, GOLD)
    for method in (fitted.transform, fitted.predict, fitted.undecided):
        with pytest.raises(ValueError, match=message):
            method([[1.0, 0.0, bad]])


@pytest.mark.parametrize("name", GOLD_NEEDED)
@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ([[1, 0, 1]], r"gold must be an indicator of shape \(2, 2\) like the log-odds, got shape \(1, 3\)\."),
        ([1, 0], r"of shape \(2, 2\) like the log-odds, got shape \(2,\)\."),
        ([[1, 2], [0, 1]], "gold must hold only 0 and 1"),
        ([[2, 3], [3, 2]], "gold must hold only 0 and 1"),
        ([[0.5, 0.0], [1.0, 0.0]], "gold must hold only 0 and 1"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_gold_that_does_not_fit_says_what_is_wrong(name, gold, message):
    with pytest.raises(ValueError, match=message):
        CALIBRATIONS[name]().fit([[1.0, 2.0], [0.0, -1.0]], gold)


@pytest.mark.parametrize("name", FITTED_ON_FEW)
def test_another_number_of_labels_is_refused(name):
    calibration = CALIBRATIONS[name]().fit(LOG_ODDS, GOLD)
    with pytest.raises(ValueError, match=f"X has 2 features, but {type(calibration).__name__} is expecting 3 features"):
        calibration.transform([[0.0, 1.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "mikro_f1"}, r"unknown objective 'mikro_f1'\. Did you mean 'micro_f1'\?"),
        ({"cost": (1.0, 0.0)}, r"cost is \(false positive, false negative\), both above 0, got \(1\.0, 0\.0\)\."),
        ({"cost": (1.0,)}, r"cost is \(false positive, false negative\)"),
        ({"least": -1}, r"0 <= least <= most and most >= 1 are needed, got -1 and None\."),
        ({"least": 3, "most": 2}, "got 3 and 2"),
        ({"most": 0}, "got 0 and 0"),
        ({"cost": (1.0, 4.0)}, r"cost is for the objective 'cost'; got \(1\.0, 4\.0\) with '(micro_f1|balanced)'\."),
        ({"margin": 2.0}, r"margin lies between 0 and 1, got 2\.0\."),
    ],
)
@pytest.mark.parametrize("name", sorted(set(GOLD_NEEDED) - {"paper", "unfitted"}))
def test_options_are_checked_in_fit(name, options, message):
    calibration = clone(CALIBRATIONS[name](**options))
    with pytest.raises(SetScoreError, match=message):
        calibration.fit(LOG_ODDS, GOLD)


@pytest.mark.parametrize("name", sorted(CALIBRATIONS))
def test_before_fit_there_is_nothing_to_apply(name):
    calibration = CALIBRATIONS[name]()
    for method in (calibration.transform, calibration.predict, calibration.undecided):
        with pytest.raises(NotFittedError):
            method([[0.0]])
    with pytest.raises(NotFittedError):
        calibration.fitted_on([[0.0]], [1])


@pytest.mark.parametrize("name", FITTED_ON_FEW)
def test_before_fit_there_is_no_state(name):
    with pytest.raises(NotFittedError):
        CALIBRATIONS[name]().state()


@pytest.mark.parametrize("name", FITTED_ON_FEW)
def test_columns_with_names_change_nothing(name):
    frame = pd.DataFrame(LOG_ODDS, columns=["oil", "sports", "music"])
    named, plain = CALIBRATIONS[name]().fit(frame, GOLD), CALIBRATIONS[name]().fit(LOG_ODDS, GOLD)
    assert named.state() == plain.state()
    np.testing.assert_array_equal(restore(named.state(), 3).transform(LOG_ODDS), plain.transform(LOG_ODDS))


def test_another_threshold_is_a_copy():
    fitted = TemperatureCalibration().fit(LOG_ODDS, GOLD)
    strict = fitted.with_threshold(1.0)
    assert not strict.predict(LOG_ODDS).any()
    assert fitted.predict(LOG_ODDS).any()
    assert strict.choice_.endswith("threshold 1 by hand")
    np.testing.assert_array_equal(strict.transform(LOG_ODDS), fitted.transform(LOG_ODDS))
    with pytest.raises(SetScoreError, match=r"between 0 and 1, got 1\.5"):
        fitted.with_threshold(1.5)


def test_a_small_slice_is_fitted_with_a_warning():
    with pytest.warns(FewDocumentsWarning, match=r"fitted on few documents \(4\): with fewer than 50"):
        fitting.conclude(known(LOG_ODDS, GOLD), None, fitting.Aim("temperature"))
    many = np.tile(LOG_ODDS, (13, 1)), np.tile(GOLD, (13, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitting.conclude(known(*many), None, fitting.Aim("temperature"))


def known(log_odds, gold):
    return fitting.Known.of({"model": log_odds}, gold, None)
