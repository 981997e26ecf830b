"""Choosing a calibration inside the slice: what it says, that it pays, and that it never flips a coin."""

import numpy as np
import pytest
from slices import NOT_ASKED, biased, f1

from setscore.calibration import (
    CANDIDATES,
    AutoCalibration,
    LevelledCalibration,
    ShrunkCalibration,
    TemperatureCalibration,
)
from setscore.calibration.base import assign_folds
from setscore.metrics import decision_metrics


def test_it_says_what_it_chose_and_why():
    calibration = AutoCalibration().fit(*biased(0))
    assert list(calibration.scores_) == list(CANDIDATES) == ["levelled", "platt", "shrunk", "temperature"]
    table = ", ".join(f"{name} {score:.3f}" for name, score in calibration.scores_.items())
    name = calibration.chosen_.name
    assert calibration.choice_ == f"{name}: {calibration.chosen_.choice_}. Cross-validated micro_f1: {table}"


@pytest.mark.parametrize("objective", ["micro_f1", "macro_f1", "sample_f1", "cost"])
def test_the_scores_are_those_of_documents_that_were_not_fitted_on(objective):
    log_odds, gold = biased(1, documents=60)
    options = {"objective": objective} | ({"cost": (1.0, 3.0)} if objective == "cost" else {})
    calibration = AutoCalibration(**options).fit(log_odds, gold)
    fold = assign_folds(60)
    for name, kind in CANDIDATES.items():
        decisions = np.zeros_like(gold)
        for number in range(5):
            candidate = kind(**options).fit(log_odds[fold != number], gold[fold != number])
            decisions[fold == number] = candidate.predict(log_odds[fold == number])
        if objective == "cost":
            expected = -((~gold & decisions).sum() + 3 * (gold & ~decisions).sum()) / gold.size
        else:
            expected = decision_metrics(gold, decisions)[objective]
        assert calibration.scores_[name] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_on_fresh_documents_of_biased_labels_it_is_no_worse_than_a_temperature(seed):
    labelled, (log_odds, gold) = biased(seed), biased(100 + seed, documents=2000)
    reached = f1(gold, AutoCalibration().fit(*labelled).predict(log_odds))
    assert reached >= f1(gold, TemperatureCalibration().fit(*labelled).predict(log_odds))


def test_it_is_deterministic():
    labelled = biased(3, missing=0.2)
    assert AutoCalibration().fit(*labelled).state() == AutoCalibration().fit(*labelled).state()


def test_it_does_what_the_chosen_one_does():
    log_odds, gold = biased(4, missing=0.1)
    calibration = AutoCalibration(objective="macro_f1", least=1, most=2).fit(log_odds, gold)
    alone = CANDIDATES[calibration.chosen_.name](objective="macro_f1", least=1, most=2).fit(log_odds, gold)
    np.testing.assert_array_equal(calibration.transform(log_odds), alone.transform(log_odds))
    np.testing.assert_array_equal(calibration.predict(log_odds), alone.predict(log_odds))
    np.testing.assert_array_equal(calibration.thresholds_, alone.thresholds_)
    np.testing.assert_array_equal(calibration.undecided(log_odds), alone.undecided(log_odds))


def test_close_candidates_go_to_the_first():
    # Six labels, 15 documents: whatever the numbers say, so few documents do not prove it.
    for seed in range(10):
        calibration = AutoCalibration().fit(*biased(seed, documents=15))
        best = max(calibration.scores_, key=calibration.scores_.__getitem__)
        assert calibration.chosen_.name in ("levelled", best)
    assert isinstance(AutoCalibration().fit([[4.0], [-4.0]] * 10, [1, 0] * 10).chosen_, LevelledCalibration)


def test_another_is_taken_where_it_is_better_beyond_doubt():
    # Own cuts, not own biases: each label is certain from its cut on, and the log-odds of the labels differ in scale.
    log_odds = np.random.default_rng(5).normal(size=(300, 3)) * np.array([0.05, 1.0, 20.0])
    gold = log_odds >= np.array([0.05, 1.0, 20.0])
    calibration = AutoCalibration().fit(log_odds, gold)
    assert isinstance(calibration.chosen_, ShrunkCalibration)
    assert calibration.scores_["shrunk"] > calibration.scores_["platt"]
    assert calibration.choice_.startswith("shrunk: thresholds per label")


def test_one_document_cannot_be_cross_validated():
    calibration = AutoCalibration().fit([[2.0, -2.0, NOT_ASKED]], [[1, 0, 1]])
    assert calibration.scores_ == {}
    assert calibration.choice_.startswith("temperature: temperature ")
    assert calibration.choice_.endswith("One document cannot be cross-validated")
    assert calibration.predict([[2.0, -2.0, NOT_ASKED]]).tolist() == [[True, False, False]]


@pytest.mark.parametrize("gold", [0, 1])
def test_slices_that_teach_nothing(gold):
    log_odds = np.array([[2.0, NOT_ASKED], [-1.0, NOT_ASKED], [0.5, NOT_ASKED]])
    decisions = AutoCalibration().fit(log_odds, np.full((3, 2), gold)).predict(log_odds)
    assert decisions.tolist() == [[bool(gold), False]] * 3
