"""The guarantees hold on fresh documents, say what they do not speak of, and refuse what they cannot promise."""

import json

import numpy as np
import pytest

from setscore.calibration import ConformalCalibration, restore
from setscore.errors import SetScoreError

pytest.importorskip("mapie")


def draw(seed, documents, labels=6, rate=0.35):
    """Log-odds that are informative but shifted differently for each label; some documents have no gold label."""
    random = np.random.default_rng(seed)
    gold = random.random((documents, labels)) < rate
    return 2.5 * gold + random.normal(size=gold.shape) * 1.5 - np.linspace(0, 3, labels), gold


def recall(gold, predicted):
    with_label = gold.any(axis=1)
    return ((gold & predicted).sum(1)[with_label] / gold.sum(1)[with_label]).mean()


def precision(gold, predicted):
    hits, size = (gold & predicted).sum(1), predicted.sum(1)
    return np.where(size > 0, hits / np.maximum(size, 1), 0.0)[gold.any(axis=1)].mean()


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_recall_holds_on_fresh_documents(level):
    """The guarantee is on the mean over slices. 30 slices with a spread below 0.05 give a standard error below 0.01,
    so falling 0.03 short would happen less than once in a thousand runs if the guarantee is true."""
    found = []
    for seed in range(30):
        model = ConformalCalibration(level=level).fit(*draw(seed, 200))
        fresh, gold = draw(10_000 + seed, 1000)
        found.append(recall(gold, model.predict(fresh)))
    assert np.std(found) < 0.05
    assert np.mean(found) > level - 0.03
    assert np.mean(found) < level + 0.05  # and does not give everything away


def test_precision_holds_in_all_but_a_few_slices():
    """At confidence 0.9 a slice may fail one time in ten; the test allows twice that of 20."""
    failures = 0
    for seed in range(20):
        model = ConformalCalibration(target="precision", level=0.5, confidence=0.9).fit(*draw(seed, 400))
        fresh, gold = draw(20_000 + seed, 1000)
        failures += precision(gold, model.predict(fresh)) < 0.5
    assert failures <= 4


def test_documents_without_a_gold_label_are_left_out_and_counted():
    log_odds, gold = draw(3, 300, rate=0.1)
    model = ConformalCalibration().fit(log_odds, gold)
    assert model.left_out_ > 0
    assert f"{model.left_out_} without a true label were left out" in model.choice_


def test_a_level_out_of_reach_is_an_error():
    random = np.random.default_rng(0)
    gold = random.random((100, 5)) < 0.2
    with pytest.raises(SetScoreError, match=r"no threshold keeps precision at 0.95 here; lower the level"):
        ConformalCalibration(target="precision", level=0.95).fit(random.normal(size=gold.shape), gold)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "recal"}, "Did you mean 'recall'"),
        ({"level": 1.2}, "between 0 and 1, got 1.2 and 0.9"),
        ({"confidence": 0}, "between 0 and 1, got 0.9 and 0"),
    ],
)
def test_unknown_options(options, message):
    with pytest.raises(SetScoreError, match=message):
        ConformalCalibration(**options).fit(*draw(0, 50))


def test_too_few_documents_are_named():
    with pytest.raises(SetScoreError, match="3 documents are too few to split in two"):
        ConformalCalibration().fit(np.zeros((3, 2)), np.zeros((3, 2), dtype=bool))


def test_state_survives_json():
    log_odds, gold = draw(1, 200)
    model = ConformalCalibration(level=0.85, most=3).fit(log_odds, gold)
    again = restore(json.loads(json.dumps(model.state())), gold.shape[1])
    np.testing.assert_array_equal(again.predict(log_odds), model.predict(log_odds))
    np.testing.assert_array_equal(again.transform(log_odds), model.transform(log_odds))
    assert again.fitted_on(log_odds, gold)
