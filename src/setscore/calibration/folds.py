"""Cross-validation inside the labelled slice: nothing is chosen on the documents that it was fitted on."""

from collections.abc import Callable

import numpy as np

from setscore.records import BoolArray, FloatArray, IntArray

FOLDS = 5
SEED = 13

Fitter = Callable[[FloatArray, BoolArray], Callable[[FloatArray], FloatArray]]  # fit on some rows, map others


def assign(documents: int) -> IntArray:
    """The fold of each document: seeded, equal in size."""
    return np.random.default_rng(SEED).permutation(documents) % min(FOLDS, documents)


def out_of_fold(fit: Fitter, log_odds: FloatArray, gold: BoolArray) -> FloatArray:
    """Each document mapped by what was fitted without its fold, [n_documents, n_labels]."""
    fold, mapped = assign(len(log_odds)), np.empty(log_odds.shape)
    for number in range(fold.max() + 1):
        inside = fold == number
        mapped[inside] = fit(log_odds[~inside], gold[~inside])(log_odds[inside])
    return mapped


def log_loss(logits: FloatArray, gold: BoolArray, asked: BoolArray) -> float:
    """Mean over the pairs that were asked."""
    return float(np.logaddexp(0, np.where(gold, -logits, logits))[asked].mean())
