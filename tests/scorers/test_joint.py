"""Co-occurrence: exact marginals on trees, exact optima of the integer programme, each against enumeration."""

import itertools
import json

import numpy as np
import pytest
from fakes import EmittingBackbone, PlantedBackbone
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from setscore.errors import BackboneError
from setscore.prompts import Template
from setscore.records import LabelSet
from setscore.scorers import PerLabelScorer, Reading, make
from setscore.scorers.cooccurrence import Cooccurrence
from setscore.scorers.programme import ProgrammeScorer, Rules, solve
from setscore.scorers.propagation import PropagationScorer, tree_edges, tree_marginals
from setscore.scorers.subset import SubsetScorer, parse

LABELS = LabelSet.of(["oil", "energy", "sports"])
TEXTS = ["Crude prices fell again.", "The match ended two to one."]
EVERY = np.array(list(itertools.product((0, 1), repeat=4)))
golds = hnp.arrays(np.bool_, (12, 4))
values = hnp.arrays(np.float64, 4, elements=st.floats(-5, 5))


@given(golds)
def test_joint_probabilities_are_probabilities_that_agree(gold):
    joint = Cooccurrence.of(gold).joint()
    assert (joint > 0).all()
    assert joint.sum(axis=(2, 3)) == pytest.approx(np.ones((4, 4)))
    off = ~np.eye(4, dtype=bool)
    swapped = joint.transpose(1, 0, 3, 2)
    assert joint[off] == pytest.approx(swapped[off])


@settings(deadline=None)
@given(golds, hnp.arrays(np.float64, (2, 4), elements=st.floats(-5, 5)), st.floats(0, 2))
def test_messages_give_the_exact_marginals_of_the_tree(gold, log_odds, strength):
    scorer, seen = PropagationScorer(strength=strength), Cooccurrence.of(gold)
    found = scorer.combine(log_odds, range(4), seen)
    joint = seen.joint()
    single = np.stack([joint.sum(axis=3)[i, i] for i in range(4)])
    ratio = strength * np.log(joint / (single[:, None, :, None] * single[None, :, None, :]))
    edges = tree_edges(joint, single)
    assert len(edges) <= 3
    weights = EVERY @ log_odds.T + sum(ratio[i, j, EVERY[:, i], EVERY[:, j]] for i, j in edges)[:, None] * np.ones(2)
    for i in range(4):
        yes, no = (np.logaddexp.reduce(weights[EVERY[:, i] == b], axis=0) for b in (1, 0))
        assert found[:, i] == pytest.approx(yes - no, abs=1e-6)


def test_the_edges_bend_marginals_both_ways():
    ratio = np.zeros((2, 2, 2, 2))
    ratio[0, 1] = ratio[1, 0] = [[1, -1], [-1, 1]]
    found = tree_marginals(np.array([[3.0, 0.0], [-3.0, 0.0]]), [(0, 1)], ratio)
    assert found[0, 1] > 0.5
    assert found[1, 1] < -0.5


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda p: p[0] != p[1]), max_size=3)
weights = st.lists(st.tuples(st.integers(0, 1), st.integers(2, 3), st.floats(-3, 3)), max_size=2)


@settings(deadline=None)
@given(values, pairs, pairs, weights)
def test_the_programme_finds_the_best_set_that_keeps_the_rules(log_odds, implied, excluded, pairs):
    rules = Rules(tuple(implied), tuple(excluded), tuple(pairs))
    allowed = [y for y in EVERY if all(y[i] <= y[j] for i, j in implied) and all(y[i] + y[j] <= 1 for i, j in excluded)]

    def value(y):
        return float(y @ log_odds + sum(w * y[i] * y[j] for i, j, w in pairs))

    found = solve(log_odds, rules).astype(int)
    assert any((found == y).all() for y in allowed)
    assert value(found) == pytest.approx(max(map(value, allowed)), abs=1e-4)


def test_rules_come_from_the_slice():
    gold = np.array([[1, 1, 0]] * 6 + [[0, 1, 0]] * 6 + [[0, 0, 1]] * 12, dtype=bool)
    rules = ProgrammeScorer(support=2.0).rules(Cooccurrence.of(gold), (0, 1, 2))
    assert rules.implied == ((0, 1),)  # oil never without energy
    assert rules.excluded == ((0, 2), (1, 2))
    assert ProgrammeScorer(constraints="none").rules(Cooccurrence.of(gold), (0, 1, 2)) == Rules((), (), ())


@pytest.mark.parametrize("name", ["bp", "milp", "milp?strength=1&support=2"])
def test_before_learning_the_seed_comes_out_and_after_it_decisions_stay_consistent(name):
    scorer, backbone = make(name, Template.of("express"), Reading()), PlantedBackbone()
    plain = PerLabelScorer(Template.of("express")).score(backbone, TEXTS, LABELS)
    assert (scorer.score(backbone, TEXTS, LABELS).log_odds == plain.log_odds).all()
    gold = np.array([[1, 1, 0]] * 8 + [[0, 0, 1]] * 8, dtype=bool)
    learned = scorer.learn(np.zeros(3), gold)
    assert learned.restore(json.loads(json.dumps(learned.learned))) == learned
    asked = np.array([[True, True, True], [True, False, True]])
    found = learned.score(backbone, TEXTS, LABELS, candidates=asked)
    assert (np.isfinite(found.log_odds) == asked).all()
    assert found.forwards == 5


def test_a_list_is_parsed_and_its_failures_are_counted():
    named, failures = parse("Oil, oil, oil,,, an oil,\n sports .", LABELS.names)
    assert named.tolist() == [True, False, True]
    assert failures == {"repeated": 2, "fragments": 1, "nothing": 0}
    assert parse(",,,", LABELS.names)[1] == {"repeated": 0, "fragments": 0, "nothing": 1}


def test_subset_emission_costs_a_forward_and_reports_its_failures():
    scores = SubsetScorer().score(EmittingBackbone(emitted="energy, energy, gas"), TEXTS, LABELS)
    assert (scores.log_odds > 0).tolist() == [[False, True, False]] * 2
    assert scores.forwards == 2 * SubsetScorer().cost(3, shared=False) == 2
    assert {name: array.tolist() for name, array in scores.details.items()} == {
        "repeated": [1, 1],
        "fragments": [1, 1],
        "nothing": [0, 0],
    }


def test_a_backbone_that_cannot_emit_says_so():
    with pytest.raises(BackboneError, match=r"fake reads only the two answers, .* or another scorer"):
        SubsetScorer().score(PlantedBackbone(), TEXTS, LABELS)
