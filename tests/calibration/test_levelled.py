"""Platt scaling with the level of the document: what it recovers, and what must not influence it."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import expit
from slices import NOT_ASKED, biased, f1, slices

from setscore.calibration import AutoCalibration, LabelByLabel, LevelledCalibration, PlattCalibration, restore
from setscore.calibration.platt import OWN, common_strengths


def shifted(seed, documents=300, labels=8):
    """Every document adds a number of its own to all of its log-odds, which says nothing about its labels."""
    random = np.random.default_rng(seed)
    truth = random.normal(-1.5, 2, size=(documents, labels))
    return truth + 3 * random.normal(size=(documents, 1)), random.random(truth.shape) < expit(2 * truth)


def test_a_shift_of_whole_documents_is_taken_off():
    (log_odds, gold), (fresh, answers) = shifted(0), shifted(1, documents=2000)
    levelled, platt = (kind().fit(log_odds, gold) for kind in (LevelledCalibration, PlattCalibration))
    assert f1(answers, levelled.predict(fresh)) > f1(answers, platt.predict(fresh)) + 0.05
    own, mean, maximum, _ = levelled.levels_
    assert own > 0 > mean + maximum


def test_where_documents_have_no_level_it_is_platt_scaling():
    (log_odds, gold), (fresh, answers) = biased(0), biased(1, documents=2000)
    levelled, platt = (kind().fit(log_odds, gold).predict(fresh) for kind in (LevelledCalibration, PlattCalibration))
    assert abs(f1(answers, levelled) - f1(answers, platt)) < 0.02


def test_the_order_of_labels_and_the_other_documents_do_not_matter():
    log_odds, gold = shifted(2)
    order = np.random.default_rng(3).permutation(log_odds.shape[1])
    fitted, permuted = (
        LevelledCalibration().fit(log_odds, gold),
        LevelledCalibration().fit(log_odds[:, order], gold[:, order]),
    )
    np.testing.assert_allclose(permuted.transform(log_odds[:, order]), fitted.transform(log_odds)[:, order], atol=1e-6)
    alone = np.concatenate([fitted.transform(row[None]) for row in log_odds[:20]])
    np.testing.assert_allclose(alone, fitted.transform(log_odds[:20]), atol=1e-12)


def test_a_label_that_was_not_asked_stands_in_with_its_mean():
    log_odds, gold = shifted(4)
    fitted = LevelledCalibration().fit(log_odds, gold)
    some, filled = log_odds[:5].copy(), log_odds[:5].copy()
    some[:, 3], filled[:, 3] = NOT_ASKED, fitted.means_[3]
    others = [0, 1, 2, 4, 5, 6, 7]
    np.testing.assert_allclose(fitted.transform(some)[:, others], fitted.transform(filled)[:, others])
    assert (fitted.transform(some)[:, 3] == 0).all()
    assert not fitted.predict(some)[:, 3].any()


@pytest.mark.parametrize("gold", [0, 1])
def test_gold_of_one_kind_moves_the_probabilities_its_way(gold):
    log_odds = np.array([[1.0, NOT_ASKED], [2.0, NOT_ASKED]])
    fitted = LevelledCalibration().fit(log_odds, np.full((2, 2), gold))
    moved = fitted.transform(log_odds)[:, 0] - expit(log_odds[:, 0])
    assert (moved > 0).all() if gold else (moved < 0).all()
    assert np.isfinite(fitted.transform([[0.5, 0.5]])).all()


@settings(deadline=None)
@given(slices(not_asked=False))
def test_without_data_the_probabilities_are_the_model_s_own(labelled):
    fresh, gold = labelled
    fitted = LevelledCalibration().fit(np.full(fresh.shape, NOT_ASKED), gold)
    assert fitted.levels_.tolist() == [1, 0, 0, 0]
    np.testing.assert_allclose(fitted.transform(fresh), expit(fresh), rtol=1e-9)


@settings(deadline=None)
@given(slices())
def test_the_levels_move_no_farther_than_the_pairs_can_pull(labelled):
    """At the optimum precision (levels - own) = sum (y - p) part, and no residual y - p is larger than 1."""
    log_odds, gold = labelled
    fitted = LevelledCalibration().fit(log_odds, gold)
    asked = np.isfinite(log_odds)
    pull = [np.abs(part[asked]).sum() for part in [*fitted._parts(log_odds), np.ones(log_odds.shape)]]
    slope, bias = common_strengths(log_odds[asked])
    moved = np.array([slope, slope, slope, bias]) * np.abs(fitted.levels_ - OWN)
    assert (moved <= np.array(pull) + 1e-3).all()


def test_the_fewer_documents_the_nearer_to_the_model_s_own_probabilities():
    """One label that applies far less often than the model believes; ten slices of every size."""
    fresh, _ = biased(1, biases=(-3.0,))
    gaps = [
        np.mean([gap(biased(seed, documents, biases=(-3.0,)), fresh) for seed in range(10)])
        for documents in (1, 2, 4, 16)
    ]
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[-1] / 2


def gap(labelled, fresh):
    """How far the fit moves the probabilities of fresh documents from the model's own, on average."""
    return np.abs(LevelledCalibration().fit(*labelled).transform(fresh) - expit(fresh)).mean()


