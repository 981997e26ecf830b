"""Paired tests within a run and between two."""

import json
from dataclasses import replace

import numpy as np
import pytest

from setscore.errors import SetScoreError
from setscore.experiments import report
from setscore.metrics import compare

SEEDS = (13, 17)


def test_the_first_calibration_against_the_others(ready, scored):
    made = report.paired(report.report(ready, scored, SEEDS, ["platt", "paper"]), None, "platt")
    assert [(pair.first, pair.second) for pair in made.pairs] == [("platt", "paper"), ("platt", "threshold 0.5")]
    platt, paper = made.summaries[:2]
    for trial in made.trials:
        found = made.pairs[0].seeds[trial.seed]
        assert found == compare(trial.test.gold, paper.rows[trial.seed].decisions, platt.rows[trial.seed].decisions)
        difference = platt.rows[trial.seed].metrics["micro_f1"] - paper.rows[trial.seed].metrics["micro_f1"]
        assert found["micro_f1"].difference == pytest.approx(difference)
    content = json.loads(json.dumps(report.as_json(made)))["pairs"]
    assert content[0]["seeds"]["17"]["macro_f1"].keys() == {"difference", "low", "high", "p_value"}


def test_another_run_is_calibrated_in_the_same_way(ready, scored):
    pool, noise = scored["pool"], np.random.default_rng(0).normal(size=scored["pool"].log_odds.shape)
    others = {"same": scored, "noise": {"pool": replace(pool, log_odds=noise)}}
    made = report.paired(report.report(ready, scored, SEEDS, ["platt"]), others, "platt")
    same, other = made.pairs[1:]
    assert same.second == "platt of same"
    assert all(found["micro_f1"].difference == 0 for found in same.seeds.values())
    assert all(found["micro_f1"].p_value == 1 for found in same.seeds.values())
    assert other.seeds[13]["micro_f1"].difference > 0


def test_other_documents_cannot_be_compared(ready, scored):
    made = report.report(ready, scored, SEEDS, ["platt"])
    others = {"fewer": {"pool": scored["pool"].take(np.arange(50))}}
    with pytest.raises(SetScoreError, match="fewer has scores of 25 documents and 3 labels, this run of 30 and 3"):
        report.paired(made, others, "platt")
