"""What labelled documents teach on top of the scores: nothing without evidence, more with more of it."""

import json

import numpy as np
import pytest
from scipy.special import expit

from setscore import SetScoreClassifier, readout
from setscore.errors import DataFileError, SetScoreError
from setscore.readout import OWN, Readout

D, M = 16, 5


def made(n, seed=0, noise=1.0):
    """Documents whose gold labels follow a direction of their embedding; the scores know a fifth of it."""
    random = np.random.default_rng(seed)
    directions = np.random.default_rng(7).normal(size=(M, D))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    vectors = random.normal(size=(n, D))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    truth = 12 * vectors @ directions.T - 2
    gold = random.random((n, M)) < expit(truth)
    scores = 0.2 * truth + noise * random.normal(size=(n, M))
    return scores, vectors, directions[::-1].copy(), gold  # the label texts point the wrong way


def loss(log_odds, gold):
    return np.logaddexp(0, np.where(gold, -log_odds, log_odds)).mean()


def test_it_learns_what_the_scores_do_not_know():
    found, unseen = readout.fit(*made(200))
    assert found is not None
    assert np.isfinite(found.strength)
    scores, vectors, _, gold = made(400, seed=1)
    assert loss(found.log_odds(scores, vectors), gold) < loss(scores, gold) - 0.05
    assert unseen.shape == (200, M)
    seen = loss(found.log_odds(*made(200)[:2]), made(200)[3])
    assert seen < loss(unseen, made(200)[3])  # out of fold a fit looks as good as it is, not better


def test_without_evidence_it_is_the_zero_shot_answer():
    random = np.random.default_rng(3)
    scores, vectors, labels, _ = made(60)
    gold = random.random(scores.shape) < expit(scores)  # the scores are right, and nothing else matters
    assert readout.fit(scores, vectors, labels, gold) == (None, pytest.approx(scores))
    nothing = Readout(labels, np.zeros(D), 0.0, OWN, np.zeros((D, M)), np.zeros(M), np.inf)
    np.testing.assert_allclose(nothing.log_odds(scores, vectors), scores)


@pytest.mark.parametrize(
    ("n", "positives"), [(1, 2), (2, 0), (30, 0)], ids=["one document", "no gold label", "many without any"]
)
def test_too_little_to_learn_from_teaches_nothing(n, positives):
    scores, vectors, labels, gold = made(n)
    gold[:] = False
    gold[0, :positives] = True
    found, unchanged = readout.fit(scores, vectors, labels, gold)
    assert found is None
    np.testing.assert_array_equal(unchanged, scores)


@pytest.mark.parametrize("fill", [True, False])
def test_labels_that_are_always_or_never_gold_are_no_trouble(fill):
    scores, vectors, labels, gold = made(80)
    gold[:, 2] = fill
    found, unseen = readout.fit(scores, vectors, labels, gold)
    assert np.isfinite(unseen).all()
    assert np.isfinite(found.log_odds(scores, vectors)).all()
    assert (np.sign(found.log_odds(scores, vectors)[:, 2]) == (1 if fill else -1)).mean() > 0.9


def test_what_was_not_asked_stays_so_and_counts_for_nothing():
    scores, vectors, labels, gold = made(150)
    hidden = np.random.default_rng(5).random(scores.shape) < 0.3
    partly = np.where(hidden, -np.inf, scores)
    found, unseen = readout.fit(partly, vectors, labels, gold)
    np.testing.assert_array_equal(np.isneginf(unseen), hidden)
    np.testing.assert_array_equal(np.isneginf(found.log_odds(partly, vectors)), hidden)
    other = gold ^ hidden  # gold labels of what was not asked do not matter
    again, _ = readout.fit(partly, vectors, labels, other)
    np.testing.assert_allclose(again.weights, found.weights)


def test_neither_the_order_of_labels_nor_more_documents_than_dimensions_matter():
    scores, vectors, labels, gold = made(120)
    order = np.random.default_rng(1).permutation(M)
    found, _ = readout.fit(scores, vectors, labels, gold)
    other, _ = readout.fit(scores[:, order], vectors, labels[order], gold[:, order])
    np.testing.assert_allclose(
        other.log_odds(scores[:, order], vectors), found.log_odds(scores, vectors)[:, order], atol=0.05
    )
    few = [part[:10] for part in (scores, vectors)]
    small, _ = readout.fit(*few, labels, gold[:10])  # fewer documents than dimensions
    assert small is None or small.weights.shape == (D, M)


TEXTS = [
    "The printer on floor two jams again.", "Please order toner for the copier.", "My badge does not open the gate.",
    "The gate alarm rang all night.", "Paper jam in the big printer.", "I lost my badge on the train.",
    "Toner is empty, the prints are grey.", "Visitors need a badge from Monday.", "The door reader is dead.",
    "Printing takes minutes for one page.", "Copier shows error 52.", "Side gate stays open at night.",
]  # fmt: skip
GOLD = [["print"], ["print"], ["access"], ["access"], ["print"], ["access"], ["print"], ["access"], ["access"],
        ["print"], ["print"], ["access"]]  # fmt: skip
LABELS = {"print": "printers and copiers", "access": "doors, gates and badges"}


@pytest.fixture(scope="module")
def learned():
    return SetScoreClassifier(LABELS, head="auto").fit(TEXTS * 3, GOLD * 3)


def test_the_classifier_learns_on_top_of_its_scores(learned):
    assert learned.regime == learned.classify(TEXTS)[0].regime == "learned"
    assert learned.predict_labels(TEXTS) == [set(names) for names in GOLD]
    plain = SetScoreClassifier(LABELS).fit(TEXTS * 3, GOLD * 3)
    assert plain.regime == "calibrated"
    np.testing.assert_array_equal(learned.decision_function(TEXTS), plain.decision_function(TEXTS))  # the model's own


def test_a_learned_classifier_is_saved_whole(learned, tmp_path):
    path = tmp_path / "model.json"
    learned.save(path)
    loaded = SetScoreClassifier.load(path)
    assert loaded.regime == "learned"
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), learned.predict_proba(TEXTS), atol=1e-5)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["readout"]["weights"]["shape"] = [1, 2]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataFileError, match="is damaged: ValueError: cannot reshape"):
        SetScoreClassifier.load(path)
    content["readout"]["weights"] = 3
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataFileError, match=r"the field readout\.weights must be an object with shape and base64"):
        SetScoreClassifier.load(path)


def test_a_read_out_of_other_labels_is_refused():
    found, _ = readout.fit(*made(100))
    with pytest.raises(SetScoreError, match="the read-out is damaged: its arrays do not fit 4 labels"):
        Readout.restore(found.plain(), 4)
    again = Readout.restore(json.loads(json.dumps(found.plain())), M)
    scores, vectors, _, _ = made(20)
    np.testing.assert_allclose(again.log_odds(scores, vectors), found.log_odds(scores, vectors), atol=1e-4)


def test_an_unknown_head_is_named():
    with pytest.raises(SetScoreError, match=r"unknown head 'aut'. Did you mean 'auto'\? Known: auto, none"):
        SetScoreClassifier(LABELS, head="aut").fit(TEXTS, GOLD)
