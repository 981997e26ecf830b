"""Scorers beside each other: the same documents and calibration, costs as stated, learning on validation only."""

import numpy as np
import pytest
from fakes import PlantedBackbone

from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.errors import SetScoreError
from setscore.experiments import prepare_own
from setscore.experiments.comparison import compare_scorers
from setscore.records import LabelSet

NAMES = ["oil", "sports", "weather"]


def dataset(n=24):
    backbone = PlantedBackbone()
    texts = tuple(f"document number {number}" for number in range(n))
    gold = np.array([[backbone.affinity(text, name) > 0.5 for name in NAMES] for text in texts])
    return Dataset("made-up", "all", texts, tuple(map(str, range(n))), LabelSet.of(NAMES), gold)


def compared(names, backbone=None, kind="temperature", seeds=(13, 17)):
    classifier = SetScoreClassifier(backbone=backbone or PlantedBackbone(attention="exact"))
    return {one.name: one for one in compare_scorers(prepare_own(dataset()), names, classifier, seeds, kind)}


def test_every_scorer_in_one_table():
    found = compared(["per_label", "unary", "permutation", "jsr", "jsr?sweeps=0", "gibbs", "bp", "milp"])
    forwards = {name: one.forwards for name, one in found.items()}
    assert forwards["per_label"] == 3
    assert forwards["unary"] == 1
    assert forwards["permutation"] == 4
    assert forwards["jsr"] == 3 + 6 + 12
    assert forwards["gibbs"] == 3 + 12
    assert forwards["milp"] == 3
    assert all(one.speed > 0 for one in found.values())
    # Without a slot bias and without interaction all read the same affinities.
    first = found["per_label"].metrics.mean
    for name in ("unary", "permutation", "jsr?sweeps=0", "gibbs"):
        assert found[name].metrics.mean["micro_f1"] == pytest.approx(first["micro_f1"]), name
    assert set(found["jsr"].details) == {"surrogate_0", "surrogate_1", "changes"}


def test_the_papers_negative_result_on_a_planted_collapse():
    names = ["per_label", "unary", "permutation?orders=6"]
    found = compared(names, PlantedBackbone([0.0, 30.0, -30.0], attention="exact"))
    f1 = {name: one.metrics.mean["micro_f1"] for name, one in found.items()}
    assert f1["unary"] < f1["per_label"]
    assert f1["permutation?orders=6"] == pytest.approx(f1["per_label"])  # all orders: the bias is the same everywhere


def test_a_seed_that_is_seeded_itself_is_refused():
    with pytest.raises(SetScoreError, match="too deep"):
        compared(["jsr?seed=gibbs"])
