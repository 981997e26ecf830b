"""A blend is weighed in experiments as `fit` weighs it, and the model's own scores stay what they are."""

from dataclasses import replace

import numpy as np
import pytest

from setscore import SetScoreClassifier
from setscore.experiments import report
from setscore.experiments.blending import before_fit, score_blend, weigh
from setscore.experiments.evaluation import trials
from setscore.experiments.saved import one_saved
from setscore.store import open_store

NAME, SEEDS = "own-cosine", (13, 17)


def encode(texts):
    """In the place of the sentence encoder."""
    return np.array([[1.0, len(text)] for text in texts])


def test_a_report_decides_as_a_fitted_classifier(ready, scored, backbone, tmp_path):
    made = report.report(ready, scored, SEEDS, ("platt",), blend=NAME, store=open_store(tmp_path))
    pool = ready.parts["pool"]
    for trial in made.trials:
        rows = [pool.ids.index(one) for one in trial.validation.ids]
        known = pool.take(rows)
        fitted = SetScoreClassifier(pool.labels, backbone=backbone, blend=NAME, calibration="platt", head="none")
        fitted.fit(known.texts, known.gold)
        new = pool.take([pool.ids.index(one) for one in trial.test.ids])
        np.testing.assert_allclose(trial.test.log_odds, fitted.decision_function(new.texts), atol=1e-6)
        decisions = made.summaries[0].rows[trial.seed].decisions
        np.testing.assert_array_equal(decisions, fitted.predict(new.texts).astype(bool))
    assert made.config["blend"] == NAME
    assert any(remark.startswith("blend: seed 13 ") for remark in made.remarks)
    assert one_saved(tmp_path / ready.saved_as / NAME).parts()["pool"].ids == pool.ids


def test_what_the_blend_would_give_stands_beside_the_embedded_model(ready):
    """The same row as with the blend, and the model's own rows and trials are what they were."""
    embedded = SetScoreClassifier(backbone="setscore-mini")
    scored = report.score_parts(ready, embedded)
    made = report.report(ready, scored, SEEDS, ("auto", "platt"), yardsticks=True, encode=encode)
    (row,) = [summary for summary in made.summaries if summary.name == f"auto + {NAME}"]
    assert row.kind == "yardstick"
    alone = report.report(ready, scored, SEEDS, ("auto", "platt"))
    blended = report.report(ready, scored, SEEDS, ("auto",), blend=NAME)
    for seed in SEEDS:
        np.testing.assert_array_equal(row.rows[seed].decisions, blended.summaries[0].rows[seed].decisions)
        assert f"seed {seed} {row.rows[seed].choice.partition('; ')[0]}" in " ".join(blended.remarks)
    for one, other in zip(made.trials, alone.trials, strict=True):
        np.testing.assert_array_equal(one.test.log_odds, other.test.log_odds)
    assert made.summaries[:3] == alone.summaries[:3]


@pytest.mark.parametrize(("kinds", "blend"), [(("platt",), None), (("auto",), NAME)])
def test_no_row_of_a_blend_without_auto_or_beside_itself(ready, kinds, blend):
    scored = report.score_parts(ready, SetScoreClassifier())
    made = report.report(ready, scored, SEEDS, kinds, yardsticks=True, blend=blend, encode=encode)
    assert not any("+" in summary.name for summary in made.summaries)


def test_a_label_that_was_not_asked_stays_so(ready, scored):
    asked = scored["pool"].log_odds.copy()
    asked[:, 0] = -np.inf
    model, cosine = replace(scored["pool"], log_odds=asked), score_blend(ready.parts, NAME)["pool"]
    for mixed in (weigh(model, cosine, NAME)[0], before_fit(model, cosine, NAME)):
        np.testing.assert_array_equal(np.isneginf(mixed.log_odds), np.isneginf(asked))


def test_before_fit_the_cosine_counts_as_in_a_classifier(ready, scored, backbone):
    made = report.report(ready, scored, SEEDS, ("platt",), blend=NAME)
    plain = report.report(ready, scored, SEEDS, ("platt",))
    test = trials(scored, SEEDS)[0].test
    new = ready.parts["pool"].take([ready.parts["pool"].ids.index(one) for one in test.ids])
    unfitted = SetScoreClassifier(new.labels, backbone=backbone, blend=NAME)
    (row,) = [s.rows[SEEDS[0]] for s in made.summaries if s.name == "threshold 0.5"]
    np.testing.assert_array_equal(row.decisions, unfitted.predict(new.texts).astype(bool))
    assert row.metrics != next(s.rows[SEEDS[0]] for s in plain.summaries if s.name == "threshold 0.5").metrics


def test_weights_and_scores_of_a_slice(ready, scored):
    cosine = score_blend(ready.parts, NAME)["pool"]
    mixed, chosen = weigh(scored["pool"], cosine, NAME)
    assert sum(chosen.weights) == 1
    members = {"model": scored["pool"].log_odds, NAME: cosine.log_odds}
    np.testing.assert_array_equal(mixed.log_odds, chosen.mix(members))


def test_cosines_of_other_weights_are_not_read_back(ready, tmp_path, monkeypatch):
    """Retrained weights keep their name: what was saved before them is scored again."""
    told, store = [], open_store(tmp_path)
    options = {"store": store, "saved_as": "e", "progress": lambda *args: told.append(args)}
    first = score_blend(ready.parts, NAME, **options)["pool"]
    again = score_blend(ready.parts, NAME, **options)["pool"]
    np.testing.assert_array_equal(again.log_odds, first.log_odds)
    assert told == [("blend='own-cosine': embedding", 0, len(first))]
    monkeypatch.setattr("setscore.experiments.yardsticks.weights_of", lambda _: "others")
    score_blend(ready.parts, NAME, **options)
    assert len(told) == 2
