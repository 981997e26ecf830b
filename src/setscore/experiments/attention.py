"""What shared attention costs and saves on one's own documents, beside exact attention.

For a bidirectional model shared attention is an approximation: the document no longer sees the question. How good it is
depends on the model and the documents, so it is measured before it is chosen.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from setscore.calibration.thresholds import best_cut
from setscore.classifier import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.metrics import decision_metrics
from setscore.records import BoolArray, FloatArray

MODES = ("exact", "shared")


@dataclass(frozen=True)
class ModeScores:
    """One attention mode: its log-odds [n_documents, n_labels], its speed, and its F1 where there is gold.

    `f1` is (micro, macro) at the threshold, `best_f1` at the threshold that is best for this mode on these documents.
    """

    mode: str
    log_odds: FloatArray
    documents_per_second: float
    f1: tuple[float, float] | None
    best_f1: tuple[float, float] | None


@dataclass(frozen=True)
class AttentionComparison:
    """Shared attention against exact attention.

    flips        share of the decisions at the threshold that differ
    correlation  Spearman's rank correlation of all log-odds
    largest      the largest difference of a log-odds
    """

    exact: ModeScores
    shared: ModeScores
    flips: float
    correlation: float
    largest: float

    @property
    def speedup(self) -> float:
        return self.shared.documents_per_second / self.exact.documents_per_second


def compare_attention(
    classifier: SetScoreClassifier, texts: Sequence[str], gold: BoolArray | None = None
) -> AttentionComparison:
    """Scores `texts` with both modes of the classifier's backbone. Its threshold decides."""
    if not isinstance(classifier.backbone, str):
        raise SetScoreError("attention modes are compared for a backbone given by name.")
    exact, shared = (_measure(classifier, mode, texts, gold) for mode in MODES)
    threshold = classifier.threshold
    decided = [expit(one.log_odds) >= threshold for one in (exact, shared)]
    return AttentionComparison(
        exact,
        shared,
        flips=float((decided[0] != decided[1]).mean()),
        correlation=rank_correlation(exact.log_odds, shared.log_odds),
        largest=float(np.abs(exact.log_odds - shared.log_odds).max()),
    )


def rank_correlation(first: FloatArray, second: FloatArray) -> float:
    """Spearman's: Pearson's of the ranks, ties at their mean rank; 1 when one of them has no order at all."""
    a, b = (_ranks(values.ravel()) for values in (first, second))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 1.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: FloatArray = np.cumsum(counts) - (counts - 1) / 2
    return mean[which]


def _measure(classifier: SetScoreClassifier, mode: str, texts: Sequence[str], gold: BoolArray | None) -> ModeScores:
    model = SetScoreClassifier(**classifier.get_params(deep=False) | {"attention": mode})
    model.classify(texts[:1])  # loading is not timed
    begun = time.perf_counter()
    log_odds = model.classify(texts).checked().scores.log_odds
    seconds = time.perf_counter() - begun
    probabilities = expit(log_odds)
    f1 = best = None
    if gold is not None:
        f1 = _f1(gold, probabilities >= classifier.threshold)
        best = _f1(gold, probabilities >= best_cut(probabilities.ravel(), gold.ravel(), int(gold.sum())))
    return ModeScores(mode, log_odds, len(texts) / seconds, f1, best)


def _f1(gold: BoolArray, decided: BoolArray) -> tuple[float, float]:
    found = decision_metrics(gold, decided)
    return found["micro_f1"], found["macro_f1"]
