"""Scorers beside each other: the same documents and calibration, costs as stated, learning on validation only."""

import numpy as np
import pytest
from fakes import PlantedBackbone

import setscore.calibration as calibrations
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.errors import SetScoreError
from setscore.experiments import prepare_file
from setscore.experiments.comparison import compare_scorers, score_timed
from setscore.experiments.evaluation import trials
from setscore.metrics import decision_metrics
from setscore.records import LabelSet
from setscore.store import MemoryStore

NAMES = ["oil", "sports", "weather"]


def dataset(n=24):
    backbone = PlantedBackbone()
    texts = tuple(f"document number {number}" for number in range(n))
    gold = np.array([[backbone.affinity(text, name) > 0.5 for name in NAMES] for text in texts])
    return Dataset("made-up", "all", texts, tuple(map(str, range(n))), LabelSet.of(NAMES), gold)


def compared(names, backbone=None, kind="temperature", seeds=(13, 17), **options):
    classifier = SetScoreClassifier(backbone=backbone or PlantedBackbone(attention="exact"), **options)
    return {one.name: one for one in compare_scorers(prepare_file(dataset()), names, classifier, seeds, kind)}


def test_every_scorer_in_one_table():
    found = compared(["per_label", "unary", "permutation", "jsr", "jsr?sweeps=0", "gibbs", "bp", "milp"])
    forwards = {name: one.forwards for name, one in found.items()}
    assert forwards["per_label"] == 3
    assert forwards["unary"] == 1
    assert forwards["permutation"] == 4
    assert 3 < forwards["jsr"] <= 3 + 6 + 8  # what was asked before is known
    assert 3 < forwards["gibbs"] <= 3 + 12
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


@pytest.mark.parametrize("kind", ["auto", "levelled", "temperature"])
def test_a_seeded_scorer_starts_from_its_seeds_calibrated_decisions(kind):
    """Also where the calibration looks at the whole document: a programme without rules decides like the seed."""
    backbone = PlantedBackbone(attention="exact")
    (programme,) = compared(["milp?constraints=none"], backbone, kind).values()
    pool = score_timed(SetScoreClassifier(backbone=backbone), dataset()).scored
    alone = calibrations.make(kind).label_by_label()
    expected = [
        decision_metrics(
            one.test.gold, alone.fit(one.validation.log_odds, one.validation.gold).predict(one.test.log_odds)
        )
        for one in trials({"pool": pool}, (13, 17))
    ]
    assert programme.uncalibrated.mean["micro_f1"] == pytest.approx(np.mean([one["micro_f1"] for one in expected]))
    assert programme.uncalibrated.mean["micro_f1"] > 0.5


def test_seeds_share_what_was_asked_and_count_it_each():
    shared, alone = PlantedBackbone(attention="exact"), PlantedBackbone(attention="exact")
    (both,) = compared(["jsr"], shared).values()
    one, other = (compared(["jsr"], alone, seeds=(seed,))["jsr"] for seed in (13, 17))
    assert both.forwards == pytest.approx((one.forwards + other.forwards) / 2)
    assert both.metrics.mean["micro_f1"] == pytest.approx(np.mean([x.metrics.mean["micro_f1"] for x in (one, other)]))
    assert shared.queries < alone.queries - 2 * 24 * 3  # not only the seed's own scores


def test_a_learner_is_fitted_as_the_classifier_fits_it():
    """The numbers are those of `fit` on a seed's validation documents and of `predict` on its test documents."""
    (found,) = compared(["jsr"], seeds=(13,)).values()
    validation, test = dataset().draw(12, 13)
    model = SetScoreClassifier(NAMES, scorer="jsr", calibration="temperature", backbone=PlantedBackbone(), head="none")
    model.fit(validation.texts, validation.gold)
    expected = decision_metrics(test.gold, model.predict(test.texts).astype(bool))
    assert found.metrics.mean == expected


def test_a_store_keeps_what_was_asked_and_no_speed_is_told(tmp_path):
    backbone = PlantedBackbone(attention="exact")
    first = compared(["per_label", "jsr"], backbone, store=tmp_path)
    asked = backbone.queries
    again = compared(["per_label", "jsr"], backbone, store=tmp_path)
    assert backbone.queries == asked + 3 * 3  # three warm-ups of one document, which no store sees
    for name, one in first.items():
        assert (one.speed, one.metrics) == (None, again[name].metrics)
    assert compared(["per_label"], store=MemoryStore())["per_label"].speed is None


def test_progress_has_one_shape():
    told = []
    classifier = SetScoreClassifier(backbone=PlantedBackbone(attention="exact"))
    compare_scorers(
        prepare_file(dataset()), ["per_label", "unary"], classifier, [13], progress=lambda *x: told.append(x)
    )
    assert told == [(f"scoring with {name}", done, 24) for name in ("per_label", "unary") for done in (0, 24)]


def test_a_seed_that_is_seeded_itself_is_refused():
    with pytest.raises(SetScoreError, match="too deep"):
        compared(["jsr?seed=gibbs"])
