"""What a seeded scorer learns: the very decisions of its seed's calibration, from validation documents alone."""

import numpy as np
import pytest
from fakes import PlantedBackbone

import setscore.calibration as calibrations
from setscore import fitting
from setscore.classifier import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.fitting import FAR, log_odds_cuts
from setscore.prompts import Template
from setscore.scorers import Reading, make

NAMES = ["oil", "sports", "weather"]
TEXTS = [f"document number {number}" for number in range(40)]


def slice_of(seed, n=80, m=3):
    random = np.random.default_rng(seed)
    log_odds = random.normal(size=(n, m)) * 3
    gold = random.random((n, m)) < 1 / (1 + np.exp(-log_odds + 1))
    gold[0] = True  # every label is gold once
    return log_odds, gold


@pytest.mark.parametrize("kind", ["temperature", "paper", "shrunk", "platt", "isotonic", "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_cuts_decide_as_the_calibration_does(kind, seed):
    log_odds, gold = slice_of(seed)
    calibration = calibrations.make(kind).label_by_label().fit(log_odds, gold)
    cuts = log_odds_cuts(calibration, 3)
    other = slice_of(seed + 100)[0]
    for values in (log_odds, other):
        assert ((values >= cuts) == calibration.predict(values)).all()


def test_a_label_that_is_never_predicted_has_its_cut_out_of_reach():
    log_odds, gold = slice_of(1)
    never = calibrations.make("temperature").fit(log_odds, gold).with_threshold(1.0)
    assert (log_odds_cuts(never, 3) > 30).all()
    always = never.with_threshold(0.0)
    assert log_odds_cuts(always, 3) == pytest.approx(np.full(3, -FAR))


def test_a_scorer_without_a_seed_learns_nothing_and_one_with_a_seed_needs_gold():
    plain, seeded = (make(name, Template.of("express"), Reading()) for name in ("unary", "jsr"))
    assert fitting.learn(plain, np.zeros((2, 3)), None, "temperature") == {}
    with pytest.raises(SetScoreError, match="learns from gold labels; pass y to fit"):
        fitting.learn(seeded, np.zeros((2, 3)), None, "temperature")


@pytest.mark.parametrize("scorer", ["jsr", "jsr?rule=full&seed=unary", "gibbs", "bp", "milp"])
def test_fit_learns_and_a_new_fit_starts_anew(scorer):
    backbone = PlantedBackbone(pull=0.2)
    gold = np.array([[backbone.affinity(text, name) > 1 for name in NAMES] for text in TEXTS])
    model = SetScoreClassifier(NAMES, backbone=backbone, scorer=scorer, calibration="temperature")
    before = model.predict(TEXTS[:5])  # training-free: works before fit
    assert before.shape == (5, 3)
    first = model.fit(TEXTS[:20], gold[:20]).fitted_.learned
    assert len(first["cuts"]) == 3
    second = model.fit(TEXTS[20:], gold[20:]).fitted_.learned
    fresh = SetScoreClassifier(NAMES, backbone=backbone, scorer=scorer, calibration="temperature")
    assert fresh.fit(TEXTS[20:], gold[20:]).fitted_.learned == second
    assert (fresh.predict(TEXTS) == model.predict(TEXTS)).all()


@pytest.mark.parametrize("kind", ["temperature", "platt"])
def test_the_seed_of_jsr_is_the_calibrated_decision_of_per_label(kind):
    """The note on the paper: no sweeps are the per-label row, from the same scores."""
    backbone = PlantedBackbone()
    gold = np.array([[backbone.affinity(text, name) > 1 for name in NAMES] for text in TEXTS])
    per_label, none = (
        SetScoreClassifier(NAMES, backbone=backbone, scorer=name, calibration=kind, head="none").fit(TEXTS, gold)
        for name in ("per_label", "jsr?sweeps=0")
    )
    assert (per_label.predict(TEXTS) == none.predict(TEXTS)).all()
    cuts = np.array(none.fitted_.learned["cuts"])
    assert ((none.decision_function(TEXTS) >= cuts) == per_label.predict(TEXTS)).all()


def test_with_a_calibration_that_knows_the_level_the_seed_is_that_of_labels_alone():
    """`auto` may decide by the whole document, which no cut can do: the seed is the best that looks at one label."""
    backbone = PlantedBackbone()
    gold = np.array([[backbone.affinity(text, name) > 1 for name in NAMES] for text in TEXTS])
    per_label, none = (
        SetScoreClassifier(NAMES, backbone=backbone, scorer=name, calibration="auto", head="none").fit(TEXTS, gold)
        for name in ("per_label", "jsr?sweeps=0")
    )
    assert (per_label.predict(TEXTS) == none.predict(TEXTS)).all()
    log_odds = none.decision_function(TEXTS)
    alone = calibrations.make("auto").label_by_label().fit(log_odds, gold)
    assert ((log_odds >= np.array(none.fitted_.learned["cuts"])) == alone.predict(log_odds)).all()
