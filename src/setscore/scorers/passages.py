"""Passages of a document, each asked about on its own: a question about a whole document misses what one sentence says.

    u_i = (u_i(whole) + max_p u_i(p)) / 2

over passages p, runs of sentences of at least PASSAGE words. The passage that speaks for a label most is as good a
witness as the whole, and neither alone is as good as both. Only texts of LEAST words or more have passages: on shorter
ones they tell nothing new. The numbers were chosen on judged and written texts of the recipe that were kept apart.
"""

import re

import numpy as np

from setscore.records import FloatArray

LEAST = 60  # words of a text that has passages
PASSAGE = 15  # words of a passage, at least
SHARE = 0.5  # of the passage that speaks for a label most
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


def with_passages(whole: FloatArray, parts: FloatArray) -> FloatArray:
    """Log-odds of the whole [n_labels] and of its passages [n_passages, n_labels], perhaps none, to [n_labels]."""
    return whole if not len(parts) else (1 - SHARE) * whole + SHARE * np.asarray(parts.max(axis=0))
