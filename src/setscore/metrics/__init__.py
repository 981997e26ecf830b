"""Measuring multi-label predictions: decisions, rankings, probabilities, and how sure one can be."""

from setscore.metrics.measures import (
    STATISTICS,
    Counts,
    all_metrics,
    by_group,
    decision_metrics,
    macro_f1,
    macro_f1_present,
    micro_f1,
    objective_value,
    per_label_table,
    probability_metrics,
    ranking_metrics,
    ratio,
    reliability,
)
from setscore.metrics.resampling import Comparison, Interval, bootstrap, compare

__all__ = [
    "STATISTICS",
    "Comparison",
    "Counts",
    "Interval",
    "all_metrics",
    "bootstrap",
    "by_group",
    "compare",
    "decision_metrics",
    "macro_f1",
    "macro_f1_present",
    "micro_f1",
    "objective_value",
    "per_label_table",
    "probability_metrics",
    "ranking_metrics",
    "ratio",
    "reliability",
]
