"""Measuring the method: scores that are saved and resumed, honest evaluation over seeds, yardsticks and pictures."""

from setscore.experiments.evaluation import (
    PAPER_SETS,
    Spread,
    Summary,
    Trial,
    evaluate,
    over_seeds,
    over_trials,
    prepare,
    prepare_file,
    score_dataset,
    trials,
)
from setscore.experiments.scored import Outcome, Scored, cross_validated

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
