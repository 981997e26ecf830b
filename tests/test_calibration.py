"""Temperature and threshold: the formulas, the exact search, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score

from setscore.calibration import TEMPERATURES, TemperatureThreshold, _best_threshold
from setscore.errors import SetScoreError

NOT_ASKED = -np.inf


@st.composite
def problems(draw, not_asked=True, elements=None):
    """Log-odds and gold of one shape. Few distinct values, so that ties are common."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    values = elements or st.one_of(st.integers(-6, 6).map(float), st.floats(-30, 30))
    if not_asked:
        values = st.one_of(values, st.just(NOT_ASKED))
    size = rows * columns
    log_odds = np.array(draw(st.lists(values, min_size=size, max_size=size))).reshape(rows, columns)
    gold = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(rows, columns)
    return log_odds, gold.astype(int)


def micro_f1(gold, predicted):
    return f1_score(gold.ravel(), predicted.ravel().astype(int), zero_division=0)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.floats(0.05, 20), st.floats(0, 1))
def test_probability_is_sigmoid_of_u_over_t_and_decision_is_at_or_above_tau(values, temperature, threshold):
    calibration = TemperatureThreshold.restore({"temperature": temperature, "threshold": threshold}, 1)
    log_odds = np.array(values)[:, None]
    probabilities = calibration.transform(log_odds)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-log_odds / temperature)), rtol=1e-12)
    np.testing.assert_array_equal(calibration.predict(log_odds), probabilities >= threshold)


def test_a_probability_equal_to_the_threshold_is_predicted():
    calibration = TemperatureThreshold.unfitted(3, threshold=0.5)
    assert calibration.transform([[0.0, 1e-9, -1e-9]])[0, 0] == 0.5
    assert calibration.predict([[0.0, 1e-9, -1e-9]]).tolist() == [[True, True, False]]


@given(problems())
def test_the_fitted_threshold_reaches_the_best_micro_f1_of_all_cuts(problem):
    log_odds, gold = problem
    asked = np.isfinite(log_odds)
    assume(gold[asked].any())
    calibration = TemperatureThreshold().fit(log_odds, gold)
    probabilities = calibration.transform(log_odds)
    # Brute force: every distinct probability as the cut. Labels never asked are missed at each of them.
    cuts = np.unique(probabilities[asked])
    best = max(micro_f1(gold, asked & (probabilities >= cut)) for cut in cuts)
    assert micro_f1(gold, calibration.predict(log_odds)) == pytest.approx(best, abs=1e-12)


@given(problems())
def test_of_equally_good_cuts_the_highest_is_taken(problem):
    log_odds, gold = problem
    asked = np.isfinite(log_odds)
    assume(gold[asked].any())
    calibration = TemperatureThreshold().fit(log_odds, gold)
    probabilities, predicted = calibration.transform(log_odds), calibration.predict(log_odds)
    reached = micro_f1(gold, predicted)
    for cut in np.unique(probabilities[asked]):
        decisions = asked & (probabilities >= cut)
        if decisions.sum() < predicted.sum():
            assert micro_f1(gold, decisions) < reached + 1e-12


def test_the_cut_lies_halfway_between_the_scores_it_separates():
    log_odds, gold = np.array([[2.0], [1.0], [-1.0], [-3.0]]), np.array([1, 1, 0, 0])
    calibration = TemperatureThreshold().fit(log_odds, gold)
    above, below = expit(np.array([1.0, -1.0]) / calibration.temperature_)
    assert calibration.threshold_ == pytest.approx((above + below) / 2)


@given(st.floats(0, 1, exclude_max=True))
def test_neighbouring_floats_are_still_separated(low):
    # Halfway between two neighbouring floats rounds to one of them, perhaps the lower: the cut must not move there.
    high = np.nextafter(low, 1)
    cut = _best_threshold(np.array([low, high]), np.array([False, True]), positives=1)
    assert low < cut <= high


def test_ties_are_decided_together():
    calibration = TemperatureThreshold().fit([[1.0], [1.0], [1.0], [-1.0]], [1, 0, 0, 0])
    assert calibration.predict([[1.0], [1.0], [1.0], [-1.0]]).ravel().tolist() == [True, True, True, False]


@given(problems(), st.floats(0.05, 20))
def test_no_temperature_changes_an_ordering(problem, temperature):
    log_odds, _ = problem
    calibration = TemperatureThreshold.restore({"temperature": temperature, "threshold": 0.5}, log_odds.shape[1])
    ranked = calibration.transform(log_odds).ravel()[np.argsort(log_odds.ravel(), kind="stable")]
    assert (np.diff(ranked) >= 0).all()


@given(problems())
def test_the_fitted_temperature_is_at_least_as_likely_as_one(problem):
    log_odds, gold = problem
    asked = np.isfinite(log_odds)
    calibration = TemperatureThreshold().fit(log_odds, gold)

    def loss(temperature):
        signed = np.where(gold[asked] == 1, log_odds[asked], -log_odds[asked])
        return np.logaddexp(0, -signed / temperature).mean() if signed.size else 0.0

    assert loss(calibration.temperature_) <= loss(1.0) + 1e-6
    assert TEMPERATURES[0] <= calibration.temperature_ <= TEMPERATURES[1]


