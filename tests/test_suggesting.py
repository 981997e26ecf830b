"""Which documents to label next: doubtful, unlike each other, and with labels that were seen too seldom."""

import numpy as np
import pytest

from setscore import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.fitting import Known
from setscore.predictions import Predictions
from setscore.records import Scores
from setscore.suggesting import suggest

NAMES = ("oil", "music")


def candidates(probabilities, vectors=None, errors=()):
    p = np.array(probabilities, dtype=float)
    away = np.eye(len(p)) if vectors is None else np.array(vectors, dtype=float)
    scores = Scores(p, np.ones(p.shape, dtype=bool), np.zeros(len(p), dtype=bool), 0, vectors=away)
    return Predictions(
        label_names=NAMES,
        ids=tuple(f"document {row}" for row in range(len(p))),
        probabilities=p,
        decisions=p >= 0.5,
        scores=scores,
        wanted=None,
        undecided=None,
        errors=dict.fromkeys(errors, "is empty"),
        regime="zero-shot",
        competition=0.0,
    )


def chosen(found, n=1, known=None):
    return suggest(found, n, known, None if known is None else known.gold.astype(float))


def test_the_doubtful_one_comes_first():
    first, *_ = chosen(candidates([[0.01, 0.02], [0.5, 0.1], [0.99, 0.01]]), 3)
    assert (first.index, first.id) == (1, "document 1")
    assert first.gain == pytest.approx(0.6)
    assert first.labels == ("oil", "music")
    assert first.reasons[0] == "in doubt: oil 50%, music 10%"


def test_a_copy_is_not_asked_twice_and_what_is_labelled_is_known():
    found = candidates([[0.5, 0.5], [0.5, 0.5], [0.3, 0.3]], [[1, 0], [1, 0], [0, 1]])
    assert [one.index for one in chosen(found, 3)] == [0, 2]
    known = Known({"model": np.zeros((1, 2))}, np.array([[True, False]]), np.array([[1.0, 0.0]]))
    assert [one.index for one in chosen(found, 3, known)] == [2]


def test_labels_with_few_examples_come_first():
    found = candidates([[0.3, 0.02], [0.02, 0.3]])
    gold = np.array([[True, False]] * 9)
    known = Known({"model": np.zeros((9, 2))}, gold, np.zeros((9, 0)))
    (first,) = chosen(found, 1, known)
    assert first.index == 1
    assert first.reasons[1] == "may hold labels with few examples: music (0 examples)"


def test_what_cannot_be_read_is_not_suggested():
    assert [one.index for one in chosen(candidates([[0.5, 0.5], [0.5, 0.5]], errors=[0]), 2)] == [1]
    found = SetScoreClassifier(["oil", "music"]).suggest(["", "Crude prices fell.", None], 3)
    assert [one.index for one in found] == [1]


def test_none_of_none_and_less_than_one():
    assert chosen(candidates(np.zeros((0, 2)), np.zeros((0, 3))), 5) == []
    with pytest.raises(SetScoreError, match="at least one document is to be suggested, got n=0"):
        chosen(candidates([[0.5, 0.5]]), 0)


def test_a_third_of_ten_and_more_are_drawn_at_random_and_say_so():
    doubtful = np.full((30, 2), 0.02)
    doubtful[:8] = 0.5
    found = candidates(doubtful)
    drawn = [[place for place, one in enumerate(chosen(found, n)) if "at random" in one.reasons[0]] for n in (9, 12)]
    assert drawn == [[], [2, 5, 8, 11]]
    twelve = chosen(found, 12)
    assert len({one.index for one in twelve}) == 12
    assert twelve == chosen(found, 12)  # the draw is seeded
    assert twelve[0].index < 8  # the first is one of those in doubt


def test_neither_copies_nor_what_cannot_be_read_are_drawn():
    vectors = np.repeat(np.eye(6), 3, axis=0)  # six texts, each three times
    found = candidates(np.full((18, 2), 0.3), vectors, errors=[0, 1, 2])
    taken = [one.index for one in chosen(found, 12)]
    assert len(taken) == 5
    assert len({row // 3 for row in taken}) == 5
    assert min(taken) > 2


def test_the_suggested_ones_stand_for_all_of_them():
    """Their mean lies nearer to that of all documents than that of most random choices as large."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(60, 8)) + 3 * np.eye(8)[random.integers(3, size=60)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    p = np.clip(0.5 + 0.3 * vectors[:, :2], 0.01, 0.99)
    taken = [one.index for one in chosen(candidates(p, vectors), 9)]

    def off(rows):
        return np.linalg.norm(vectors[rows].mean(axis=0) - vectors.mean(axis=0))

    drawn = [off(random.choice(60, 9, replace=False)) for _ in range(200)]
    assert off(taken) < np.quantile(drawn, 0.25)


def test_the_order_of_the_documents_changes_nothing_below_ten():
    random = np.random.default_rng(1)
    vectors = random.normal(size=(20, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    p, order = random.random((20, 2)), random.permutation(20)
    there = [one.index for one in chosen(candidates(p, vectors), 8)]
    assert [int(order[one.index]) for one in chosen(candidates(p[order], vectors[order]), 8)] == there
