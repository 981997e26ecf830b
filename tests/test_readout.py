"""What labelled documents teach on top of the scores: nothing without evidence, more with more of it."""

import numpy as np
import pytest
from scipy.special import expit

from setscore import SetScoreClassifier, readout
from setscore.calibration import UnfittedCalibration
from setscore.errors import SetScoreError
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
    learned = readout.fit(*made(200))
    found, unseen = learned.readout, learned.unseen
    scores, vectors, _, gold = made(400, seed=1)
    assert loss(found.log_odds(scores, vectors), gold) < loss(scores, gold) - 0.05
    assert unseen.shape == (200, M)
    seen = loss(found.log_odds(*made(200)[:2]), made(200)[3])
    assert seen < loss(unseen, made(200)[3])  # out of fold a fit looks as good as it is, not better
    assert found.shares.sum() == pytest.approx(1)
    assert found.shares[2] > 0.9  # nearly all to those with weights of their own


def test_without_evidence_it_is_the_models_own_answer():
    scores, vectors, labels, _ = made(60)
    gold = np.random.default_rng(3).random(scores.shape) < expit(scores)  # the scores are right, nothing else matters
    found = readout.fit(scores, vectors, labels, gold).readout
    assert found.shares[:2].sum() > 0.5  # most to the simple ones
    assert np.abs(found.log_odds(scores, vectors) - scores).mean() < 0.6
    np.testing.assert_allclose(nothing(labels, OWN).log_odds(scores, vectors), scores)


def nothing(labels, shared):
    m = np.zeros
    return Readout(labels, m(D), m(M), 0.0, shared, m((D, M)), m((M, M)), m(M), np.array([1.0, 0, 0]))


@pytest.mark.parametrize("numbers", [(1.0, 0.0, 1.0), (1.0, 0.5, 0.0), (0.7, 0.35, 1.0), (1.0, 1.0, 0.3)])
def test_it_starts_from_the_zero_shot_answer(numbers):
    scores, vectors, labels, _ = made(60)
    scores[3, 1], scores[4] = -np.inf, -np.inf  # not asked
    start = nothing(labels, readout.zero_shot(*numbers)).log_odds(scores, vectors)
    named = dict(zip(("temperature", "competition", "handicap"), numbers, strict=True))
    ready = UnfittedCalibration(**named).for_labels(M)
    np.testing.assert_allclose(expit(start), ready.transform(scores), atol=1e-12)


def test_where_labels_compete_a_handful_of_documents_keeps_to_that():
    """Gold follows the zero-shot answer with competition; from bare log-odds on it takes more documents to see it."""
    losses = []
    for seed in range(10):
        scores, vectors, labels, _ = made(300, seed=seed)
        start = readout.zero_shot(1.0, 1.0, 1.0)
        truth = nothing(labels, start)
        right = truth.log_odds(scores, vectors)
        gold = np.random.default_rng(seed).random(scores.shape) < expit(right)
        few = [array[:4] for array in (scores, vectors)], gold[:4]
        found = [readout.fit(*few[0], labels, few[1], *given).readout for given in [(start,), ()]]
        losses.append([loss(one.log_odds(scores[4:], vectors[4:]), gold[4:]) for one in found if one is not None])
    with_start, without = np.mean([pair for pair in losses if len(pair) == 2], axis=0)
    assert with_start < without


@pytest.mark.parametrize("n", [2, 5, 20])
def test_few_documents_do_no_harm(n):
    """Against scores that are right as they are, on new documents, where label texts mislead: the mean of 30 draws."""
    gains = []
    test = made(300, seed=99)
    for seed in range(30):
        found = readout.fit(*made(n, seed=seed)).readout
        if found is not None:
            gains.append(loss(test[0], test[3]) - loss(found.log_odds(*test[:2]), test[3]))
    assert np.mean(gains) > -0.03


@pytest.mark.parametrize(("n", "asked"), [(1, True), (30, False)], ids=["one document", "nothing asked"])
def test_too_little_to_learn_from_teaches_nothing(n, asked):
    scores, vectors, labels, gold = made(n)
    scores = scores if asked else np.full(scores.shape, -np.inf)
    learned = readout.fit(scores, vectors, labels, gold)
    assert learned.readout is None
    np.testing.assert_array_equal(learned.unseen, scores)
    assert learned.doubt == 0.0


def test_documents_to_which_nothing_applies_teach_that_labels_are_rare():
    scores, vectors, labels, gold = made(20)
    learned = readout.fit(scores, vectors, labels, np.zeros_like(gold))
    assert expit(learned.readout.log_odds(scores, vectors)).mean() < expit(scores).mean() / 3


@pytest.mark.parametrize("shift", [-3.0, 0.0])
def test_it_knows_where_the_zero_shot_answer_is_in_doubt(shift):
    """Scores that are all too high by so much: what they call even odds is as much less."""
    scores, vectors, labels, _ = made(400, noise=2.0)
    gold = np.random.default_rng(3).random(scores.shape) < expit(scores + shift)
    assert readout.fit(scores, vectors, labels, gold).doubt == pytest.approx(shift, abs=0.6)


