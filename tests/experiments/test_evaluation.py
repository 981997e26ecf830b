import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import setscore.calibration as calibrations
from setscore.errors import SetScoreError
from setscore.experiments import Scored, cross_validated, evaluate, over_seeds, score_dataset
from setscore.experiments.evaluation import draw_trials, oracles
from setscore.experiments.scored import SameSliceWarning, flattery, unfitted
from setscore.metrics import decision_metrics

KINDS = tuple(calibrations.CALIBRATIONS)


def made_up(documents=400, labels=5, seed=3, ties=False):
    """Scores that know something: gold documents have higher log-odds, and every label its own bias."""
    rng = np.random.default_rng(seed)
    gold = rng.random((documents, labels)) < np.linspace(0.05, 0.4, labels)
    log_odds = rng.normal(2.0 * gold + np.linspace(-2, 1, labels), 1.0)
    if ties:
        log_odds = np.round(log_odds)
    names = tuple(f"label {i}" for i in range(labels))
    ids = tuple(f"document {i}" for i in range(documents))
    return Scored("made up", "pool", names, ids, log_odds, gold, np.zeros(documents, dtype=bool))


@pytest.fixture(scope="module")
def trial():
    return draw_trials(made_up(), [13])[0]


@pytest.fixture(scope="module")
def rows(trial):
    return evaluate(trial.validation, trial.test, KINDS)


def test_a_row_is_what_the_calibration_decides(trial, rows):
    for kind, row in zip(KINDS, rows, strict=False):
        fitted = calibrations.make(kind).fit(trial.validation.log_odds, trial.validation.gold)
        expected = decision_metrics(trial.test.gold, fitted.predict(trial.test.log_odds))
        assert (row.name, row.kind, row.choice) == (kind, "model", fitted.choice_)
        assert {key: row.metrics[key] for key in expected} == expected
        for metric, interval in row.intervals.items():
            assert interval.low <= interval.high
            assert interval.value == pytest.approx(row.metrics[metric], abs=1e-12)
        assert {"micro_f1", "macro_f1", "sample_f1", "exact_match", "ece"} <= set(row.intervals)
        np.testing.assert_array_equal(row.decisions, fitted.predict(trial.test.log_odds))
        assert [label["label"] for label in row.labels] == list(trial.test.labels)
        assert {"ece", "ece_raw", "lrap"} <= row.metrics.keys()


def test_oracles_are_named_and_the_best_in_what_they_tune(rows):
    honest = [row for row in rows if row.kind == "model"]
    oracle = {row.name: row for row in rows if row.kind == "oracle"}
    assert list(oracle) == ["oracle global", "oracle per label, micro", "oracle per label, macro"]
    assert all("tuned on the test documents" in row.choice for row in oracle.values())
    best_micro = oracle["oracle per label, micro"].metrics["micro_f1"]
    best_macro = oracle["oracle per label, macro"].metrics["macro_f1"]
    assert best_micro >= max(row.metrics["micro_f1"] for row in rows)
    assert best_macro >= max(row.metrics["macro_f1"] for row in rows)
    temperature = next(row for row in honest if row.name == "temperature")  # one threshold, honestly
    assert oracle["oracle global"].metrics["micro_f1"] >= temperature.metrics["micro_f1"]


@pytest.mark.parametrize("ties", [False, True])
def test_oracles_agree_with_trying_everything(ties):
    small = made_up(documents=9, labels=3, ties=ties)
    cuts = [np.append(np.unique(column), np.inf) for column in small.log_odds.T]
    tried = [decision_metrics(small.gold, small.log_odds >= np.array(cut)) for cut in itertools.product(*cuts)]
    common = [decision_metrics(small.gold, small.log_odds >= cut) for cut in np.unique(small.log_odds)]
    found = {row.name: row.metrics for row in oracles(small)}
    assert found["oracle per label, micro"]["micro_f1"] == pytest.approx(max(m["micro_f1"] for m in tried))
    assert found["oracle per label, macro"]["macro_f1"] == pytest.approx(max(m["macro_f1"] for m in tried))
    assert found["oracle global"]["micro_f1"] == pytest.approx(max(m["micro_f1"] for m in common))


def test_oracles_without_gold_labels_predict_nothing():
    base = made_up(documents=6)
    nothing = Scored("n", "", base.labels, base.ids, base.log_odds, np.zeros_like(base.gold), base.truncated)
    found = {row.name: row.metrics["cardinality_predicted"] for row in oracles(nothing)}
    assert found["oracle per label, micro"] == found["oracle per label, macro"] == 0


def test_labels_that_were_not_asked_are_never_predicted():
    base = made_up(documents=60)
    hidden = base.log_odds.copy()
    hidden[:, 1] = -np.inf
    some = Scored("n", "", base.labels, base.ids, hidden, base.gold, base.truncated)
    for row in evaluate(some.take(np.arange(30)), some.take(np.arange(30, 60)), ["temperature", "platt"]):
        assert 0 <= row.metrics["micro_f1"] <= 1


def test_measuring_on_the_fitted_documents_warns(trial):
    with pytest.warns(SameSliceWarning, match="platt is measured on the 200 documents it was fitted on; that flatters"):
        evaluate(trial.validation, trial.validation, ["platt"])
    backwards = trial.validation.take(np.arange(len(trial.validation))[::-1])
    with pytest.warns(SameSliceWarning, match="bias is measured on the 200 documents it was fitted on"):
        evaluate(trial.validation, backwards, ["bias"])


