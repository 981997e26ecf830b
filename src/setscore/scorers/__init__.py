"""Scorers: which queries to ask a backbone, and how its answers become Scores."""

from setscore.scorers.base import Scorer
from setscore.scorers.per_label import PerLabelScorer, Reading
from setscore.scorers.registry import SCORERS, make, seed_of
from setscore.scorers.seeded import Learner

__all__ = ["SCORERS", "Learner", "PerLabelScorer", "Reading", "Scorer", "make", "seed_of"]
