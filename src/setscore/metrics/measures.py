"""Measuring multi-label predictions: decisions, rankings, probabilities, and how sure one can be.

Gold labels, decisions and scores are matrices [n_documents, n_labels]. Labels that were not asked count as negatives:
their decision is False and their probability 0. F1 is reported as micro, then macro. Where a quotient is 0 / 0 (a label
that is never gold and never predicted) it counts as 0, as in scikit-learn with `zero_division=0`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setscore.errors import SetScoreError, counted
from setscore.records import BoolArray, FloatArray

ECE_BINS = 15  # equal width, as in the paper


@dataclass(frozen=True)
class Counts:
    """True positives, false positives and false negatives, with any leading axes; the last axis is the labels."""

    tp: FloatArray
    fp: FloatArray
    fn: FloatArray

    @classmethod
    def of(cls, gold: BoolArray, predicted: BoolArray, weights: FloatArray | None = None) -> "Counts":
        """Counts per label; `weights` [..., n_documents] counts a document several times (for resampling)."""
        parts = (gold & predicted, ~gold & predicted, gold & ~predicted)
        if weights is None:
            return cls(*(part.sum(axis=0).astype(np.float64) for part in parts))
        return cls(*(weights @ part.astype(np.float64) for part in parts))

    def micro(self) -> "Counts":
        return Counts(self.tp.sum(axis=-1), self.fp.sum(axis=-1), self.fn.sum(axis=-1))

    def precision(self) -> FloatArray:
        return ratio(self.tp, self.tp + self.fp)

    def recall(self) -> FloatArray:
        return ratio(self.tp, self.tp + self.fn)

    def f1(self) -> FloatArray:
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)


def ratio(top: npt.NDArray[Any], bottom: FloatArray) -> FloatArray:
    """top / bottom, 0 where bottom is 0."""
    quotient: FloatArray = np.divide(top, bottom, out=np.zeros_like(bottom, dtype=np.float64), where=bottom > 0)
    return quotient


def micro_f1(counts: Counts) -> FloatArray:
    """Over all decisions."""
    return counts.micro().f1()


def macro_f1(counts: Counts) -> FloatArray:
    """Mean over all labels."""
    return np.asarray(counts.f1().mean(axis=-1))


def macro_f1_present(counts: Counts) -> FloatArray:
    """Mean over the labels that have at least one gold document."""
    present = counts.tp + counts.fn > 0
    return ratio((counts.f1() * present).sum(axis=-1), present.sum(axis=-1).astype(np.float64))


def decision_metrics(gold: npt.ArrayLike, predicted: npt.ArrayLike) -> dict[str, float]:
    """Everything that follows from the decisions alone."""
    y, p = indicators(gold, predicted)
    labels, documents = Counts.of(y, p), Counts.of(y.T, p.T)  # per label; per document
    micro = labels.micro()
    union = (y | p).sum(axis=1).astype(np.float64)
    return {
        "micro_f1": float(micro.f1()),
        "macro_f1": float(macro_f1(labels)),
        "macro_f1_present": float(macro_f1_present(labels)),
        "sample_f1": float(documents.f1().mean()),
        "sample_precision": float(documents.precision().mean()),
        "sample_recall": float(documents.recall().mean()),
        "micro_precision": float(micro.precision()),
        "micro_recall": float(micro.recall()),
        "macro_precision": float(labels.precision().mean()),
        "macro_recall": float(labels.recall().mean()),
        "jaccard": float(ratio((y & p).sum(axis=1).astype(np.float64), union).mean()),
        "exact_match": float((y == p).all(axis=1).mean()),
        "hamming_loss": float((y != p).mean()),
        "cardinality_gold": float(y.sum(axis=1).mean()),
        "cardinality_predicted": float(p.sum(axis=1).mean()),
        "labels_without_gold": float((~y.any(axis=0)).sum()),
    }


def ranking_metrics(gold: npt.ArrayLike, scores: npt.ArrayLike, ks: Sequence[int] = (1, 3, 5)) -> dict[str, float]:
    """Everything that follows from the order of the scores.

    Average precision is over labels with a positive, LRAP, nDCG and P@k over documents with a gold label.
    """
    from sklearn.metrics import average_precision_score, label_ranking_average_precision_score, ndcg_score

    y, s = _indicator(gold, "gold"), _scores(scores)
    same_shape(y, s)
    labels, documents = y.any(axis=0), y.any(axis=1)
    found = {"labels_ranked": float(labels.sum()), "documents_ranked": float(documents.sum())}
    if not documents.any():
        return found
    found["macro_ap"] = float(np.mean([average_precision_score(y[:, i], s[:, i]) for i in np.flatnonzero(labels)]))
    found["micro_ap"] = float(average_precision_score(y.ravel(), s.ravel()))
    found["lrap"] = float(label_ranking_average_precision_score(y[documents], s[documents]))
    if y.shape[1] > 1:
        found["ndcg"] = float(ndcg_score(y[documents], s[documents]))
    order = np.argsort(-s[documents], axis=1, kind="stable")
    hits = np.take_along_axis(y[documents], order, axis=1)
    found |= {f"precision_at_{k}": float(hits[:, :k].mean()) for k in ks if k <= y.shape[1]}
    return found


def probability_metrics(gold: npt.ArrayLike, probabilities: npt.ArrayLike) -> dict[str, float]:
    """ECE, Brier score and log-loss over all (document, label) pairs, as the paper does."""
    y, p = _indicator(gold, "gold").ravel(), checked_probabilities(probabilities).ravel()
    if y.shape != p.shape:
        raise SetScoreError(f"gold has {y.size} entries, the probabilities {p.size}; they must agree.")
    table = reliability(y, p)
    gap = np.abs(table["confidence"] - table["accuracy"])
    safe = np.clip(p, 1e-12, 1 - 1e-12)
    return {
        "ece": float((table["count"] * gap).sum() / len(p)),
        "brier": float(((p - y) ** 2).mean()),
        "log_loss": float(-(np.where(y, np.log(safe), np.log1p(-safe))).mean()),
    }


def reliability(gold: npt.ArrayLike, probabilities: npt.ArrayLike, bins: int = ECE_BINS) -> dict[str, FloatArray]:
    """For each equal-width bin: how many pairs, their mean probability and how many of them are gold. Empty bins: 0."""
    y, p = np.asarray(gold).ravel().astype(np.float64), checked_probabilities(probabilities).ravel()
    which = np.minimum((p * bins).astype(np.int64), bins - 1)
    count = np.bincount(which, minlength=bins).astype(np.float64)
    return {
        "low": np.arange(bins) / bins,
        "count": count,
        "confidence": ratio(np.bincount(which, weights=p, minlength=bins), count),
        "accuracy": ratio(np.bincount(which, weights=y, minlength=bins), count),
    }


def all_metrics(gold: npt.ArrayLike, predicted: npt.ArrayLike, probabilities: npt.ArrayLike) -> dict[str, float]:
    """The three families together."""
    return {
        **decision_metrics(gold, predicted),
        **ranking_metrics(gold, probabilities),
        **probability_metrics(gold, probabilities),
    }


def per_label_table(gold: npt.ArrayLike, predicted: npt.ArrayLike, names: Sequence[str]) -> list[dict[str, Any]]:
    """One row per label: support, how often it was predicted, precision, recall and F1."""
    y, p = indicators(gold, predicted)
    if len(names) != y.shape[1]:
        raise SetScoreError(f"{counted(len(names), 'name')} came with {counted(y.shape[1], 'label')}.")
    counts = Counts.of(y, p)
    columns = zip(names, y.sum(0), p.sum(0), counts.precision(), counts.recall(), counts.f1(), strict=True)
    return [
        {"label": name, "gold": int(g), "predicted": int(q), "precision": float(a), "recall": float(b), "f1": float(f)}
        for name, g, q, a, b, f in columns
    ]


def by_group(gold: npt.ArrayLike, predicted: npt.ArrayLike, groups: Sequence[str]) -> dict[str, dict[str, float]]:
    """Decision metrics of each value of a user's column."""
    y, p = indicators(gold, predicted)
    if len(groups) != len(y):
        raise SetScoreError(f"{counted(len(groups), 'group value')} came with {counted(len(y), 'document')}.")
    values = np.asarray(groups, dtype=object)
    return {
        str(value): {**decision_metrics(y[rows], p[rows]), "documents": float(rows.sum())}
        for value in sorted(set(groups), key=str)
        if (rows := np.asarray(values == value)).any()
    }


