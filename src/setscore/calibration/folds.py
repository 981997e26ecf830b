"""Cross-validation inside the labelled slice: nothing is chosen on the documents that it was fitted on."""

import numpy as np

from setscore.records import BoolArray, FloatArray, IntArray

FOLDS = 5
SEED = 13


def assign(documents: int) -> IntArray:
    """The fold of each document: seeded, equal in size."""
    return np.random.default_rng(SEED).permutation(documents) % min(FOLDS, documents)


def log_loss(logits: FloatArray, gold: BoolArray, asked: BoolArray) -> float:
    """Mean over the pairs that were asked; 0 without any."""
    if not asked.any():
        return 0.0
    return float(np.logaddexp(0, np.where(gold, -logits, logits))[asked].mean())
