"""Which documents to label next: a few that stand for all, doubtful ones counting more, and some drawn at random.

    gain(x)  = sum over labels of the chance that today's decision is wrong          what an answer puts right
    w(x)     = sum over labels of  H(p_i(x)) / (1 + gold documents of label i)^0.2   doubt, seldom seen labels first
    S next   = argmax_x  sum_y w(y) k(x, y) / sum_y w(y) - sum_{s in S} k(x, s) / (|S| + 1)

S are the labelled documents and those that are taken, one after the other, and k a Gaussian kernel over what a document
is about (its vector) and what is said of it (its probabilities, those of a rare label stretched). Kernel herding: the
mean of S comes near to the mean of all documents, each weighing its doubt. Taking the most doubtful ones themselves
would be worse than chance: they are odd ones, and a slice of odd documents says little of the others. For the same
reason a third of ten and more are drawn at random. Held against random choice inside the validation documents of six
sets (benchmarks/studies/suggest.py --within). Pure functions: nothing is asked in here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr

from setscore.errors import SetScoreError, counted
from setscore.fitting import MODEL, Known
from setscore.predictions import Predictions
from setscore.records import FloatArray, IntArray

SHOWN = 3  # labels that a reason names
DOUBTFUL = 0.1  # the chance of a wrong decision from which a label is said to be in doubt
SELDOM = 5  # gold documents below which a label counts as seen too seldom
RARITY = 0.2
SPREAD = 1e-3  # the least p (1 - p) of a label's mean probability p, by whose root its probabilities are divided
SAME = 1 - 1e-6  # squared cosine from which two documents count as the same
TINY = 1e-12
SOME, MANY = 500, 5000  # documents at a time; and of which a mean over all is taken
DRAWN, LEAST_DRAWN, SEED = 3, 10, 13  # a third of the suggestions are drawn at random, from ten on
NEW = 0.6  # of the squared cosine to what is nearest, what is missing to 1: from here on it is said to be unlike that


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


def suggest(predictions: Predictions, n: int, known: Known | None, of_known: FloatArray | None) -> list[Suggestion]:
    """The `n` documents to label next, the best first; fewer where the others are copies of what is `known`.

    The predictions come with vectors; `of_known` [k, m] are today's probabilities of the known documents. What could
    not be scored is not suggested.
    """
    if n < 1:
        raise SetScoreError(f"at least one document is to be suggested, got n={n}.")
    usable = np.array([row for row in range(len(predictions)) if row not in predictions.errors], dtype=np.int64)
    if not len(usable):
        return []
    names, p, vectors = predictions.label_names, predictions.probabilities, predictions.scores.vectors
    if vectors is None:
        raise SetScoreError("suggestions need the documents' vectors: classify with embed=True.")
    counts, labelled = np.zeros(len(names), dtype=np.int64), Seen(p[:0], vectors[:0])
    if known is not None and of_known is not None:
        counts = known.gold.sum(axis=0)
        if known.embedded:
            new = np.isneginf(known.members[MODEL]).all(axis=0)  # labels that these documents were never asked about
            labelled = Seen(np.where(new, p[usable].mean(axis=0), of_known), known.vectors)
    wrong = np.where(predictions.decisions, 1 - p, p)
    return [
        Suggestion(
            index=row,
            id=predictions.ids[row],
            gain=float(wrong[row].sum()),
            labels=tuple(names[i] for i in _doubtful(wrong[row])),
            reasons=_reasons(wrong[row], p[row], counts, names, one),
        )
        for one in choose(Seen(p[usable], vectors[usable]), labelled, counts, n)
        for row in [int(usable[one.row])]
    ]


@dataclass(frozen=True, eq=False)
class Seen:
    """Documents as numbers: today's probabilities [n, m] and vectors of length 1 [n, d]."""

    probabilities: FloatArray
    vectors: FloatArray


@dataclass(frozen=True)
class Taken:
    """A row, how unlike it was to all that was known when it was taken, 0 to 1, and whether it was drawn at random."""

    row: int
    novelty: float
    drawn: bool = False


