"""Metrics against scikit-learn, on random data and on the edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sk

from setscore.errors import SetScoreError
from setscore.metrics import (
    Interval,
    all_metrics,
    bootstrap,
    by_group,
    compare,
    decision_metrics,
    per_label_table,
    probability_metrics,
    ranking_metrics,
    reliability,
)

EXACT = 1e-12


@st.composite
def cases(draw):
    """Gold labels, decisions and probabilities; small sizes make empty labels, ties and single documents common."""
    shape = (draw(st.integers(1, 12)), draw(st.integers(1, 6)))
    gold, predicted = (draw(arrays(np.bool_, shape)) for _ in range(2))
    probabilities = draw(arrays(np.float64, shape, elements=st.sampled_from([0, 0.1, 0.25, 0.5, 0.75, 0.9, 1])))
    return gold, predicted, probabilities


def sklearn_decisions(gold, predicted):
    def f(metric, average):
        return metric(gold, predicted, average=average, zero_division=0)

    return {
        "micro_f1": f(sk.f1_score, "micro"),
        "macro_f1": f(sk.f1_score, "macro"),
        "sample_f1": f(sk.f1_score, "samples"),
        "sample_precision": f(sk.precision_score, "samples"),
        "sample_recall": f(sk.recall_score, "samples"),
        "micro_precision": f(sk.precision_score, "micro"),
        "micro_recall": f(sk.recall_score, "micro"),
        "macro_precision": f(sk.precision_score, "macro"),
        "macro_recall": f(sk.recall_score, "macro"),
        "jaccard": f(sk.jaccard_score, "samples"),
        "exact_match": sk.accuracy_score(gold, predicted),
        "hamming_loss": sk.hamming_loss(gold, predicted),
    }


@settings(deadline=None, max_examples=60)
@given(cases())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_decisions_agree_with_scikit_learn(case):
    gold, predicted, _ = case
    if gold.shape[1] == 1:  # scikit-learn reads one column as a binary problem, not as one label
        gold, predicted = np.repeat(gold, 2, axis=1), np.repeat(predicted, 2, axis=1)
    ours = decision_metrics(gold, predicted)
    for name, value in sklearn_decisions(gold.astype(int), predicted.astype(int)).items():
        assert ours[name] == pytest.approx(value, abs=EXACT), name


@settings(deadline=None, max_examples=60)
@given(cases())
def test_probabilities_agree_with_scikit_learn_on_raveled_arrays(case):
    """scikit-learn scores a multi-label indicator as one-hot; the paper means every pair."""
    gold, _, probabilities = case
    ours = probability_metrics(gold, probabilities)
    flat, p = gold.ravel().astype(int), probabilities.ravel()
    assert ours["brier"] == pytest.approx(sk.brier_score_loss(flat, p, pos_label=1), abs=EXACT)
    clipped = np.clip(p, 1e-12, 1 - 1e-12)
    assert ours["log_loss"] == pytest.approx(sk.log_loss(flat, clipped, labels=[0, 1]), abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(cases())
def test_rankings_agree_with_scikit_learn(case):
    gold, _, scores = case
    ours = ranking_metrics(gold, scores)
    labels, documents = gold.any(0), gold.any(1)
    assert ours["labels_ranked"] == labels.sum()
    if not documents.any():
        assert "lrap" not in ours
        return
    per_label = [sk.average_precision_score(gold[:, i], scores[:, i]) for i in np.flatnonzero(labels)]
    assert ours["macro_ap"] == pytest.approx(np.mean(per_label), abs=EXACT)
    if gold.shape[1] > 1:
        expected = sk.label_ranking_average_precision_score(gold[documents], scores[documents])
        assert ours["lrap"] == pytest.approx(expected, abs=EXACT)
        assert ours["ndcg"] == pytest.approx(sk.ndcg_score(gold[documents], scores[documents]), abs=EXACT)
    best = np.argmax(scores[documents], axis=1)
    assert ours["precision_at_1"] == pytest.approx(gold[documents][np.arange(documents.sum()), best].mean(), abs=EXACT)


def test_ece_by_hand():
    gold = np.array([[1, 0], [1, 1]])
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1]])
    table = reliability(gold, probabilities)
    assert len(table["count"]) == 15
    assert table["count"].sum() == 4
    # 0.9 is right both times (gap 0.1), 0.1 is right half the time (gap 0.4); two pairs each.
    assert probability_metrics(gold, probabilities)["ece"] == pytest.approx((2 * 0.1 + 2 * 0.4) / 4)
    assert probability_metrics([[1]], [[1.0]])["ece"] == 0  # the last bin includes 1


def test_labels_never_positive_and_always_positive():
    gold = np.array([[1, 0, 1], [1, 0, 0]])
    nothing = np.zeros_like(gold)
    assert decision_metrics(gold, nothing)["micro_f1"] == 0
    perfect = decision_metrics(gold, gold)
    assert perfect["micro_f1"] == perfect["macro_f1_present"] == perfect["exact_match"] == 1
    assert perfect["macro_f1"] == pytest.approx(2 / 3)  # the label without gold counts as 0 among all labels
    assert perfect["labels_without_gold"] == 1
    assert decision_metrics([[0]], [[0]])["micro_f1"] == 0


def test_equal_scores_have_a_defined_ranking():
    gold = np.array([[0, 1, 0, 1]])
    found = ranking_metrics(gold, np.full((1, 4), 0.5))
    assert found["precision_at_1"] == 0  # of equals the first label counts as first
    assert found["precision_at_3"] == pytest.approx(1 / 3)
    assert "precision_at_5" not in found


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decision_metrics([[1, 0]], [[1]]), r"\(1, 2\), what is measured \(1, 1\)"),
        (lambda: decision_metrics([[2]], [[1]]), "gold must hold only 0 and 1"),
        (lambda: decision_metrics([1, 0], [1, 0]), "matrix of documents by labels"),
        (lambda: decision_metrics(np.zeros((0, 3)), np.zeros((0, 3))), r"\(0, 3\)"),
        (lambda: probability_metrics([[1]], [[np.nan]]), "1 scores are NaN or infinite"),
        (lambda: ranking_metrics([[1]], [[np.inf]]), "1 scores are NaN or infinite"),
        (lambda: probability_metrics([[1]], [[1.5]]), r"in \[0, 1\], got 1.5 to 1.5"),
        (lambda: per_label_table([[1]], [[1]], ["a", "b"]), "2 names came with 1 label"),
        (lambda: by_group([[1]], [[1]], ["a", "b"]), "2 group values came with 1 document"),
    ],
)
def test_what_cannot_be_measured_says_so(call, message):
    with pytest.raises(SetScoreError, match=message):
        call()


def sample(seed, documents=300, labels=8, noise=0.2):
    random = np.random.default_rng(seed)
    gold = random.random((documents, labels)) < 0.25
    return gold, gold ^ (random.random(gold.shape) < noise)


def test_bootstrap_contains_its_estimate_and_narrows_with_documents():
    gold, predicted = sample(0)
    few = bootstrap(gold[:60], predicted[:60])["micro_f1"]
    many = bootstrap(gold, predicted)["micro_f1"]
    assert few.low < few.value < few.high
    assert many.high - many.low < few.high - few.low
    assert bootstrap(gold, predicted)["micro_f1"] == many  # seeded


def test_a_label_that_no_drawn_document_has_does_not_pull_the_interval_down():
    gold = np.eye(6, dtype=bool)  # every label once: a draw of six documents misses two of them on average
    assert bootstrap(gold, gold)["macro_f1"] == Interval(1.0, 1.0, 1.0)
    wrong = gold.copy()
    wrong[0] = np.roll(wrong[0], 1)
    found = bootstrap(gold, wrong)
    for name in ("macro_f1", "macro_precision", "macro_recall"):
        assert found[name].low <= found[name].value <= found[name].high, name


def test_bootstrap_covers_the_truth_about_as_often_as_it_says():
    """95% intervals over 60 draws; fewer than 50 hits has a probability below 0.1% if the level is right."""
    truth = decision_metrics(*sample(999, documents=60_000))["micro_f1"]
    hits = 0
    for seed in range(60):
        interval = bootstrap(*sample(seed, documents=150), rounds=300)["micro_f1"]
        hits += interval.low <= truth <= interval.high
    assert hits >= 50


def test_compare_finds_a_difference_and_no_difference():
    gold, good = sample(1, noise=0.05)
    _, bad = sample(1, noise=0.3)
    found = compare(gold, bad, good)["micro_f1"]
    assert found.difference > 0
    assert found.low > 0
    assert found.p_value < 0.01
    same = compare(gold, good, good)["micro_f1"]
    assert same.difference == 0
    assert same.p_value == 1
    mirrored = compare(gold, good, bad)["micro_f1"]
    assert mirrored.difference == pytest.approx(-found.difference)


def test_by_group_splits_and_all_metrics_joins():
    gold, predicted = sample(2)
    groups = ["a" if i % 3 else "b" for i in range(len(gold))]
    found = by_group(gold, predicted, groups)
    assert list(found) == ["a", "b"]
    assert found["a"]["documents"] + found["b"]["documents"] == len(gold)
    rows = np.array([group == "b" for group in groups])
    assert found["b"]["micro_f1"] == decision_metrics(gold[rows], predicted[rows])["micro_f1"]
    names = set(all_metrics(gold, predicted, predicted.astype(float)))
    assert {"micro_f1", "lrap", "ece"} <= names


def test_per_label_table():
    rows = per_label_table([[1, 0], [1, 1]], [[1, 1], [0, 1]], ["a", "b"])
    assert rows[0] == {
        "label": "a",
        "gold": 2,
        "predicted": 1,
        "precision": 1,
        "recall": 0.5,
        "f1": pytest.approx(2 / 3),
    }
    assert rows[1]["f1"] == pytest.approx(2 / 3)


@settings(deadline=None, max_examples=40)
@given(cases())
def test_intervals_are_around_the_metrics_themselves(case):
    gold, predicted, probabilities = case
    found, whole = bootstrap(gold, predicted, probabilities, rounds=20), all_metrics(gold, predicted, probabilities)
    assert {"micro_f1", "macro_recall", "sample_f1", "jaccard", "exact_match", "hamming_loss", "ece"} <= found.keys()
    for name, interval in found.items():
        assert interval.value == pytest.approx(whole[name], abs=EXACT)
        assert interval.low <= interval.high
    assert found["ece"].low - EXACT <= found["ece"].value <= found["ece"].high + EXACT
    assert bootstrap(gold, predicted, rounds=20).keys() == found.keys() - {"ece", "brier"}


def test_the_interval_of_a_small_calibration_error_is_around_it():
    """Perfectly calibrated in each of ten bins, so that every draw is worse: the interval lay above the error of 0."""
    levels = np.repeat(np.arange(0.05, 1, 0.1), 20)
    probabilities = levels[:, None]
    gold = (np.tile(np.arange(20), 10) < np.rint(20 * levels))[:, None]
    found = bootstrap(gold, gold, probabilities)["ece"]
    assert found.value == pytest.approx(0)
    assert found.low <= found.value <= found.high
    assert 0.01 < found.high < 0.1


def test_resampled_metrics_are_those_of_the_documents_that_were_drawn():
    gold, predicted = sample(3, documents=60)  # so many that every label is drawn
    probabilities = np.random.default_rng(0).random(gold.shape)
    found = bootstrap(gold, predicted, probabilities, rounds=2, seed=5, level=1.0)
    drawn = np.random.default_rng(5).multinomial(len(gold), np.full(len(gold), 1 / len(gold)), size=2)
    rows = [np.repeat(np.arange(len(gold)), times) for times in drawn]
    one, two = (all_metrics(gold[each], predicted[each], probabilities[each]) for each in rows)
    for name, interval in found.items():
        low, high = sorted([one[name], two[name]])
        assert interval.high - interval.low == pytest.approx(high - low, abs=EXACT)
        if name != "ece":  # which is moved
            assert interval.low == pytest.approx(low, abs=EXACT)


def test_compare_measures_every_metric_of_decisions():
    gold, predicted = sample(0)
    found = compare(gold, predicted, gold)
    assert found["exact_match"].difference == pytest.approx(1 - (gold == predicted).all(axis=1).mean())
    assert found["hamming_loss"].difference == pytest.approx(-(gold != predicted).mean())
    assert all(one.low <= one.difference <= one.high for one in found.values())
    assert found["jaccard"].p_value < 0.01