def test_a_temperature_moves_no_doubt():
    """It says how sure the zero-shot answer is, not where it is in doubt."""
    scores, vectors, labels, gold = made(200)
    found = [readout.fit(scores, vectors, labels, gold, OWN / temperature).doubt for temperature in (1.0, 1.25)]
    assert found[0] == pytest.approx(found[1], abs=0.1)


@pytest.mark.parametrize("fill", [True, False])
def test_labels_that_are_always_or_never_gold_are_no_trouble(fill):
    scores, vectors, labels, gold = made(80)
    gold[:, 2] = fill
    learned = readout.fit(scores, vectors, labels, gold)
    found, unseen = learned.readout, learned.unseen
    assert np.isfinite(unseen).all()
    assert (np.sign(found.log_odds(scores, vectors)[:, 2]) == (1 if fill else -1)).mean() > 0.8


def test_what_was_not_asked_stays_so_and_counts_for_nothing():
    scores, vectors, labels, gold = made(150)
    hidden = np.random.default_rng(5).random(scores.shape) < 0.3
    partly = np.where(hidden, -np.inf, scores)
    learned = readout.fit(partly, vectors, labels, gold)
    found, unseen = learned.readout, learned.unseen
    np.testing.assert_array_equal(np.isneginf(unseen), hidden)
    np.testing.assert_array_equal(np.isneginf(found.log_odds(partly, vectors)), hidden)
    other = gold ^ hidden  # gold labels of what was not asked do not matter
    again = readout.fit(partly, vectors, labels, other).readout
    np.testing.assert_allclose(again.weights, found.weights)


def test_neither_the_order_of_labels_nor_more_documents_than_dimensions_matter():
    scores, vectors, labels, gold = made(120)
    order = np.random.default_rng(1).permutation(M)
    found = readout.fit(scores, vectors, labels, gold).readout
    other = readout.fit(scores[:, order], vectors, labels[order], gold[:, order]).readout
    np.testing.assert_allclose(
        other.log_odds(scores[:, order], vectors), found.log_odds(scores, vectors)[:, order], atol=0.05
    )
    small = readout.fit(scores[:10], vectors[:10], labels, gold[:10]).readout  # fewer documents than dimensions
    assert small.weights.shape == (D, M)


def test_known_labels_keep_what_they_learned_and_new_ones_start_without():
    scores, vectors, labels, gold = made(150)
    found = readout.fit(scores, vectors, labels, gold).readout
    same = found.relabelled(np.arange(M), labels)
    np.testing.assert_allclose(same.log_odds(scores, vectors), found.log_odds(scores, vectors))
    more = found.relabelled(np.array([3, -1, 0]), labels[[3, 1, 0]])
    np.testing.assert_array_equal(more.weights[:, [0, 2]], found.weights[:, [3, 0]])
    assert more.biases[1] == 0
    assert not more.weights[:, 1].any()
    assert not more.mutual[1].any()
    # Others weigh the labels that are left as before, however many inputs there are now.
    mutual = np.sqrt(3 / M) * found.mutual[np.ix_([3, 0], [3, 0])]
    np.testing.assert_allclose(more.mutual[np.ix_([0, 2], [0, 2])], mutual)


def test_a_read_out_of_other_labels_is_refused():
    found = readout.fit(*made(100)).readout
    plain, arrays = found.plain()
    with pytest.raises(SetScoreError, match="the read-out is damaged: its arrays do not fit 4 labels"):
        Readout.restore(plain, arrays, 4)
    with pytest.raises(SetScoreError, match="the read-out is damaged: it lacks weights"):
        Readout.restore(plain, {name: values for name, values in arrays.items() if name != "weights"}, M)
    with pytest.raises(SetScoreError, match="the read-out is damaged: it holds numbers that are not finite"):
        Readout.restore(plain, arrays | {"biases": np.full(M, np.nan)}, M)


def test_an_unknown_head_is_named():
    with pytest.raises(SetScoreError, match=r"unknown head 'aut'. Did you mean 'auto'\? Known: auto, none"):
        SetScoreClassifier(["a"], head="aut").fit(["b", "c"], [["a"], []])


def test_a_cosine_that_misleads_is_left_out_and_one_that_helps_is_not():
    """Label texts point the wrong way in `made`; with texts that point right, the shared numbers take the cosine up."""
    scores, vectors, wrong, gold = made(60, seed=4)
    right = wrong[::-1].copy()
    misled = readout.fit(scores, vectors, wrong, gold).readout
    helped = readout.fit(scores, vectors, right, gold).readout
    assert abs(misled.shared[3]) < 0.2 * abs(helped.shared[3])
    test = made(400, seed=9)
    assert loss(helped.log_odds(*test[:2]), test[3]) < loss(misled.log_odds(*test[:2]), test[3])