def test_the_temperature_is_recovered_from_data_that_follow_it():
    generator = np.random.default_rng(0)
    log_odds = generator.normal(scale=6, size=(4000, 1))
    gold = (generator.random((4000, 1)) < expit(log_odds / 3)).astype(int)
    assert TemperatureThreshold().fit(log_odds, gold).temperature_ == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize(
    ("gold", "everything"), [([[0, 0], [0, 0]], False), ([[1, 1], [1, 1]], True)], ids=["no positives", "all positives"]
)
def test_gold_of_one_kind_teaches_no_temperature(gold, everything):
    log_odds = [[3.0, -3.0], [0.5, -9.0]]
    calibration = TemperatureThreshold().fit(log_odds, gold)
    assert calibration.temperature_ == 1.0
    if everything:
        assert calibration.predict(log_odds).all()
    else:
        assert calibration.threshold_ == 0.5


def test_what_was_not_asked_is_never_predicted_and_teaches_nothing():
    asked, gold = np.array([[2.0], [0.5], [-1.0], [-2.0]]), np.array([[1], [0], [1], [0]])
    beside = np.full_like(asked, NOT_ASKED)
    alone = TemperatureThreshold().fit(asked, gold)
    both = TemperatureThreshold().fit(np.hstack([asked, beside]), np.hstack([gold, np.zeros_like(gold)]))
    assert both.state() == alone.state()
    assert both.transform([[NOT_ASKED, 0.0]])[0, 0] == 0.0
    # Probability 0 reaches a threshold of 0; still nobody asked.
    assert TemperatureThreshold.unfitted(2, threshold=0).predict([[NOT_ASKED, -800.0]]).tolist() == [[False, True]]


def test_gold_labels_that_were_not_asked_count_as_missed():
    # Worked by hand. Cut above 1: F1 = 2 / (1 + positives); cut at the end: 4 / (4 + positives).
    log_odds, gold = np.array([[3.0], [1.0], [0.0], [-1.0]]), np.array([[1], [0], [0], [1]])
    few = TemperatureThreshold().fit(log_odds, gold)
    assert few.predict(log_odds).ravel().tolist() == [True, False, False, False]
    missed = np.full((4, 1), NOT_ASKED)
    many = TemperatureThreshold().fit(np.hstack([log_odds, missed]), np.hstack([gold, np.ones((4, 1), dtype=int)]))
    assert many.predict(np.hstack([log_odds, missed]))[:, 0].tolist() == [True, True, True, True]


def test_nothing_asked_at_all_stays_neutral():
    calibration = TemperatureThreshold().fit([[NOT_ASKED, NOT_ASKED]], [[1, 0]])
    assert calibration.state() == {"temperature": 1.0, "threshold": 0.5}


@given(problems(), st.integers(0, 2**32 - 1))
def test_state_and_restore_round_trip_through_json(problem, seed):
    log_odds, gold = problem
    fitted = TemperatureThreshold().fit(log_odds, gold)
    restored = TemperatureThreshold.restore(json.loads(json.dumps(fitted.state())), log_odds.shape[1])
    new = np.random.default_rng(seed).normal(scale=4, size=(5, log_odds.shape[1]))
    np.testing.assert_array_equal(restored.transform(new), fitted.transform(new))
    np.testing.assert_array_equal(restored.predict(new), fitted.predict(new))
    assert restored.state() == fitted.state()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_positive_infinity_are_refused_everywhere(bad):
    message = r"log-odds hold NaN or inf; only -inf \(not asked\) is allowed\."
    with pytest.raises(ValueError, match=message):
        TemperatureThreshold().fit([[1.0, bad]], [[1, 0]])
    neutral = TemperatureThreshold.unfitted(2)
    for method in (neutral.transform, neutral.predict):
        with pytest.raises(ValueError, match=message):
            method([[1.0, bad]])


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
def test_gold_that_does_not_fit_says_what_is_wrong(gold, message):
    with pytest.raises(ValueError, match=message):
        TemperatureThreshold().fit([[1.0, 2.0], [0.0, -1.0]], gold)


def test_another_number_of_labels_is_refused():
    with pytest.raises(ValueError, match="X has 2 features, but TemperatureThreshold is expecting 3 features"):
        TemperatureThreshold.unfitted(3).transform([[0.0, 1.0]])


@pytest.mark.parametrize(
    "state",
    [
        {"temperature": 0, "threshold": 0.5},
        {"temperature": -1, "threshold": 0.5},
        {"temperature": float("nan"), "threshold": 0.5},
        {"temperature": 1, "threshold": -0.1},
        {"temperature": 1, "threshold": 1.1},
        {"temperature": 1, "threshold": float("nan")},
    ],
)
def test_a_state_out_of_range_is_refused(state):
    with pytest.raises(
        SetScoreError, match=r"a temperature above 0 and a threshold in \[0, 1\] are needed, got {'temp"
    ):
        TemperatureThreshold.restore(state, 1)


@pytest.mark.parametrize("method", ["transform", "predict"])
def test_before_fit_there_is_nothing_to_apply(method):
    with pytest.raises(NotFittedError):
        getattr(TemperatureThreshold(), method)([[0.0]])
    with pytest.raises(NotFittedError):
        TemperatureThreshold().state()
