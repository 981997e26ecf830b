"""Which documents to label next: those that stand for all, none twice, some at random."""

import numpy as np
import pytest

from setscore import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.fitting import Known
from setscore.predictions import Predictions
from setscore.records import Scores
from setscore.suggesting import Seen, choose, suggest

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


@pytest.mark.parametrize("by", ["vectors", "probabilities"])
def test_labelled_documents_count_as_taken(by):
    """Fourteen of one kind, six of another; four of the first are labelled, so the second comes next."""
    kind = np.arange(20) >= 14
    vectors = np.random.default_rng(0).normal(size=(20, 6)) + (
        9 * np.eye(6)[kind.astype(int)] if by == "vectors" else 0
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    p = np.full((20, 1), 0.5) if by == "vectors" else np.where(kind, 0.98, 0.02)[:, None]
    (first,) = choose(Seen(p[4:], vectors[4:]), Seen(p[:4], vectors[:4]), np.array([2]), 1)
    assert kind[4:][first.row]


def test_a_second_round_draws_others():
    vectors = np.eye(40)
    first = {one.index for one in chosen(candidates(np.full((40, 2), 0.3), vectors), 12) if "random" in one.reasons[0]}
    known = Known({"model": np.zeros((1, 2))}, np.array([[True, False]]), np.full((1, 40), 40**-0.5))
    again = chosen(candidates(np.full((40, 2), 0.3), vectors), 12, known)
    assert first != {one.index for one in again if "random" in one.reasons[0]}


def test_a_label_that_known_documents_were_never_asked_about_says_nothing_of_them():
    """They count as any document does for that label, not as those that surely lack it."""
    random = np.random.default_rng(3)
    vectors = random.normal(size=(24, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    p, gold, asked = random.random((12, 2)), np.array([[True, False]] * 12), np.zeros((12, 2))
    told = np.column_stack([random.random(12), np.zeros(12)])
    never = np.column_stack([np.zeros(12), np.full(12, -np.inf)])
    found = [
        [one.index for one in suggest(candidates(p, vectors[:12]), 5, Known({"model": odds}, gold, vectors[12:]), told)]
        for odds in (never, asked)
    ]
    filled = np.column_stack([told[:, 0], np.full(12, p[:, 1].mean())])
    wanted = choose(Seen(p, vectors[:12]), Seen(filled, vectors[12:]), np.array([12, 0]), 5)
    assert found[0] == [one.row for one in wanted]
    assert found[0] != found[1]


def test_without_a_document_to_read_there_is_nothing_to_suggest():
    classifier = SetScoreClassifier(["oil", "music"])
    assert classifier.suggest([], 3) == classifier.suggest(["", None], 3) == []


def test_probabilities_of_known_documents_are_those_of_today(tmp_path):
    texts = [
        "Crude prices fell.",
        "The band played jazz.",
        "Oil and opera.",
        "Rain is expected.",
        "A tanker leaked oil.",
    ]
    classifier = SetScoreClassifier(["oil", "music"]).fit(texts, [["oil"], ["music"], ["oil", "music"], [], ["oil"]])
    expected = classifier.predict_proba(texts)
    np.testing.assert_allclose(classifier.fitted_.known_probabilities(), expected, atol=1e-9)
    classifier.save(tmp_path / "saved.json")
    loaded = SetScoreClassifier.load(tmp_path / "saved.json")
    np.testing.assert_allclose(loaded.fitted_.known_probabilities(), expected, atol=1e-6)
    assert classifier.classify(["", " "]).errors.keys() == {0, 1}
