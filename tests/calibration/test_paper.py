"""The paper's calibrator against a literal reading of its text: loops over the grid, nothing clever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from slices import NOT_ASKED, f1, slices

from setscore.calibration import PaperCalibration
from setscore.calibration.paper import TEMPERATURES, THRESHOLDS
from setscore.errors import SetScoreError

STRATEGIES = ["global", "cardinality", "per_label"]
VALUES = st.one_of(st.integers(-6, 6).map(lambda i: i / 2), st.floats(-5, 5))


def highest_of_the_best(gold, asked, p):
    best, chosen = -1.0, None
    for threshold in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1):
        if f1(gold, asked & (p >= threshold)) > best:
            best, chosen = f1(gold, asked & (p >= threshold)), threshold
    return chosen


def decide(strategy, gold, asked, p):
    """Decisions of one strategy, and the thresholds where they come from the grid."""
    labels = range(p.shape[1])
    if strategy == "cardinality":
        wanted = int(gold.sum())
        least = np.sort(p, axis=None)[::-1][wanted - 1] if wanted else np.inf
        return asked & (p >= least), None
    if strategy == "global":
        thresholds = [highest_of_the_best(gold, asked, p) for _ in labels]
    else:
        thresholds = [highest_of_the_best(gold[:, i], asked[:, i], p[:, i]) for i in labels]
    return asked & (p >= np.array(thresholds)), thresholds


def literal(log_odds, gold, strategies):
    asked, best, found = np.isfinite(log_odds), -1.0, None
    for strategy in strategies:
        for temperature in (1, 0.75, 1.25, 0.5, 1.5, 2):
            p = np.where(asked, expit(log_odds / temperature), 0.0)
            decisions, thresholds = decide(strategy, gold, asked, p)
            if f1(gold, decisions) > best:
                best, found = f1(gold, decisions), (strategy, temperature, decisions, thresholds)
    return found


def test_the_grid_is_the_papers():
    assert sorted(TEMPERATURES) == [0.5, 0.75, 1, 1.25, 1.5, 2]
    assert sorted(THRESHOLDS) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


@pytest.mark.parametrize("strategy", ["auto", *STRATEGIES])
@settings(deadline=None)
@given(labelled=slices(values=VALUES))
def test_the_same_as_a_literal_reading(strategy, labelled):
    log_odds, gold = labelled
    calibration = PaperCalibration(strategy=strategy).fit(log_odds, gold)
    chosen, temperature, decisions, thresholds = literal(
        log_odds, gold, STRATEGIES if strategy == "auto" else [strategy]
    )
    assert (calibration.strategy_, calibration.temperature_) == (chosen, temperature)
    np.testing.assert_array_equal(calibration.predict(log_odds), decisions)
    if thresholds is not None:
        assert calibration.thresholds_.tolist() == thresholds
    assert f"{chosen} thresholds at T = {temperature:g}, micro-F1 {f1(gold, decisions):.3f} on" in calibration.choice_


@given(slices(not_asked=False, values=st.floats(-5, 5)))
def test_as_many_labels_are_predicted_as_are_gold_unless_scores_tie(labelled):
    log_odds, gold = labelled
    calibration = PaperCalibration(strategy="cardinality").fit(log_odds, gold)
    ties = len(np.unique(calibration.transform(log_odds))) < log_odds.size
    predicted = calibration.predict(log_odds).sum()
    assert predicted >= gold.sum() if ties else predicted == gold.sum()


def test_tied_scores_are_predicted_together():
    calibration = PaperCalibration(strategy="cardinality").fit([[2.0], [2.0], [-1.0]], [1, 0, 0])
    assert calibration.predict([[2.0], [2.0], [-1.0]]).ravel().tolist() == [True, True, False]


def test_more_gold_labels_than_were_asked():
    # Three are gold and one was asked; what was not asked must not count as found. It did once.
    log_odds, gold = np.array([[-3.0, NOT_ASKED], [NOT_ASKED, NOT_ASKED]]), np.array([[0, 1], [1, 1]])
    calibration = PaperCalibration(strategy="cardinality").fit(log_odds, gold)
    assert "micro-F1 0.000" in calibration.choice_
    assert calibration.predict(log_odds).tolist() == [[True, False], [False, False]]


def test_where_everything_is_as_good_the_first_of_each_is_taken():
    log_odds = np.array([[9.0, 9.0], [-9.0, 9.0], [9.0, -9.0]])
    calibration = PaperCalibration().fit(log_odds, log_odds > 0)
    assert (calibration.strategy_, calibration.temperature_) == ("global", 1.0)
    assert calibration.thresholds_.tolist() == [0.9, 0.9]


@pytest.mark.parametrize(
    ("value", "other", "temperature"), [(2.0, -9.0, 0.75), (3.5, 3.0, 1.5)], ids=["lower of two", "nearest"]
)
def test_the_temperature_nearest_to_one_that_does_it(value, other, temperature):
    # With 0.9 as the only threshold. sigmoid(2) = 0.88 passes it if sharpened. Of 3.5 and 3 both pass it up to 1.25,
    # T = 1.5 parts them (0.912 and 0.881), and at 2 neither passes.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("setscore.calibration.paper.THRESHOLDS", (0.9,))
        calibration = PaperCalibration(strategy="global").fit([[value], [other]], [1, 0])
    assert calibration.temperature_ == temperature


def test_a_label_without_gold_documents_gets_the_highest_threshold():
    calibration = PaperCalibration(strategy="per_label").fit([[1.0, 1.0], [-1.0, 1.0]], [[1, 0], [0, 0]])
    assert calibration.thresholds_[1] == 0.9


def test_no_gold_labels_at_all_predict_nothing():
    log_odds, gold = np.array([[3.0, -1.0]]), np.zeros((1, 2), dtype=bool)
    assert PaperCalibration().fit(log_odds, gold).thresholds_.tolist() == [0.9, 0.9]
    assert not PaperCalibration(strategy="cardinality").fit(log_odds, gold).predict(log_odds).any()


def test_an_unknown_strategy():
    with pytest.raises(SetScoreError, match=r"unknown strategy 'per_labl'\. Did you mean 'per_label'\?"):
        PaperCalibration(strategy="per_labl").fit([[1.0]], [1])
