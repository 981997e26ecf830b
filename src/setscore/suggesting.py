"""Which documents to label next: those that are doubtful, unlike each other, and likely to hold labels seen too seldom.

    gain(x)   = sum over labels of the chance that today's decision is wrong                  what an answer puts right
    worth(x)  = sum over labels of  rarity_i  H(p_i(x))                                       what an answer teaches
    rarity_i  = 1 / sqrt(1 + gold documents of label i)

One document after the other is taken, the one whose worth times its distance from everything that is labelled or taken
is greatest. Pure functions: nothing is asked in here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from setscore.errors import SetScoreError, counted
from setscore.fitting import Known
from setscore.predictions import Predictions
from setscore.records import BoolArray, FloatArray, IntArray

SHOWN = 3  # labels that a reason names
SELDOM = 5  # gold documents below which a label counts as seen too seldom
NEAR = 1e-6  # squared distance below which two documents count as the same


@dataclass(frozen=True)
class Suggestion:
    """A document that is worth labelling.

    index    its place among the documents given, from 0
    id       its id, or its place as a text
    gain     how many of today's decisions on it are expected to be wrong: labelling it puts them right
    labels   the labels in doubt, the most doubtful first
    reasons  in words
    """

    index: int
    id: str
    gain: float
    labels: tuple[str, ...]
    reasons: tuple[str, ...]


def suggest(predictions: Predictions, n: int, known: Known | None) -> list[Suggestion]:
    """The `n` documents to label next, the best first; fewer where the others are copies of what is `known`.

    The predictions come with vectors. What could not be scored is not suggested.
    """
    if n < 1:
        raise SetScoreError(f"at least one document is to be suggested, got n={n}.")
    names, p, vectors = predictions.label_names, predictions.probabilities, predictions.scores.vectors
    if vectors is None:
        raise SetScoreError("suggestions need the documents' vectors: classify with embed=True.")
    counts = np.zeros(len(names), dtype=np.int64) if known is None else known.gold.sum(axis=0)
    labelled = vectors[:0] if known is None or not known.vectors.shape[1] else known.vectors
    usable = np.array([row not in predictions.errors for row in range(len(predictions))], dtype=np.bool_)
    wrong = np.where(predictions.decisions, 1 - p, p)
    return [
        Suggestion(
            index=row,
            id=predictions.ids[row],
            gain=float(wrong[row].sum()),
            labels=tuple(names[i] for i in np.argsort(-wrong[row], kind="stable")[:SHOWN] if wrong[row, i] > 0),
            reasons=_reasons(wrong[row], p[row], counts, names, novelty),
        )
        for row, novelty in choose(p, vectors, usable, counts, labelled, n)
    ]


def choose(  # noqa: PLR0917
    probabilities: FloatArray, vectors: FloatArray, usable: BoolArray, counts: IntArray, labelled: FloatArray, n: int
) -> list[tuple[int, float]]:
    """Rows in the order in which they are taken, each with its squared distance from all that was known by then.

    probabilities [n, m], vectors [n, d] and which may be taken [n]; gold documents of each label [m], and the vectors
    of those that are labelled already [k, d].
    """
    doubt = entr(probabilities) + entr(1 - probabilities)
    worth = np.where(usable, doubt @ (1 / np.sqrt(1 + counts)), -np.inf)
    away = np.full(len(worth), 2.0)  # squared distance of unit vectors without anything in common
    if len(labelled):
        away = np.minimum(away, 2 - 2 * (vectors @ labelled.T).max(axis=1))
    chosen: list[tuple[int, float]] = []
    while len(chosen) < min(n, len(worth)):
        value = np.where(np.isfinite(worth) & (away > NEAR), np.maximum(worth, 1e-12) * away, -np.inf)
        row = int(value.argmax())
        if value[row] == -np.inf:
            break
        chosen.append((row, float(away[row])))
        worth[row] = -np.inf
        away = np.minimum(away, 2 - 2 * vectors @ vectors[row])
    return chosen


def _reasons(
    wrong: FloatArray, probabilities: FloatArray, counts: IntArray, names: Sequence[str], novelty: float
) -> tuple[str, ...]:
    doubtful = [i for i in np.argsort(-wrong, kind="stable")[:SHOWN] if wrong[i] >= 0.1]
    seldom = [i for i in np.argsort(-probabilities, kind="stable") if counts[i] < SELDOM and probabilities[i] >= 0.2]
    reasons = []
    if doubtful:
        reasons.append(f"in doubt: {', '.join(f'{names[i]} {probabilities[i]:.0%}' for i in doubtful)}")
    if seldom and counts.any():
        told = ", ".join(f"{names[i]} ({counted(int(counts[i]), 'example')})" for i in seldom[:SHOWN])
        reasons.append(f"may hold labels with few examples: {told}")
    if novelty >= 1:
        reasons.append("unlike what is labelled or suggested before it")
    return tuple(reasons) or ("adds to the variety of what is labelled",)
