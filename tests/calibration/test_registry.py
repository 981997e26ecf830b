"""Calibrations by name, and their state through JSON: the same probabilities and decisions, or an error."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import biased, slices

from setscore.calibration import (
    CALIBRATIONS,
    Calibration,
    PaperCalibration,
    PlattCalibration,
    TemperatureCalibration,
    describe,
    make,
    restore,
    spelt,
)
from setscore.errors import SetScoreError

FITTED_ON_FEW = sorted(CALIBRATIONS.keys() - {"conformal"})  # it has a test of its own, with more documents


def through_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


@pytest.mark.parametrize("name", FITTED_ON_FEW)
@settings(max_examples=20, deadline=None)
@given(labelled=slices(), seed=st.integers(0, 2**32 - 1), least=st.integers(0, 2))
def test_state_and_restore_round_trip_through_json(name, labelled, seed, least):
    log_odds, gold = labelled
    labels = log_odds.shape[1]
    fitted = CALIBRATIONS[name](least=least, most=3).fit(log_odds, gold)
    restored = restore(through_json(fitted.state()), labels)
    new = np.random.default_rng(seed).normal(scale=4, size=(5, labels))
    assert type(restored) is type(fitted)
    for rows in (log_odds, new):
        np.testing.assert_array_equal(restored.transform(rows), fitted.transform(rows))
        np.testing.assert_array_equal(restored.predict(rows), fitted.predict(rows))
        np.testing.assert_array_equal(restored.undecided(rows), fitted.undecided(rows))
    assert restored.state() == fitted.state()
    assert restored.get_params() == fitted.get_params()
    assert restored.choice_ == fitted.choice_


@pytest.mark.parametrize("name", FITTED_ON_FEW)
def test_large_slices_round_trip_too(name):
    log_odds, gold = biased(0)
    fitted = CALIBRATIONS[name]().fit(log_odds, gold)
    restored = restore(through_json(fitted.state()), gold.shape[1])
    np.testing.assert_array_equal(restored.transform(log_odds), fitted.transform(log_odds))
    np.testing.assert_array_equal(restored.predict(log_odds), fitted.predict(log_odds))


def test_an_infinite_strength_comes_back():
    log_odds = np.array([[4.0, 4.0], [-4.0, -4.0]] * 10)
    fitted = make("shrunk").fit(log_odds, log_odds > 0)
    assert fitted.state()["fitted"]["strength_"] == "inf"
    assert restore(through_json(fitted.state()), 2).strength_ == fitted.strength_ == np.inf


@pytest.mark.parametrize("name", sorted(CALIBRATIONS))
def test_make_and_describe(name):
    calibration = make(name)
    assert type(calibration) is CALIBRATIONS[name]
    assert calibration.name == name
    description = describe(calibration)
    assert description == describe(name) == describe(description)
    again = make(through_json(description))
    assert again.get_params() == calibration.get_params()


def test_an_object_is_copied_with_its_options():
    original = PlattCalibration(centred=True, objective="cost", cost=(1.0, 5.0), most=2)
    original.fit([[1.0], [-1.0]], [1, 0])
    copy = make(original)
    assert copy is not original
    assert copy.get_params() == original.get_params()
    assert not hasattr(copy, "slope_")
    assert make(through_json(describe(original))).cost == (1.0, 5.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("plat", r"unknown calibration 'plat'\. Did you mean 'platt'\? Known: auto, .*unfitted\."),
        ({"name": "isotonik", "options": {}}, "Did you mean 'isotonic'"),
    ],
)
def test_unknown_names(wrong, message):
    for function in (make, describe):
        with pytest.raises(SetScoreError, match=message):
            function(wrong)
    name = wrong if isinstance(wrong, str) else wrong["name"]
    with pytest.raises(SetScoreError, match=message):
        restore({"name": name, "options": {}, "fitted": {}}, 1)


@pytest.mark.parametrize("name", FITTED_ON_FEW)
def test_a_state_that_lacks_something_is_refused(name):
    labels, state = 6, through_json(CALIBRATIONS[name]().fit(*biased(0)).state())
    needed = state["fitted"].keys() - {"choice_", "fingerprint_", "scores_", "strength_", "strategy_", "temperature_"}
    needed -= {"common_"}  # of labels that are added later
    if name in ("temperature", "paper", "shrunk"):
        needed |= {"temperature_"}
    for key in needed:
        damaged = state | {"fitted": {k: v for k, v in state["fitted"].items() if k != key}}
        with pytest.raises((SetScoreError, KeyError), match=rf"is not whole: .*{key}'\.|^'thresholds_'$"):
            restore(damaged, labels)
    for part in state.keys() - {"name"}:
        with pytest.raises(KeyError, match=part):
            restore({k: v for k, v in state.items() if k != part}, labels)
    with pytest.raises(SetScoreError, match=r"5 thresholds in \[0, 1\] are needed, got \["):
        restore(state, labels - 1)


@pytest.mark.parametrize(
    ("fitted", "message"),
    [
        ({"temperature_": 0}, "a temperature above 0 is needed, got 0"),
        ({"temperature_": -1}, "a temperature above 0 is needed, got -1"),
        ({"temperature_": float("nan")}, "a temperature above 0 is needed, got nan"),
        ({"thresholds_": [-0.1]}, r"1 thresholds in \[0, 1\] are needed, got \[-0\.1\]\."),
        ({"thresholds_": [1.1]}, r"1 thresholds in \[0, 1\] are needed, got \[1\.1\]\."),
        ({"thresholds_": [float("nan")]}, r"1 thresholds in \[0, 1\] are needed, got \[nan\]\."),
        ({"thresholds_": [0.5, 0.5]}, r"1 thresholds in \[0, 1\] are needed, got \[0\.5, 0\.5\]\."),
    ],
)
def test_a_state_out_of_range_is_refused(fitted, message):
    state = TemperatureCalibration().fit([[1.0], [-1.0]], [[1], [0]]).state()
    with pytest.raises(SetScoreError, match=message):
        restore(state | {"fitted": state["fitted"] | fitted}, 1)


@pytest.mark.parametrize("bias", [[0.0] * 5, [float("nan")] * 6, [[0.0] * 6] * 2])
def test_numbers_of_the_wrong_shape_are_refused(bias):
    state = PlattCalibration().fit(*biased(0)).state()
    state["fitted"]["bias_"] = bias
    with pytest.raises(ValueError, match=r"gives no probabilities for 6 labels|broadcast"):
        restore(state, 6)


def test_an_option_that_is_not_known_is_refused():
    state = PaperCalibration().fit([[1.0]], [1]).state()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        restore(state | {"options": {"colour": "blue"}}, 1)


def test_every_calibration_is_listed_under_its_name():
    assert all(kind.name == name and issubclass(kind, Calibration) for name, kind in CALIBRATIONS.items())


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("platt?objective=macro_f1", {"objective": "macro_f1"}),
        ("auto?objective=cost&cost=1:4", {"objective": "cost", "cost": (1.0, 4.0)}),
        ("shrunk?least=1&most=3", {"least": 1, "most": 3}),
        ("conformal?target=precision&level=0.8", {"target": "precision", "level": 0.8}),
        ("paper?strategy=global&margin=0.1", {"strategy": "global", "margin": 0.1}),
        ("platt?centred=true", {"centred": True}),
        ("bias?share=0.5", {"share": 0.5}),
    ],
)
def test_options_are_written_behind_the_name(text, options):
    made = make(text)
    name = text.partition("?")[0]
    assert made.get_params() == CALIBRATIONS[name](**options).get_params()
    assert make(spelt(made)).get_params() == made.get_params()
    assert spelt(make(name)) == name
    assert describe(text) == describe(made)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("platt?objectiv=macro_f1", r"unknown option of the calibration platt 'objectiv'\. Did you mean 'objective'\?"),
        ("paper?objective=macro_f1", "Known: least, margin, most, strategy"),
        ("platt?objective=macro", r"unknown objective 'macro'\. Did you mean 'macro_f1'\?"),
        ("paper?strategy=globl", r"unknown strategy 'globl'\. Did you mean 'global'\?"),
        ("platt?most=two", r"the option most of the calibration platt is a whole number, got 'two'\."),
        ("platt?centred=maybe", "is true or false, got 'maybe'"),
        ("auto?cost=4", "is two numbers as in 1:4, the cost of a false positive and of a false negative, got '4'"),
        ("auto?cost=1:4", "cost is for the objective 'cost'"),
        ("conformal?level=1.5", "level and confidence lie between 0 and 1, got 1.5"),
        ("bias?share=2", "share lies between 0 and 1, got 2"),
        ("platt?most", r"options of a calibration are written platt\?option=value&option=value, got 'most'\."),
    ],
)
def test_options_that_cannot_be_used_say_so_before_any_fit(text, message):
    with pytest.raises(SetScoreError, match=message):
        make(text)