def choose(candidates: Seen, labelled: Seen, counts: IntArray, n: int) -> list[Taken]:
    """Rows of the candidates in the order in which they are to be labelled, chosen ones and drawn ones in turn.

    `counts` [m] are the gold documents of each label.
    """
    count, known = len(candidates.vectors), len(labelled.vectors)
    p = np.vstack([candidates.probabilities, labelled.probabilities])
    kernel = _Kernel.of(p, np.vstack([candidates.vectors, labelled.vectors]))
    nearest = np.maximum(candidates.vectors @ labelled.vectors.T, 0.0).max(axis=1, initial=0.0) ** 2
    taken = kernel.sums((np.arange(len(p)) >= count).astype(np.float64))[:count]
    doubt = (entr(p) + entr(1 - p)) @ (1.0 + counts) ** -RARITY + TINY
    # a mean over so many is as good as one over all, and time does not grow with the square
    doubt[np.random.default_rng(SEED).permutation(len(p))[MANY:]] = 0.0
    wanted = kernel.sums(doubt / doubt.sum())[:count]
    drawn, chosen = list[Taken](), list[Taken]()

    def take(row: int, into: list[Taken], *, at_random: bool = False) -> None:
        nonlocal taken, nearest
        into.append(Taken(row, float(1 - nearest[row]), drawn=at_random))
        taken = taken + kernel.to(row)[:count]
        nearest = np.maximum(nearest, np.maximum(candidates.vectors @ candidates.vectors[row], 0.0) ** 2)
        nearest[row] = 1.0  # however its own cosine is rounded

    if n >= LEAST_DRAWN:  # another round draws others
        for row in np.random.default_rng([SEED, known]).permutation(count).tolist():
            if nearest[row] < SAME and len(drawn) < n // DRAWN:
                take(row, drawn, at_random=True)
    while len(chosen) + len(drawn) < n and (new := nearest < SAME).any():  # no copies of what is there
        has = taken / (known + len(chosen) + len(drawn) + 1)
        take(int(np.where(new, wanted - has, -np.inf).argmax()), chosen)
    for place, one in enumerate(drawn, 1):  # whoever labels only the first of them has both kinds
        chosen.insert(place * DRAWN - 1, one)
    return chosen


@dataclass(frozen=True, eq=False)
class _Kernel:
    """A Gaussian over features [n, m + d]: what is said of documents, and what they are about; row by row.

    Vectors vary by 1 in all; probabilities by as much where they are 0 or 1, by less where they are undecided. The
    width is how far documents usually lie apart.
    """

    features: FloatArray
    squares: FloatArray
    width: float

    @classmethod
    def of(cls, probabilities: FloatArray, vectors: FloatArray) -> "_Kernel":
        middle = probabilities.mean(axis=0)
        said = (probabilities - middle) / np.sqrt(np.maximum(middle * (1 - middle), SPREAD) * probabilities.shape[1])
        about = vectors - vectors.mean(axis=0)
        about /= np.sqrt(np.maximum((about**2).sum(axis=1).mean(), TINY))
        features = np.hstack([said, about])
        kernel = cls(features, (features**2).sum(axis=1), 1.0)
        some = np.linspace(0, len(features) - 1, min(SOME, len(features))).astype(np.int64)
        apart = kernel._apart(some)[some]
        usual = apart[apart > TINY]
        return replace(kernel, width=float(np.median(usual))) if usual.size else kernel

    def to(self, row: int) -> FloatArray:
        """Of every document with that one [n]."""
        return np.asarray(np.exp(-self._apart(np.array([row]))[:, 0] / self.width))

    def sums(self, weights: FloatArray) -> FloatArray:
        """Of every document with all, weighted [n]; in blocks, so that memory does not grow with the square."""
        weighing, found = np.flatnonzero(weights), np.zeros(len(self.features))
        for start in range(0, len(weighing), SOME):
            block = weighing[start : start + SOME]
            found += np.exp(-self._apart(block) / self.width) @ weights[block]
        return found

    def _apart(self, rows: IntArray) -> FloatArray:
        """Squared distances [n, k] of every document to those of `rows`."""
        products = self.features @ self.features[rows].T
        return np.asarray(np.maximum(self.squares[:, None] + self.squares[rows] - 2 * products, 0.0))


def _doubtful(wrong: FloatArray) -> list[int]:
    """The labels whose decisions may well be wrong, the most doubtful first."""
    return [i for i in np.argsort(-wrong, kind="stable")[:SHOWN].tolist() if wrong[i] >= DOUBTFUL]


def _reasons(
    wrong: FloatArray, probabilities: FloatArray, counts: IntArray, names: Sequence[str], taken: Taken
) -> tuple[str, ...]:
    doubtful = _doubtful(wrong)
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
