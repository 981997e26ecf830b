"""How high the other labels of a document stand: by this, labels compete for it.

    r_i = log(1 + sum_{j != i} exp(k u_j)) / k,    k = 4

is a soft maximum of 0 and the other labels' log-odds: near 0 while no other label stands out, near the highest of them
when one does. The order of the labels plays no part, and adding a label that does not apply changes nothing. At 1 a
label stops being alone, and from there on it is beside another one:

    alone_i = max(0, 1 - r_i),    beside_i = max(0, r_i - 1)

A label that is the only one asked of a document has no others: it is neither alone nor beside one.
"""

import numpy as np
from scipy.special import logsumexp

from setscore.records import FloatArray

SHARPNESS = 4.0  # k: how nearly the soft maximum is the maximum


def others(log_odds: FloatArray) -> FloatArray:
    """r [n_documents, n_labels] of log-odds u; a label that was not asked, -inf, takes no part."""
    scaled = SHARPNESS * log_odds
    everyone = np.logaddexp(0.0, logsumexp(scaled, axis=1, keepdims=True))
    # Taking a label out of the sum is safe for all but the highest, which may be nearly the whole of it.
    rows, highest = np.arange(len(scaled)), scaled.argmax(axis=1)
    rest = scaled.copy()
    rest[rows, highest] = -np.inf
    share = np.exp(scaled - everyone)
    share[rows, highest] = 0.0
    found = everyone + np.log1p(-share)
    found[rows, highest] = np.logaddexp(0.0, logsumexp(rest, axis=1))
    return np.asarray(found / SHARPNESS)


def standing(log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How much each label is alone, from 0 to 1, and how much beside another one, from 0 on: both [n, m]."""
    free = 1.0 - others(log_odds)
    free[np.isfinite(log_odds).sum(axis=1) < 2] = 0.0
    return np.maximum(0.0, free), np.maximum(0.0, -free)
