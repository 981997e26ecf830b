"""Mixtures of posteriors: what the grid holds, and that nothing is lost against a member alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore.ensemble import simplex
from setscore.experiments.posteriors import choose, thresholded
from setscore.experiments.reproduction import registry
from setscore.metrics import Counts


def drawn(seed, members=3, documents=40, labels=4):
    rng = np.random.default_rng(seed)
    gold = rng.random((documents, labels)) < 0.3
    noise = [rng.random(gold.shape) for _ in range(members)]
    return {f"m{k}": 0.4 * gold + 0.6 * noise[k] for k in range(members)}, gold


def micro(gold, decisions):
    return float(Counts.of(gold, decisions).micro().f1())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 200), st.integers(1, 3))
def test_a_choice_is_never_below_a_member_alone(seed, members):
    posteriors, gold = drawn(seed, members)
    chosen = choose(posteriors, gold)
    assert chosen.tried == len(simplex(members, 4))
    for place in range(members):
        alone = thresholded(posteriors, gold, [float(k == place) for k in range(members)])
        assert chosen.reached >= alone.reached
    assert micro(gold, chosen.decide(posteriors)) == pytest.approx(chosen.reached)


def test_it_mixes_probabilities_and_not_log_odds():
    posteriors = {"a": np.array([[0.9, 0.1]]), "b": np.array([[0.5, 0.5]])}
    chosen = thresholded(posteriors, np.array([[True, False]]), [0.5, 0.5])
    np.testing.assert_allclose(chosen.mix(posteriors), [[0.7, 0.3]])
    assert chosen.threshold == 0.7  # the highest of those that are as good
    assert chosen.sentence() == "0.5 a + 0.5 b at 0.7"


def test_of_equals_the_fewest_members():
    same = np.array([[0.9, 0.1], [0.2, 0.8]])
    chosen = choose({"a": same, "b": same.copy()}, same > 0.5)
    assert sorted(chosen.weights) == [0.0, 1.0]


def test_fifteen_points_hold_both_printed_blends():
    assert len(simplex(3, 4)) == 15
    for blend in registry.blends().values():
        if blend.weights:
            assert blend.weights in simplex(len(blend.members), blend.steps)