Statistic = Callable[[Counts], FloatArray]
STATISTICS: Mapping[str, Statistic] = {
    "micro_f1": micro_f1,
    "macro_f1": macro_f1,
    "macro_f1_present": macro_f1_present,
}


def objective_value(
    objective: str, gold: BoolArray, decisions: BoolArray, weights: FloatArray, cost: tuple[float, float] = (1.0, 1.0)
) -> FloatArray:
    """What a calibration maximises [rounds], documents weighted by `weights` [rounds, n_documents].

    "micro_f1", "macro_f1", "balanced" (the mean of both), "sample_f1" (the mean F1 of documents), or "cost" of (false
    positives, false negatives), which is negative.
    """
    if objective == "sample_f1":
        return weights @ Counts.of(gold.T, decisions.T).f1() / len(gold)
    counts = Counts.of(gold, decisions, weights)
    if objective == "cost":
        whole = counts.micro()
        return -(cost[0] * whole.fp + cost[1] * whole.fn) / gold.size
    if objective == "balanced":
        return (STATISTICS["micro_f1"](counts) + STATISTICS["macro_f1"](counts)) / 2
    return STATISTICS[objective](counts)


# Checks


def _indicator(value: npt.ArrayLike, what: str) -> BoolArray:
    array = np.asarray(value)
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] == 0:
        raise SetScoreError(f"{what} must be a matrix of documents by labels, got the shape {array.shape}.")
    if not np.isin(array, (0, 1)).all():
        raise SetScoreError(f"{what} must hold only 0 and 1.")
    return array.astype(np.bool_)


def indicators(gold: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[BoolArray, BoolArray]:
    y, p = _indicator(gold, "gold"), _indicator(predicted, "the predictions")
    same_shape(y, p)
    return y, p


def same_shape(gold: npt.NDArray[Any], other: npt.NDArray[Any]) -> None:
    if gold.shape != other.shape:
        raise SetScoreError(f"gold has the shape {gold.shape}, what is measured {other.shape}; they must agree.")


def _scores(value: npt.ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        raise SetScoreError(f"{bad} scores are NaN or infinite; probabilities (0 for labels not asked) can be ranked.")
    return array


def checked_probabilities(value: npt.ArrayLike) -> FloatArray:
    array = _scores(value)
    if array.size and (array.min() < 0 or array.max() > 1):
        raise SetScoreError(f"probabilities lie in [0, 1], got {array.min():.3g} to {array.max():.3g}.")
    return array
