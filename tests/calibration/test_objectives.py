"""Thresholds: the exact search against brute force, and what happens where there is nothing to search."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import logit
from slices import f1, slices

from setscore.calibration.thresholds import best_cut, best_thresholds, expected_thresholds, halfway, steady_thresholds

PROBABILITIES = st.one_of(st.integers(0, 10).map(lambda i: i / 10), st.floats(0, 1))


def sample_f1(gold, predicted):
    return np.mean([f1(*row) for row in zip(gold, predicted, strict=True)])


@st.composite
def probabilities(draw):
    """Probabilities, gold, and what was asked; at least one gold label was."""
    scores, gold = draw(slices(values=PROBABILITIES))
    asked = np.isfinite(scores)
    assume(gold[asked].any())
    return np.where(asked, scores, 0.0), gold, asked


@given(probabilities())
def test_micro_f1_is_that_of_the_best_of_all_cuts(problem):
    p, gold, asked = problem
    thresholds = best_thresholds(p, gold, asked, "micro_f1")
    assert len(set(thresholds)) == 1
    best = max(f1(gold, asked & (p >= cut)) for cut in np.unique(p[asked]))
    assert f1(gold, asked & (p >= thresholds)) == pytest.approx(best, abs=1e-12)


@given(probabilities())
def test_of_equally_good_cuts_the_highest_is_taken(problem):
    p, gold, asked = problem
    predicted = asked & (p >= best_thresholds(p, gold, asked, "micro_f1"))
    reached = f1(gold, predicted)
    for cut in np.unique(p[asked]):
        decisions = asked & (p >= cut)
        assert decisions.sum() >= predicted.sum() or f1(gold, decisions) < reached


@given(probabilities())
def test_macro_f1_is_the_best_cut_of_every_label(problem):
    p, gold, asked = problem
    thresholds = best_thresholds(p, gold, asked, "macro_f1")
    common = best_thresholds(p, gold, asked, "micro_f1")
    for i in range(p.shape[1]):
        inside = asked[:, i]
        if not gold[inside, i].any():  # nothing to learn from: the cut of all labels together
            assert thresholds[i] == common[i]
            continue
        best = max(f1(gold[:, i], inside & (p[:, i] >= cut)) for cut in np.unique(p[inside, i]))
        assert f1(gold[:, i], inside & (p[:, i] >= thresholds[i])) == pytest.approx(best, abs=1e-12)


@given(probabilities())
def test_sample_f1_is_that_of_the_best_of_all_cuts(problem):
    p, gold, asked = problem
    thresholds = best_thresholds(p, gold, asked, "sample_f1")
    assert len(set(thresholds)) == 1
    best = max(sample_f1(gold, asked & (p >= cut)) for cut in np.unique(p[asked]))
    assert sample_f1(gold, asked & (p >= thresholds)) == pytest.approx(best, abs=1e-12)


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_cost_needs_no_data(false_positive, false_negative):
    nothing = np.zeros((1, 3), dtype=bool)
    thresholds = best_thresholds(np.zeros((1, 3)), nothing, nothing, "cost", (false_positive, false_negative))
    np.testing.assert_allclose(thresholds, false_positive / (false_positive + false_negative))


def test_the_threshold_of_a_cost_is_the_cheapest_for_probabilities_that_are_true():
    generator = np.random.default_rng(0)
    p = generator.random((200_000, 1))
    gold = generator.random(p.shape) < p
    (threshold,) = best_thresholds(p, gold, np.ones_like(gold), "cost", (1.0, 4.0))
    assert threshold == pytest.approx(0.2)

    def cost(cut):
        return (~gold & (p >= cut)).sum() + 4 * (gold & (p < cut)).sum()

    assert all(cost(threshold) < cost(other) for other in (0.1, 0.15, 0.25, 0.3, 0.5))


@pytest.mark.parametrize("objective", ["micro_f1", "macro_f1", "sample_f1"])
@pytest.mark.parametrize(
    ("gold", "asked"), [([0, 0], [1, 1]), ([1, 0], [0, 1]), ([1, 1], [0, 0])], ids=["no gold", "not asked", "nothing"]
)
def test_without_a_gold_label_that_was_asked_the_f1s_leave_the_threshold_in_the_middle(objective, gold, asked):
    # For the sample F1 a cut is found wherever something was asked, though every cut is as good.
    gold, asked = np.array([gold], dtype=bool), np.array([asked], dtype=bool)
    thresholds = best_thresholds(np.where(asked, 0.9, 0.0), gold, asked, objective)
    assert ((thresholds > 0) & (thresholds < 0.9)).all()
    if objective != "sample_f1":
        np.testing.assert_array_equal(thresholds, 0.5)


def test_gold_labels_that_were_not_asked_count_as_missed():
    # Worked by hand. Cut below the first: F1 = 2 / (1 + positives); cut below the last: 4 / (4 + positives).
    scores, gold = np.array([0.9, 0.7, 0.5, 0.3]), np.array([True, False, False, True])
    assert best_cut(scores, gold, positives=2) == pytest.approx(0.8)
    assert best_cut(scores, gold, positives=6) == pytest.approx(0.15)


def test_ties_are_decided_together():
    assert best_cut(np.array([0.8, 0.8, 0.8, 0.2]), np.array([True, False, False, False]), 1) == pytest.approx(0.5)


@given(st.floats(0, 1, exclude_max=True))
def test_neighbouring_floats_are_still_separated(low):
    # Halfway between two neighbouring floats rounds to one of them, perhaps the lower: the cut must not move there.
    high = np.nextafter(low, 1)
    assert low < halfway(high, low) <= high
    assert low < best_cut(np.array([low, high]), np.array([False, True]), positives=1) <= high


def expected_cut(p, missed=0):
    """The best cut where probabilities stand in for gold labels."""
    return best_cut(p, p, p.sum() + missed)


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=40), st.integers(0, 5))
def test_no_cut_is_expected_to_be_better(probabilities, missed):
    p = np.array(probabilities)

    def expected_f1(cut):
        taken = p >= cut
        return 2 * p[taken].sum() / (taken.sum() + p.sum() + missed)

    best = max(expected_f1(cut) for cut in p)
    assert expected_f1(expected_cut(p, missed)) == pytest.approx(best)


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=40))
def test_the_expected_cut_is_half_of_the_f1_it_reaches(probabilities):
    """Everything above half of the best F1 is taken, nothing below it."""
    p = np.array(probabilities)
    taken = p >= expected_cut(p)
    half = p[taken].sum() / (taken.sum() + p.sum())
    assert (p[taken] >= half - 1e-9).all()
    assert (p[~taken] <= half + 1e-9).all()


def test_many_gold_labels_speak_for_themselves_and_few_do_not():
    generator = np.random.default_rng(3)
    p = generator.random((4000, 3)) ** 3
    gold = generator.random(p.shape) < 0.5 * p  # half as often as the probabilities say
    for documents, nearer in ((8, "expected"), (4000, "observed")):
        some = p[:documents], gold[:documents], np.ones_like(gold[:documents])
        (steady, _, _), (observed, _, _) = (f(*some, "micro_f1") for f in (steady_thresholds, best_thresholds))
        expected = expected_cut(p[:documents].ravel())
        assert min(observed, expected) <= steady <= max(observed, expected)
        assert (abs(steady - observed) < abs(steady - expected)) == (nearer == "observed")


def test_each_label_is_as_steady_as_it_has_gold_labels():
    p = np.tile(np.linspace(0.01, 0.99, 400)[:, None], (1, 2))
    gold = np.stack([p[:, 0] > 0.9, np.arange(400) == 399], axis=1)
    frequent, rare = steady_thresholds(p, gold, np.ones_like(gold), "macro_f1")
    observed = best_thresholds(p, gold, np.ones_like(gold), "macro_f1")
    assert abs(rare - expected_cut(p[:, 1])) < 0.05
    assert expected_cut(p[:, 0]) < frequent < observed[0]  # forty gold labels: a share of 0.29


@pytest.mark.parametrize("objective", ["sample_f1", "cost"])
def test_other_objectives_are_as_before(objective):
    p, gold = np.array([[0.9, 0.2], [0.4, 0.7]]), np.array([[True, False], [False, True]])
    some = (p, gold, np.ones_like(gold), objective)
    np.testing.assert_array_equal(steady_thresholds(*some), best_thresholds(*some))


def test_a_label_without_gold_documents_has_a_cut_of_its_own_by_the_documents_it_was_asked_of():
    """With one cut for all it would never be found; with few documents it stays near the common one."""
    rng = np.random.default_rng(3)
    cuts = {}
    for n in (5, 400):
        probabilities = np.column_stack([rng.beta(2, 2, n), rng.beta(0.2, 8, n)])
        gold = np.column_stack([rng.random(n) < probabilities[:, 0], np.zeros(n, dtype=bool)])
        asked = np.ones(gold.shape, dtype=bool)
        found, common = expected_thresholds(probabilities, gold, asked, "balanced")
        cuts[n] = found[1] / common
        never = expected_thresholds(probabilities, gold, asked & [True, False], "balanced")[0]
        assert never[1] == pytest.approx(common, rel=0.2)
    assert cuts[400] < 0.8
    assert cuts[5] > cuts[400]


@pytest.mark.parametrize("objective", ["micro_f1", "macro_f1", "balanced"])
@pytest.mark.parametrize(("doubt", "cut"), [(logit(0.25), 0.25), (logit(0.01), 0.055), (0.0, 0.366), (3.0, 0.366)])
def test_before_there_are_gold_labels_a_cut_is_between_a_usual_one_and_where_zero_shot_is_in_doubt(
    objective, doubt, cut
):
    probabilities = np.random.default_rng(5).random((40, 3))
    gold, asked = np.zeros(probabilities.shape, dtype=bool), np.ones(probabilities.shape, dtype=bool)
    found, common = expected_thresholds(probabilities, gold, asked, objective, doubt=doubt)
    np.testing.assert_allclose([*found, common], cut, rtol=0.01)


def test_the_more_gold_labels_the_less_that_counts():
    probabilities = np.random.default_rng(5).random((40, 3))
    asked, apart = np.ones(probabilities.shape, dtype=bool), []
    for labels in (0, 1, 5, 50):
        gold = np.arange(120).reshape(40, 3) < labels
        cuts = [expected_thresholds(probabilities, gold, asked, "balanced", doubt=doubt)[0] for doubt in (-4.0, 0.0)]
        apart.append(np.abs(cuts[1] - cuts[0]).mean())
    assert sorted(apart, reverse=True) == apart
    assert apart[-1] < 0.05 < apart[0]
