"""Which documents to label next: those that are doubtful, unlike each other, and likely to hold labels seen too seldom.

    gain(x)      = sum over labels of the chance that today's decision is wrong               what an answer puts right
    doubt(x)     = sum over labels of  H(p_i(x)) / sqrt(1 + gold documents of label i)        seldom seen labels first
    coverage(S)  = sum over documents x of  sqrt(doubt(x))  max_{s in S} cos(x, s)^2

S are the labelled documents and those that are taken, one after the other: the next is the one that adds most to the
coverage. It stands for many doubtful documents that nothing labelled is near to. Taking the most doubtful ones
themselves would be worse than chance: they are odd ones, and a slice of odd documents says little of the others
(benchmarks/studies/suggest.py). For the same reason a third of ten and more are drawn at random: chosen documents alone
say too little of how often labels apply. Pure functions: nothing is asked in here.
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
RARITY = 0.5
SAME = 1 - 1e-6  # coverage from which two documents count as the same
TINY = 1e-12
# A third of the suggestions are drawn at random, from ten on. Of none, a third, half and 70% that was best inside the
# validation documents of six sets (benchmarks/studies/suggest.py --within).
DRAWN, LEAST_DRAWN, SEED = 3, 10, 13
NEW = 0.6  # of a document that is not covered, from which it is said to be unlike what is known


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
            reasons=_reasons(wrong[row], p[row], counts, names, one),
        )
        for one in choose(p, vectors, usable, counts, labelled, n)
        for row in [one.row]
    ]


@dataclass(frozen=True)
class Taken:
    """A row, how far it was from being covered when it was taken, 0 to 1, and whether it was drawn at random."""

    row: int
    novelty: float
    drawn: bool = False


def choose(  # noqa: PLR0917
    probabilities: FloatArray, vectors: FloatArray, usable: BoolArray, counts: IntArray, labelled: FloatArray, n: int
) -> list[Taken]:
    """Rows in the order in which they are to be labelled, chosen ones and drawn ones in turn.

    probabilities [n, m], vectors [n, d] and which may be taken [n]; gold documents of each label [m], and the vectors
    of those that are labelled already [k, d].
    """
    doubt = (entr(probabilities) + entr(1 - probabilities)) @ (1 + counts) ** -RARITY
    worth = np.where(usable, np.sqrt(np.maximum(doubt, TINY)), 0.0)
    near = np.maximum(vectors @ vectors.T, 0.0) ** 2
    covered = np.maximum(vectors @ labelled.T, 0.0).max(axis=1) ** 2 if len(labelled) else np.zeros(len(worth))
    free, drawn, chosen = usable.copy(), list[Taken](), list[Taken]()
    order = np.random.default_rng(SEED).permutation(len(free)) if n >= LEAST_DRAWN else np.zeros(0, dtype=np.int64)
    for row in order.tolist():
        if len(drawn) < n // DRAWN and free[row] and covered[row] < SAME:
            drawn.append(Taken(row, float(1 - covered[row]), drawn=True))
            covered, free[row] = np.maximum(covered, near[row]), False
    while len(chosen) + len(drawn) < n and (free := free & (covered < SAME)).any():
        added = np.maximum(near - covered, 0.0) @ worth
        row = int(np.where(free, added, -np.inf).argmax())
        chosen.append(Taken(row, float(1 - covered[row])))
        covered = np.maximum(covered, near[row])
        free[row] = False
    for place, one in enumerate(drawn, 1):  # whoever labels only the first of them has both kinds
        chosen.insert(place * DRAWN - 1, one)
    return chosen


def _reasons(
    wrong: FloatArray, probabilities: FloatArray, counts: IntArray, names: Sequence[str], taken: Taken
) -> tuple[str, ...]:
    doubtful = [i for i in np.argsort(-wrong, kind="stable")[:SHOWN] if wrong[i] >= 0.1]
    seldom = [i for i in np.argsort(-probabilities, kind="stable") if counts[i] < SELDOM and probabilities[i] >= 0.2]
    reasons = ["drawn at random, to learn how often labels apply"] if taken.drawn else []
    if doubtful:
        reasons.append(f"in doubt: {', '.join(f'{names[i]} {probabilities[i]:.0%}' for i in doubtful)}")
    if seldom and counts.any():
        told = ", ".join(f"{names[i]} ({counted(int(counts[i]), 'example')})" for i in seldom[:SHOWN])
        reasons.append(f"may hold labels with few examples: {told}")
    if taken.novelty >= NEW and not taken.drawn:
        reasons.append("unlike what is labelled or suggested before it")
    return tuple(reasons) or ("adds to the variety of what is labelled",)
