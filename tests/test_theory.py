"""Every statement of the paper's theory: it holds on random and adversarial instances, and is tight where proved so."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit

from setscore import theory
from setscore.errors import SetScoreError
from setscore.experiments import paper
from setscore.metrics import decision_metrics

SHAPE = (5, 4)
unit = hnp.arrays(np.float64, SHAPE, elements=st.floats(0, 1))
inner = hnp.arrays(np.float64, SHAPE, elements=st.floats(0.01, 0.99))
logits = hnp.arrays(np.float64, SHAPE, elements=st.floats(-9, 9))
taus = hnp.arrays(np.float64, SHAPE[1:], elements=st.floats(0.05, 0.95))
marks = hnp.arrays(np.bool_, SHAPE)
tables = hnp.arrays(np.float64, (8, 3), elements=st.floats(-5, 5))
starts = hnp.arrays(np.bool_, 3)
orders = st.permutations(range(3))


@given(hnp.arrays(np.float64, 4, elements=st.floats(-5, 5)), hnp.arrays(np.float64, 4, elements=st.floats(-2, 2)))
def test_scores_of_labels_are_invariant_and_scores_of_places_are_not(of_label, of_place):
    every = list(itertools.permutations(range(4)))
    assert theory.is_permutation_invariant(lambda order: of_label[list(order)], every)
    moved = theory.order_deviation(lambda order: of_label[list(order)] + of_place, every)
    assert moved == pytest.approx(np.ptp(of_place), abs=1e-12)


@given(hnp.arrays(np.float64, 4, elements=st.floats(-5, 5)), hnp.arrays(np.float64, 4, elements=st.floats(0.05, 0.95)))
def test_the_predicted_set_does_not_depend_on_the_order(log_odds, tau):
    """The theorem's other half: thresholds that belong to labels, so the same labels are predicted in any order."""
    names = np.array(["a", "b", "c", "d"])
    sets = {
        frozenset(names[list(order)][expit(log_odds[list(order)]) >= tau[list(order)]])
        for order in itertools.permutations(range(4))
    }
    assert len(sets) == 1
    every = list(itertools.permutations(range(4)))
    by_place = theory.order_deviation(lambda order: expit(log_odds[list(order)]) - tau, every)
    assert (by_place > 1e-9) == (np.ptp(tau) > 1e-9)  # thresholds that belong to places move with them


def test_nothing_to_compare_is_an_error():
    with pytest.raises(SetScoreError, match="no orders"):
        theory.order_deviation(lambda order: [0.0], [])


@given(marks, marks)
def test_at_one_half_the_loss_is_half_of_hamming(gold, predicted):
    assert theory.weighted_hamming_loss(gold, predicted, 0.5) == pytest.approx((gold != predicted).mean() / 2)


@given(marks, marks, taus)
def test_the_risk_of_certain_labels_is_their_loss(gold, predicted, tau):
    risk = theory.weighted_hamming_risk(gold.astype(float), predicted, tau)
    assert risk == pytest.approx(theory.weighted_hamming_loss(gold, predicted, tau))


@given(unit, marks, taus)
def test_no_decision_beats_the_bayes_rule(eta, other, tau):
    best = theory.weighted_hamming_risk(eta, theory.bayes_decision(eta, tau), tau)
    assert best <= theory.weighted_hamming_risk(eta, other, tau) + 1e-12


@given(unit, unit, taus)
def test_excess_risk_is_the_difference_of_risks_and_within_the_bound(eta, estimate, tau):
    found, best = (theory.bayes_decision(values, tau) for values in (estimate, eta))
    difference = theory.weighted_hamming_risk(eta, found, tau) - theory.weighted_hamming_risk(eta, best, tau)
    excess = theory.excess_risk(eta, estimate, tau)
    assert excess == pytest.approx(difference, abs=1e-12)
    assert 0 <= excess <= theory.excess_risk_bound(eta, estimate) + 1e-12
    safe = theory.decision_is_safe(eta, estimate, tau)
    assert (found == best)[safe].all()


