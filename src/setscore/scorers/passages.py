"""Passages of a document, each asked about on its own: a question about a whole document misses what one sentence says.

    u_i = w_i + s(w_i) (max_p u_i(p) - w_i)        w_i: the log-odds of the whole
    s(w) = SHARE min(1, 2 - 2 |w| / DOUBT)         0 where |w| is DOUBT or more

over passages p, runs of sentences of at least PASSAGE words. Where the whole leaves a label in doubt, the passage that
speaks for it most is as good a witness as the whole, and neither alone is as good as both. Where the whole is sure,
passages make decisions no better, so they are not asked about that label. In the outer half of the band their share
fades: no score jumps where a label comes into doubt, and a rounding error stays one.

Only texts of LEAST words or more have passages: on shorter ones they tell nothing new. The numbers were chosen on
judged and written texts of the recipe that were kept apart (recipes/LOG.md).
"""

import re

import numpy as np

from setscore.records import BoolArray, FloatArray

LEAST = 60  # words of a text that has passages
PASSAGE = 15  # words of a passage, at least
SHARE = 0.5  # of the passage that speaks for a label most
DOUBT = 2.0  # log-odds of the whole, for or against a label, from which on it is not in doubt
_END = re.compile(r"(?<=[.!?])\s+|\n+")


def passages(text: str) -> list[str]:
    """Runs of sentences or lines, in order; none of a short text, nor of one that is a single sentence."""
    if len(text.split()) < LEAST:
        return []
    found, waiting, words = list[str](), list[str](), 0
    for sentence in filter(str.strip, _END.split(text)):
        waiting.append(sentence.strip())
        words += len(sentence.split())
        if words >= PASSAGE:
            found.append(" ".join(waiting))
            waiting, words = [], 0
    if waiting and found:  # the rest goes with what stands before it
        found[-1] = " ".join([found[-1], *waiting])
    return found if len(found) > 1 else []


def in_doubt(whole: FloatArray) -> BoolArray:
    """Which labels the passages are asked about, by the log-odds of the whole; none that was not asked (-inf)."""
    return np.asarray(np.abs(whole) < DOUBT)


def with_passages(whole: FloatArray, parts: FloatArray) -> FloatArray:
    """Log-odds of the whole [n_labels] and of its passages [n_passages, n_labels], perhaps none, to [n_labels]."""
    if not len(parts):
        return whole
    share = SHARE * np.clip(2 - 2 * np.abs(whole) / DOUBT, 0, 1)
    return np.asarray(whole + share * (parts.max(axis=0) - whole))