def test_documents_among_those_fitted_on_are_counted(trial):
    calibration = calibrations.make("platt").fit(trial.validation.log_odds, trial.validation.gold)
    assert flattery(calibration, trial.test) == ""
    some = trial.validation.take(np.arange(30))
    assert flattery(calibration, some).startswith("30 of the 30 documents that platt is measured on have scores and")


def test_options_are_part_of_the_name(trial):
    rows = evaluate(trial.validation, trial.test, ["platt", "platt?most=1", calibrations.PlattCalibration(least=1)])
    assert [row.name for row in rows[:3]] == ["platt", "platt?most=1", "platt?least=1"]
    sizes = [row.decisions.sum(axis=1) for row in rows[:3]]
    assert sizes[1].max() == 1
    assert sizes[2].min() == 1
    assert sizes[0].min() == 0
    assert sizes[0].max() > 1


def test_abstention_is_measured(trial):
    plain, careful = evaluate(trial.validation, trial.test, ["platt", "platt?margin=0.2"])[:2]
    calibration = calibrations.make("platt?margin=0.2").fit(trial.validation.log_odds, trial.validation.gold)
    undecided = calibration.undecided(trial.test.log_odds)
    assert careful.metrics["undecided"] == undecided.mean() > 0
    assert careful.metrics["undecided_documents"] == undecided.any(axis=1).mean()
    wrong = careful.decisions != trial.test.gold
    assert careful.metrics["hamming_loss_decided"] == wrong[~undecided].mean() < wrong.mean()
    assert careful.metrics["micro_f1"] == plain.metrics["micro_f1"] < careful.metrics["micro_f1_decided"]
    assert "undecided" not in plain.metrics


def test_nothing_fitted_decides_at_a_probability_of_one_half(trial):
    row = unfitted(trial.test)
    np.testing.assert_array_equal(row.decisions, trial.test.log_odds >= 0)
    assert (row.name, row.choice) == ("threshold 0.5", "nothing fitted: temperature 1, competition 0")
    assert row.metrics["ece"] == row.metrics["ece_raw"]


def test_nothing_fitted_takes_the_numbers_of_the_backbone(trial):
    test = replace(trial.test, config={"temperature": 0.5, "competition": 0.35})
    expected = calibrations.UnfittedCalibration(temperature=0.5, competition=0.35).for_labels(len(test.labels))
    np.testing.assert_array_equal(unfitted(test).decisions, expected.predict(test.log_odds))
    assert (unfitted(test).decisions != unfitted(trial.test).decisions).any()


def test_seeds_draw_what_the_dataset_draws(dataset, classifier):
    pool = score_dataset(dataset, classifier)
    for trial in draw_trials(pool, [13, 17], size=20):
        validation, rest = dataset.draw(20, trial.seed)
        assert (trial.validation.ids, trial.test.ids) == (validation.ids, rest.ids)
        assert (trial.validation.notes, trial.test.notes) == (validation.notes, rest.notes)
        np.testing.assert_array_equal(trial.validation.gold, validation.gold)
        np.testing.assert_array_equal(trial.test.log_odds, pool.log_odds[[pool.ids.index(i) for i in rest.ids]])


def test_the_model_is_asked_once_for_all_seeds(dataset, backbone, classifier):
    over_seeds(score_dataset(dataset, classifier), [13, 17, 23], ["temperature"])
    assert backbone.queries == 60 * 3


def test_mean_and_deviation_over_seeds():
    pool = made_up(documents=500)
    summaries = over_seeds(pool, [13, 17, 23], ["temperature"])
    values = []
    for trial in draw_trials(pool, [13, 17, 23]):
        assert (len(trial.validation), len(trial.test)) == (200, 300)
        values.append(evaluate(trial.validation, trial.test, ["temperature"])[0].metrics["micro_f1"])
    assert summaries[0].name == "temperature"
    assert summaries[0].mean["micro_f1"] == pytest.approx(np.mean(values))
    assert summaries[0].sd["micro_f1"] == pytest.approx(np.std(values, ddof=1))
    assert list(summaries[0].rows) == [13, 17, 23]
    assert [summary.kind for summary in summaries] == ["model", "oracle", "oracle", "oracle"]


def test_one_seed_has_no_deviation():
    assert math.isnan(over_seeds(made_up(), [13], ["temperature"])[0].sd["micro_f1"])


def test_a_small_pool_is_halved():
    trial = draw_trials(made_up(documents=31), [13])[0]
    assert (len(trial.validation), len(trial.test)) == (15, 16)
    assert trial.validation.notes == ("15 of 31 documents, drawn with seed 13.",)
    with pytest.raises(SetScoreError, match="made up has 1 document; at least 2 are needed"):
        draw_trials(made_up(documents=31).take(np.arange(1)), [13])


def test_other_labels_are_an_error(trial):
    other = made_up(labels=4)
    with pytest.raises(SetScoreError, match="the validation documents have other labels than the test documents"):
        evaluate(other, trial.test)


def test_cross_validation_is_the_one_that_auto_uses(trial):
    fitted = calibrations.make("auto").fit(trial.validation.log_odds, trial.validation.gold)
    for name, score in fitted.scores_.items():
        row = cross_validated(trial.validation, name)
        assert row.metrics["micro_f1"] == pytest.approx(score)
        assert (row.name, row.choice) == (name, "cross-validated over 5 folds")