@given(unit, taus)
def test_the_bound_is_tight_for_an_estimate_on_the_threshold(eta, tau):
    eta = np.minimum(eta, tau)  # the adversary: just enough to say yes, wherever no is right
    estimate = np.broadcast_to(tau, eta.shape)
    assert theory.excess_risk(eta, estimate, tau) == pytest.approx(theory.excess_risk_bound(eta, estimate), abs=1e-12)


@given(unit, unit)
def test_the_corollary_for_ordinary_hamming_risk(eta, estimate):
    """By definition: the chance that a decision is wrong is 1 - eta for yes and eta for no."""

    def risk(decided):
        return float(np.where(decided, 1 - eta, eta).mean())

    excess = risk(estimate >= 0.5) - risk(eta >= 0.5)
    assert theory.hamming_excess_risk(eta, estimate) == pytest.approx(excess, abs=1e-12)
    assert -1e-12 <= excess <= theory.hamming_excess_risk_bound(eta, estimate) + 1e-12
    assert theory.hamming_excess_risk_bound(eta, estimate) == pytest.approx(2 * np.abs(estimate - eta).mean())


@given(unit)
def test_the_corollary_is_tight_for_an_estimate_of_one_half(eta):
    eta, estimate = np.minimum(eta, 0.5), np.full(SHAPE, 0.5)
    excess = theory.hamming_excess_risk(eta, estimate)
    assert excess == pytest.approx(theory.hamming_excess_risk_bound(eta, estimate), abs=1e-12)
    assert excess == pytest.approx((1 - 2 * eta).mean(), abs=1e-12)


@given(logits, logits, st.floats(0.25, 4))
def test_the_bound_in_logits_is_never_below_the_one_in_probabilities(true, log_odds, temperature):
    eta, estimate = expit(true), expit(log_odds / temperature)
    rounding = 1e-12
    bound = theory.excess_risk_bound_logits(true, log_odds, temperature)
    assert theory.excess_risk_bound(eta, estimate) <= bound + rounding


def test_the_bound_in_logits_is_tight_near_zero():
    true, log_odds = np.array([[-1e-4]]), np.array([[1e-4]])
    bound = theory.excess_risk_bound(expit(true), expit(log_odds))
    assert theory.excess_risk_bound_logits(true, log_odds) == pytest.approx(bound, rel=1e-6)


@given(marks.filter(np.any), marks, marks)
def test_ceilings_hold_for_every_predictor_within_the_shortlist(gold, shortlist, wish):
    ceilings = theory.shortlist_ceilings(gold, shortlist)
    found = decision_metrics(gold, wish & shortlist)
    assert found["micro_recall"] <= ceilings.micro_recall + 1e-12
    assert found["micro_f1"] <= ceilings.micro_f1 + 1e-12
    assert found["macro_f1_present"] <= ceilings.macro_f1 + 1e-12
    retriever, scorer = theory.hamming_decomposition(gold, wish & shortlist, shortlist)
    assert retriever == pytest.approx(ceilings.hamming)
    assert retriever + scorer == pytest.approx(found["hamming_loss"])


@given(marks.filter(np.any), marks)
def test_ceilings_are_reached_by_the_gold_labels_of_the_shortlist(gold, shortlist):
    ceilings = theory.shortlist_ceilings(gold, shortlist)
    found = decision_metrics(gold, gold & shortlist)
    assert found["micro_recall"] == pytest.approx(ceilings.micro_recall)
    assert found["micro_f1"] == pytest.approx(ceilings.micro_f1)
    assert found["macro_f1_present"] == pytest.approx(ceilings.macro_f1)
    assert theory.hamming_decomposition(gold, gold & shortlist, shortlist)[1] == 0


def test_the_ceilings_of_the_paper():
    for k in ("16", "32", "64", "100"):
        recall = paper.printed("shortlist_recall", k, "eurlex", "recall") / 100
        ceiling = paper.target(f"shortlist_recall/{k}/eurlex/micro_f1_ceiling").value
        assert round(100 * theory.f1_ceiling(recall), 1) == ceiling


