"""Measuring the method: scores that are saved and resumed, honest evaluation over seeds, yardsticks and pictures."""

from setscore.experiments.evaluation import (
    Row,
    Spread,
    Summary,
    Trial,
    cross_validated,
    evaluate,
    over_seeds,
    over_trials,
)
from setscore.experiments.scored import Scored, score_dataset
from setscore.experiments.slices import PAPER_SETS, prepare, prepare_own, trials

__all__ = [
    "PAPER_SETS",
    "Row",
    "Scored",
    "Spread",
    "Summary",
    "Trial",
    "cross_validated",
    "evaluate",
    "over_seeds",
    "over_trials",
    "prepare",
    "prepare_own",
    "score_dataset",
    "trials",
]
