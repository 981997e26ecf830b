"""The correction that needs no gold labels."""

import json

import numpy as np
import pytest

from setscore import SetScoreClassifier
from setscore.calibration import BiasCalibration, restore
from setscore.errors import LabelError


def shifted(seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(80, 4)) + np.array([3.0, 0.0, -1.0, -2.0])


def test_every_label_starts_at_the_same_place():
    log_odds = shifted()
    model = BiasCalibration().fit(log_odds)
    p = model.transform(log_odds)
    means = np.log(p / (1 - p)).mean(axis=0)
    assert np.allclose(means, log_odds.mean())


def test_gold_labels_are_not_looked_at():
    log_odds = shifted()
    with_gold = BiasCalibration().fit(log_odds, log_odds > 1)
    np.testing.assert_array_equal(with_gold.bias_, BiasCalibration().fit(log_odds).bias_)


def test_the_order_of_documents_stays_within_a_label():
    log_odds = shifted()
    p = BiasCalibration().fit(log_odds).transform(log_odds)
    assert (np.argsort(p, axis=0) == np.argsort(log_odds, axis=0)).all()


def test_no_share_changes_nothing_and_labels_not_asked_do_not_count():
    log_odds = shifted()
    np.testing.assert_allclose(
        BiasCalibration(share=0.0).fit(log_odds).transform(log_odds), 1 / (1 + np.exp(-log_odds))
    )
    hidden = log_odds.copy()
    hidden[:40, 0] = -np.inf
    model = BiasCalibration().fit(hidden)
    assert model.bias_[0] > 2
    assert (model.transform(hidden)[:40, 0] == 0).all()


def test_state_survives_json():
    model = BiasCalibration(share=0.5, least=1).fit(shifted())
    again = restore(json.loads(json.dumps(model.state())), 4)
    np.testing.assert_array_equal(again.predict(shifted(1)), model.predict(shifted(1)))


def test_the_classifier_fits_without_gold_only_with_this_calibration():
    documents = ["The price of crude oil fell.", "The match ended in a draw.", "N/A"]
    model = SetScoreClassifier(["oil", "sports"], calibration="bias").fit(documents)
    assert "no gold labels used" in model.calibration_.choice_
    assert model.predict_labels(documents[:1]) == [{"oil"}]
    with pytest.raises(ValueError, match="requires y to be passed"):
        SetScoreClassifier(["oil", "sports"]).fit(documents)
    with pytest.raises(LabelError, match="no labels and no gold labels"):
        SetScoreClassifier().fit(documents)