def test_misuse_of_shortlists_is_an_error():
    gold, none = np.ones((2, 2), dtype=bool), np.zeros((2, 2), dtype=bool)
    with pytest.raises(SetScoreError, match="outside the shortlist"):
        theory.hamming_decomposition(gold, gold, none)
    with pytest.raises(
        SetScoreError, match=r"^gold labels have the shape \(1, 2\), the shortlist \(2, 1\); they must agr"
    ):
        theory.shortlist_ceilings(np.ones((1, 2), dtype=bool), np.ones((2, 1), dtype=bool))


def test_asking_everything_keeps_everything():
    gold = np.array([[True, False], [False, False]])
    found = theory.shortlist_ceilings(gold, np.ones_like(gold))
    assert (found.retention, found.document_recall, found.chance, found.micro_f1, found.dropped) == (1, 1, 1, 1, 0)
    assert np.isnan(found.label_retention[1])
    assert found.worst_labels(("a", "b")) == []


def test_without_gold_labels_nothing_is_lost():
    none = np.zeros((2, 3), dtype=bool)
    found = theory.shortlist_ceilings(none, none)
    assert (found.retention, found.document_recall, found.micro_f1, found.macro_f1) == (1, 1, 1, 1)
    assert (found.asked, found.dropped, found.hamming) == (0, 6, 0)


def test_pooled_is_not_the_mean_over_documents():
    gold = np.array([[True, True, True, True], [True, False, False, False]])
    kept = np.array([[True, False, False, False], [True, False, False, False]])
    found = theory.shortlist_ceilings(gold, kept)
    assert (found.retention, found.document_recall) == (2 / 5, (1 / 4 + 1) / 2)
    assert found.worst_labels("abcd", 2) == [("b", 0.0), ("c", 0.0)]
    assert found.sentence() == (
        "1.0 labels a document were asked; the shortlist keeps 40.0% of the gold labels (chance 25.0%), so micro-F1 is"
        " at most 57.1 and macro-F1 25.0. 6 pairs were not asked and count as negative."
    )


def test_the_papers_counter_example():
    start = np.array([False, True])
    assert theory.pseudo_likelihood(theory.counter_example, start) == pytest.approx(-1.1)
    moved = theory.local_update(theory.counter_example, start, 0)
    assert moved.tolist() == [True, True]
    assert theory.pseudo_likelihood(theory.counter_example, moved) == pytest.approx(-10.1)
    assert theory.full_gain_update(theory.counter_example, start, 0) is start


@given(tables, starts, st.lists(orders, min_size=1, max_size=3))
def test_full_gain_never_falls_and_ends_at_a_coordinatewise_optimum(table, start, some_orders):
    local, state = theory.table_local(table), start
    values = [theory.pseudo_likelihood(local, state)]
    for order in some_orders:
        for label in order:
            state = theory.full_gain_update(local, state, label)
            values.append(theory.pseudo_likelihood(local, state))
    assert values == sorted(values)
    for _ in range(2**3 + 1):  # every sweep that changes something raises the value, and there are 8 assignments
        before, state = state, theory.sweep(theory.full_gain_update, local, state)
    assert state is before
    assert theory.is_coordinatewise_optimum(local, state)


def test_full_gain_ends_at_an_optimum_on_every_small_instance():
    """Exhaustive: two labels, every local log-odds in {-2, 0, 2} with its ties, every start, both orders."""
    for entries in itertools.product((-2.0, 0.0, 2.0), repeat=4):
        table = np.array([[entries[0], entries[2]], [entries[0], entries[3]], [entries[1], entries[2]], entries[1::2]])
        local = theory.table_local(table)
        for start, order in itertools.product(itertools.product((False, True), repeat=2), ((0, 1), (1, 0))):
            state = np.array(start)
            for _ in range(5):
                after = theory.sweep(theory.full_gain_update, local, state, order)
                assert theory.pseudo_likelihood(local, after) >= theory.pseudo_likelihood(local, state)
                before, state = state, after
            assert state is before
            assert theory.is_coordinatewise_optimum(local, state)


@given(hnp.arrays(np.float64, 3, elements=st.integers(-500, 500).map(lambda value: value / 100)), starts)
def test_without_interaction_both_updates_are_one(log_odds, start):
    local = theory.table_local(np.tile(log_odds, (8, 1)))
    one, other = (theory.sweep(update, local, start) for update in (theory.local_update, theory.full_gain_update))
    assert (one == other).all()
