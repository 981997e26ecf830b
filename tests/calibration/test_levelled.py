"""Platt scaling with the level of the document: what it recovers, and what must not influence it."""

import numpy as np
import pytest
from scipy.special import expit
from slices import NOT_ASKED, biased, f1

from setscore.calibration import AutoCalibration, LevelledCalibration, PlattCalibration
from setscore.calibration.auto import LabelByLabel


def shifted(seed, documents=300, labels=8):
    """Every document adds a number of its own to all of its log-odds, which says nothing about its labels."""
    random = np.random.default_rng(seed)
    truth = random.normal(-1.5, 2, size=(documents, labels))
    return truth + 3 * random.normal(size=(documents, 1)), random.random(truth.shape) < expit(2 * truth)


def test_a_shift_of_whole_documents_is_taken_off():
    (log_odds, gold), (fresh, answers) = shifted(0), shifted(1, documents=2000)
    levelled, platt = (kind().fit(log_odds, gold) for kind in (LevelledCalibration, PlattCalibration))
    assert f1(answers, levelled.predict(fresh)) > f1(answers, platt.predict(fresh)) + 0.05
    own, mean, maximum = levelled.levels_
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
def test_slices_that_teach_nothing(gold):
    fitted = LevelledCalibration().fit([[1.0, NOT_ASKED], [2.0, NOT_ASKED]], np.full((2, 2), gold))
    assert fitted.levels_.tolist() == [1, 0, 0]
    assert np.isfinite(fitted.transform([[0.5, 0.5]])).all()


def test_scorers_that_start_from_decisions_get_one_that_looks_at_a_label_alone():
    assert isinstance(LevelledCalibration(most=2).label_by_label(), PlattCalibration)
    assert LevelledCalibration(most=2).label_by_label().most == 2
    log_odds, gold = shifted(0)
    assert AutoCalibration().fit(log_odds, gold).chosen_.name == "levelled"
    alone = AutoCalibration().label_by_label()
    assert isinstance(alone, LabelByLabel)
    assert alone.fit(log_odds, gold).chosen_.name != "levelled"


def test_log_odds_that_hardly_differ_teach_no_level():
    log_odds = np.array([[0.0, 0.0], [1e-251, -np.inf]])
    fitted = LevelledCalibration().fit(log_odds, [[0, 0], [1, 0]])
    assert fitted.levels_.tolist() == [1.0, 0.0, 0.0]
    assert np.isfinite(fitted.transform(log_odds)).all()