@pytest.mark.parametrize(("documents", "least", "most"), [(5, 0.02, 1.0), (5000, 0.0, 0.002)])
def test_with_plenty_of_data_the_prior_does_not_matter(monkeypatch, documents, least, most):
    (log_odds, gold), (fresh, _) = shifted(2, documents), shifted(3)
    with_prior = LevelledCalibration().fit(log_odds, gold).transform(fresh)
    monkeypatch.setattr("setscore.calibration.platt.COMMON_STRENGTH", 1e-4)
    without = LevelledCalibration().fit(log_odds, gold).transform(fresh)
    assert least <= np.abs(with_prior - without).mean() <= most


def test_scorers_that_start_from_decisions_get_one_that_looks_at_a_label_alone():
    assert isinstance(LevelledCalibration(most=2).label_by_label(), PlattCalibration)
    assert LevelledCalibration(most=2).label_by_label().most == 2
    log_odds, gold = shifted(0)
    assert AutoCalibration().fit(log_odds, gold).chosen_.name == "levelled"
    alone = AutoCalibration().label_by_label()
    assert isinstance(alone, LabelByLabel)
    assert alone.fit(log_odds, gold).chosen_.name != "levelled"


def test_log_odds_that_hardly_differ_teach_only_how_often_labels_apply():
    log_odds = np.array([[0.0, 0.0], [1e-251, -np.inf]])
    fitted = LevelledCalibration().fit(log_odds, [[0, 0], [1, 0]])
    np.testing.assert_allclose(fitted.levels_[:3], [1.0, 0.0, 0.0], atol=1e-9)
    assert fitted.levels_[3] < 0  # one pair of three is gold
    assert np.isfinite(fitted.transform(log_odds)).all()


@pytest.mark.parametrize("scale", [1e-2, 0.1, 1e2, 1e4])
def test_log_odds_of_any_size_are_fitted(scale):
    log_odds, gold = shifted(5)
    fitted = LevelledCalibration().fit(scale * log_odds, gold)
    plain = LevelledCalibration().fit(log_odds, gold)
    assert f1(gold, fitted.predict(scale * log_odds)) > f1(gold, plain.predict(log_odds)) - 0.05


def test_levels_from_before_there_was_e_are_read_as_they_were_meant():
    log_odds, gold = shifted(6)
    fitted = LevelledCalibration().fit(log_odds, gold)
    fitted.levels_[3] = 0.0
    state = fitted.state()
    del state["fitted"]["levels_"][3]
    restored = restore(state, log_odds.shape[1])
    np.testing.assert_array_equal(restored.transform(log_odds), fitted.transform(log_odds))
    assert restored.state() == fitted.state()


def test_inside_of_auto_they_are_read_the_same_way():
    log_odds, gold = shifted(0)
    fitted = AutoCalibration().fit(log_odds, gold)
    fitted.chosen_.levels_[3] = 0.0
    state = fitted.state()
    del state["chosen"]["fitted"]["levels_"][3]
    np.testing.assert_array_equal(restore(state, log_odds.shape[1]).transform(log_odds), fitted.transform(log_odds))


@pytest.mark.parametrize("levels", [[], [1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
def test_any_other_number_of_levels_is_an_error(levels):
    log_odds, gold = shifted(6)
    state = LevelledCalibration().fit(log_odds, gold).state()
    state["fitted"]["levels_"] = levels
    with pytest.raises(ValueError, match=r"shape|values"):
        restore(state, log_odds.shape[1])
