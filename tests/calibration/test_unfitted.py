"""Before any labelled document: the formula, its ends, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from slices import NOT_ASKED

from setscore import SetScoreClassifier
from setscore.backbones import backbone_spec
from setscore.calibration import UnfittedCalibration
from setscore.competition import SHARPNESS, others
from setscore.errors import SetScoreError

LOG_ODDS = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.floats(-30, 30))


def at(temperature, competition, labels, handicap=1.0):
    made = UnfittedCalibration(temperature=temperature, competition=competition, handicap=handicap)
    return made.for_labels(labels)


def literal_others(row, label):
    rest = [value for j, value in enumerate(row) if j != label]
    return np.logaddexp.reduce([0.0, *(SHARPNESS * value for value in rest)]) / SHARPNESS


@given(LOG_ODDS, st.floats(0.1, 5), st.floats(0, 1))
def test_the_formula(log_odds, temperature, competition):
    found = at(temperature, competition, log_odds.shape[1]).transform(log_odds)
    for (n, i), u in np.ndenumerate(log_odds):
        r = literal_others(log_odds[n], i) if log_odds.shape[1] > 1 else 1.0  # one label has no others
        np.testing.assert_allclose(
            found[n, i], expit((u + competition * (1 - r)) / temperature), rtol=1e-9, atol=1e-300
        )


@given(LOG_ODDS, st.floats(0, 1), st.floats(0, 1))
def test_a_handicap_is_only_for_labels_beside_another_one(log_odds, competition, handicap):
    labels = log_odds.shape[1]
    less, none, whole = (at(1.0, competition, labels, h).transform(log_odds) for h in (handicap, 0.0, 1.0))
    assert (none >= expit(log_odds)).all()
    assert (none >= less).all()
    assert (less >= whole).all()
    lone = others(log_odds) <= 1
    np.testing.assert_array_equal(none[lone], whole[lone])


@given(LOG_ODDS)
def test_without_competition_and_temperature_it_is_the_models_own(log_odds):
    own = UnfittedCalibration().for_labels(log_odds.shape[1])
    np.testing.assert_array_equal(own.transform(log_odds), expit(log_odds))
    np.testing.assert_array_equal(own.predict(log_odds), expit(log_odds) >= 0.5)


@given(LOG_ODDS, st.floats(0, 1), st.randoms(use_true_random=False))
def test_the_order_of_labels_does_not_matter(log_odds, competition, random):
    labels = log_odds.shape[1]
    order = random.sample(range(labels), labels)
    calibration = at(0.5, competition, labels)
    np.testing.assert_allclose(
        calibration.transform(log_odds[:, order]), calibration.transform(log_odds)[:, order], rtol=1e-9, atol=1e-300
    )


@given(LOG_ODDS, st.floats(0, 1))
def test_a_label_that_plainly_does_not_apply_changes_nothing(log_odds, competition):
    labels = log_odds.shape[1]
    for low in (-40.0, NOT_ASKED) if labels > 1 else (NOT_ASKED,):
        more = np.concatenate([log_odds, np.full((len(log_odds), 1), low)], axis=1)
        alone, beside = (
            at(0.5, competition, labels).transform(log_odds),
            at(0.5, competition, labels + 1).transform(more),
        )
        np.testing.assert_allclose(beside[:, :-1], alone, rtol=1e-9, atol=1e-300)


@given(LOG_ODDS)
def test_a_soft_maximum_lies_just_above_the_maximum(log_odds):
    found = others(log_odds)
    for (n, i), _ in np.ndenumerate(log_odds):
        highest = max([0.0, *np.delete(log_odds[n], i)])
        assert highest - 1e-9 <= found[n, i] <= highest + np.log(log_odds.shape[1]) / SHARPNESS + 1e-9


def test_a_likely_label_raises_the_bar_for_the_others():
    calibration = at(1.0, 0.5, 2)
    (beside_nothing, _), (beside_a_likely_one, _) = calibration.transform([[0.2, -5.0], [0.2, 3.0]])
    assert beside_nothing > expit(0.2) > beside_a_likely_one


def test_a_label_asked_by_itself_gets_no_bonus():
    """Of a set of one, and where of several labels only that one was asked of the document."""
    assert at(1.0, 0.8, 1).transform([[0.2]]) == pytest.approx(expit(0.2))
    found = at(1.0, 0.8, 2).transform([[0.2, NOT_ASKED], [0.2, -9.0]])
    assert found[0, 0] == pytest.approx(expit(0.2))
    assert found[1, 0] > 0.6


def test_many_labels_cost_little():
    assert others(np.zeros((2, 100_000))).shape == (2, 100_000)


def test_the_classifier_takes_the_backbones_numbers():
    spec = backbone_spec("setscore-small")
    assert spec.competition > 0
    classifier = SetScoreClassifier(["weather", "sports"])
    documents = ["Heavy rain is expected all night.", "The home side won the final on penalties."]
    ready = at(spec.temperature, spec.competition, 2, spec.handicap)
    np.testing.assert_array_equal(
        classifier.predict_proba(documents), ready.transform(classifier.decision_function(documents))
    )
    assert classifier.current_calibration().choice_ == (
        f"nothing fitted: temperature {spec.temperature:g}, competition {spec.competition:g}"
    )
    large = SetScoreClassifier(["a", "b", "c"], backbone="llada-8b-instruct", threshold=0.3).current_calibration()
    assert large.thresholds_.tolist() == [0.3] * 3


def test_competition_can_be_chosen_and_0_asks_each_label_for_itself():
    documents, labels = ["I want my money back for the broken lamp."], ["refund", "complaint", "broken lamp"]
    together = SetScoreClassifier(labels, competition=0).predict_proba(documents)[0]
    alone = [SetScoreClassifier([label], competition=0).predict_proba(documents)[0, 0] for label in labels]
    np.testing.assert_allclose(together, alone, atol=0.02)
    usual = SetScoreClassifier(labels).classify(documents)
    assert usual.competition == backbone_spec("setscore-small").competition
    assert SetScoreClassifier(labels, competition=0).classify(documents).competition == 0
    np.testing.assert_array_equal(
        list(usual[0].raw.values()), 1 / (1 + np.exp(-np.array(list(usual[0].log_odds.values()))))
    )
    with pytest.raises(SetScoreError, match=r"competition lies between 0 \(independent\) and 1 \(one label\), got 2"):
        SetScoreClassifier(labels, competition=2).predict(documents)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "a temperature above 0 is needed, got 0"),
        ({"competition": 1.5}, r"competition lies between 0 \(independent\) and 1 \(one label\), got 1.5"),
        ({"handicap": -0.5}, r"a handicap lies between 0 \(none\) and 1, got -0.5"),
        ({"threshold": -0.1}, "a threshold lies between 0 and 1, got -0.1"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(SetScoreError, match=message):
        UnfittedCalibration(**options).for_labels(2)
