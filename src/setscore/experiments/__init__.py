"""Measuring the method: scores that are saved and resumed, honest evaluation over seeds, yardsticks and pictures."""

from setscore.experiments.evaluation import (
    Outcome,
    Spread,
    Summary,
    Trial,
    cross_validated,
    evaluate,
    over_seeds,
    over_trials,
)
from setscore.experiments.scored import Scored, score_dataset
from setscore.experiments.slices import PAPER_SETS, prepare, prepare_file, trials

__all__ = [
    "PAPER_SETS",
    "Outcome",
    "Scored",
    "Spread",
    "Summary",
    "Trial",
    "cross_validated",
    "evaluate",
    "over_seeds",
    "over_trials",
    "prepare",
    "prepare_file",
    "score_dataset",
    "trials",
]
