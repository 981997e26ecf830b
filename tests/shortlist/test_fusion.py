"""Rankings and their fusion: no label is preferred for its place in the inventory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setscore.shortlist.fusion import best, fuse, ranked

SCORES = st.lists(st.one_of(st.integers(0, 4).map(float), st.just(-np.inf)), min_size=1, max_size=12).map(np.array)


@given(SCORES, st.integers(1, 12))
def test_ranks_follow_scores_and_equals_share_one(scores, depth):
    labels, ranks = ranked(scores, depth)
    known = np.isfinite(scores)
    assert len(labels) >= min(depth, known.sum())
    for label, rank in zip(labels, ranks, strict=True):
        assert rank == 1 + (scores[known] > scores[label]).sum()
    left_out = np.setdiff1d(np.flatnonzero(known), labels)
    assert all(scores[label] > scores[other] for label in labels for other in left_out)


@given(st.lists(st.tuples(*[st.integers(0, 3).map(float)] * 3), min_size=2, max_size=10), st.randoms())
def test_permuting_the_labels_permutes_the_fusion(columns, random):
    rankings = np.array(columns).T
    order = list(range(len(columns)))
    random.shuffle(order)
    together = fuse(list(rankings), [1.0, 2.0, 0.5], depth=4)
    np.testing.assert_array_equal(fuse(list(rankings[:, order]), [1.0, 2.0, 0.5], depth=4), together[order])


@given(SCORES)
def test_one_ranking_keeps_its_order(scores):
    fused = fuse([scores], [1.0], depth=len(scores))
    assert (np.isfinite(fused) == np.isfinite(scores)).all()
    for i in range(len(scores)):
        for j in range(len(scores)):
            assert (fused[i] > fused[j]) == (scores[i] > scores[j])


@given(SCORES, st.integers(1, 12))
def test_the_best_are_the_highest(scores, k):
    chosen = best(scores, k)
    assert len(chosen) == min(k, np.isfinite(scores).sum())
    rest = np.setdiff1d(np.arange(len(scores)), chosen)
    assert all(scores[i] >= scores[j] for i in chosen for j in rest)


def test_ties_go_to_the_tie_breaker():
    assert best(np.array([1.0, 1.0, 2.0, 1.0]), 2, np.array([0.0, 0.1, 0.0, 0.2])).tolist() == [2, 3]
