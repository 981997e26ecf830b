"""Scorers: which queries to ask a backbone, and how its answers become Scores."""

from setscore.scorers.per_label import PerLabelScorer

__all__ = ["PerLabelScorer"]
