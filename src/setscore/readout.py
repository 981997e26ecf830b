"""What labelled documents teach on top of the scores. The model's weights stay as they are.

    z_i(x) = a u_i(x) + c mean_j u_j(x) + d max_j u_j(x) + e cos(x, i)
             + h alone_i(x) + k beside_i(x) + f                                     the same seven for all labels
             + w_i . (v(x) - v) + sum_j g_ij (u_j(x) - u_j) + b_i                   of each label

u are the model's log-odds, v(x) is the document's sentence embedding, v and u_j are means over the labelled documents,
cos(x, i) is the cosine with the label's text, and alone and beside tell how high the other labels stand
(`competition.py`). The zero-shot answer has an a, an h and a k and nothing else. All of it is fitted by logistic
regression. What all labels share is fitted first, so a label with three gold documents borrows from the others: once
from the bare log-odds on, which are right where labels are everyday words, and once from what is typical where they are
not: there a model says yes too readily. Then each label may differ, as far as two strengths let it:

    b_i ~ N(0, 1 / t),    w_i ~ N(0, 1 / s),    g_ij ~ N(0, 1 / s)  in units that make them alike

From the zero-shot answer to weights that are hardly held there is a path of read-outs, each more complex. None is
picked: they are averaged, each as likely as it makes documents that its fit has not seen,

    share_k  ~  product over documents and labels of p_k(gold), out of fold                        (Bayesian stacking)

so that a handful of documents leaves nearly all with the simple ones. They are linear in the same inputs, and so is
their average: one read-out. Weights stand on the average of the simple ones from both starts.

Where to cut cannot be learned from a handful: `Learned.doubt` is what the read-out says of pairs that the zero-shot
answer is in doubt about, and near there a cut stays until there are gold labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from setscore.competition import standing
from setscore.errors import SetScoreError
from setscore.logistic import Prior, fit_logistic
from setscore.records import BoolArray, FloatArray, IntArray

OWN = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # a, c, d, e, h, k and f that leave the log-odds as they are
COSINE_SCALE = 10.0  # brings differences of cosines to the size of log-odds
COSINE = COSINE_SCALE * np.eye(len(OWN))[3]  # a cosine among the inputs that labels share
EMBEDDING_SCALE = 4.0  # and differences of unit vectors;
MUTUAL_SCALE = 0.3  # log-odds of other labels count less than the embedding,
FAR = 8.0  # and no further than this from their mean
# Where what labels share starts, and how strongly it is held there: the bare log-odds; and mean and precision of what
# was fitted on the 200 validation documents of each of six sets (benchmarks/studies/starts.py).
TYPICAL = np.array([0.7, -0.39, 0.22, 0.81, 0.52, -0.36, -2.89])
BASES = ((OWN, np.full(7, 3.0)), (TYPICAL, np.array([10.0, 10.0, 2.44, 0.2, 1.55, 3.55, 1.18])))
BIASES = (5.0, 1.0, 0.3)  # strengths of b alone, the strongest first,
WEIGHTS = tuple((s, max(0.5, s / 30)) for s in (30.0, 10.0, 3.0, 1.0, 0.3))  # and of w and b. These and the scales were
# chosen by the likelihood of validation documents of six sets (benchmarks/studies/few_documents.py --within).
KINDS = 3  # of read-outs: what labels share, biases, weights
HOPELESS = 15.0  # a read-out this much less likely than the best, on the first fold alone, is not fitted on the others
LEAST_DOCUMENTS = 2  # to leave one out
FOLDS, SEED = 5, 13
STEPS = 60
TINY = 1e-9
ARRAYS = ("labels", "centre", "level", "shared", "weights", "mutual", "biases", "shares")


@dataclass(frozen=True, eq=False)
class Readout:
    """A fitted read-out of m labels.

    labels   [m, d] unit vectors of the label texts
    centre   [d] the mean embedding, `level` [m] the mean log-odds, and `cosine` the mean cosine of the documents
    shared   [7]: a, c, d, e, h, k and f
    weights  [d, m] of the embedding, `mutual` [m, m] of the log-odds of labels (rows) for labels (columns)
    biases   [m]
    shares   [3] how much of the average is what labels share (or the zero-shot answer), has biases, has weights
    """

    labels: FloatArray
    centre: FloatArray
    level: FloatArray
    cosine: float
    shared: FloatArray
    weights: FloatArray
    mutual: FloatArray
    biases: FloatArray
    shares: FloatArray

    def log_odds(self, scores: FloatArray, vectors: FloatArray) -> FloatArray:
        """z [n, m] from log-odds [n, m] and unit vectors [n, d]; a label that was not asked stays -inf."""
        return self.answer(scores, vectors, shared_inputs(scores, vectors @ self.labels.T))

    def answer(self, scores: FloatArray, vectors: FloatArray, shared: FloatArray) -> FloatArray:
        """The same, with the inputs [n, m, 7] that labels share at hand."""
        common = (shared - self.cosine * COSINE) @ self.shared
        own = _inputs(vectors, scores, self.centre, self.level) @ np.vstack([self.weights, self.mutual]) + self.biases
        return np.where(np.isfinite(scores), common + own, -np.inf)

    def plain(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """As JSON values, and arrays by name."""
        return {"cosine": self.cosine}, {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def restore(cls, plain: Mapping[str, Any], arrays: Mapping[str, FloatArray], n_labels: int) -> "Readout":
        """What `plain` gave."""
        if missing := [name for name in ARRAYS if name not in arrays]:
            raise SetScoreError(f"the read-out is damaged: it lacks {', '.join(missing)}.")
        made = cls(**{name: arrays[name] for name in ARRAYS}, cosine=float(plain["cosine"]))
        d, m = made.centre.size, n_labels
        shapes = [(m, d), (d,), (m,), OWN.shape, (d, m), (m, m), (m,), (KINDS,)]
        if any(getattr(made, name).shape != shape for name, shape in zip(ARRAYS, shapes, strict=True)):
            raise SetScoreError(f"the read-out is damaged: its arrays do not fit {n_labels} labels.")
        if not all(np.isfinite(arrays[name]).all() for name in ARRAYS) or not np.isfinite(made.cosine):
            raise SetScoreError("the read-out is damaged: it holds numbers that are not finite.")
        return made

    def relabelled(self, places: IntArray, labels: FloatArray) -> "Readout":
        """For other labels, whose `places` [m'] among the old ones are -1 where they are new, and their texts' vectors.

        A label that is known keeps what it learned; a new one has what all labels share, and nothing of its own.
        """
        old = places >= 0
        scale = np.sqrt(len(places) / len(self.biases))  # the inputs are divided by the square root of their number
        return replace(
            self,
            labels=labels,
            level=np.where(old, self.level[places], self.level.mean()),
            weights=np.where(old, self.weights[:, places], 0.0),
            mutual=np.where(old[:, None] & old, scale * self.mutual[np.ix_(places, places)], 0.0),
            biases=np.where(old, self.biases[places], 0.0),
        )


def zero_shot(temperature: float, competition: float, handicap: float) -> FloatArray:
    """The shared numbers of the answer before any label: (u + competition (alone - handicap beside)) / temperature."""
    return np.array([1.0, 0.0, 0.0, 0.0, competition, -competition * handicap, 0.0]) / temperature


@dataclass(frozen=True, eq=False)
class Learned:
    """What `fit` gives.

    readout  None where there was nothing to learn from
    unseen   [n, m] log-odds to fit a calibration on, of read-outs that have not seen the document: in its own eyes a
             fit looks better than it is
    doubt    log-odds that the read-out gives where the zero-shot answer is in doubt
    """

    readout: Readout | None
    unseen: FloatArray
    doubt: float = 0.0


def fit(
    scores: FloatArray, vectors: FloatArray, labels: FloatArray, gold: BoolArray, start: FloatArray = OWN
) -> Learned:
    """A read-out of labelled documents.

    scores [n, m] may be -inf where a label was not asked; vectors [n, d] and label vectors [m, d] are of length 1;
    `start` are the shared numbers of the zero-shot answer.
    """
    if len(gold) < LEAST_DOCUMENTS or not np.isfinite(scores).any():
        return Learned(None, scores)
    fold = np.random.default_rng(SEED).permutation(len(gold)) % min(FOLDS, len(gold))
    held_out = [fold == number for number in range(fold.max() + 1)]
    inputs = [scores, vectors, shared_inputs(scores, vectors @ labels.T)]

    def part_of(rows: BoolArray) -> _Slice:
        return _Slice.of(scores[rows], vectors[rows], inputs[2][rows], labels, gold[rows], start)

    folds, everything = [part_of(~inside) for inside in held_out], part_of(np.ones(len(gold), dtype=np.bool_))

    def unseen(paths: list[list[Readout]]) -> list[FloatArray]:
        found = [np.empty(scores.shape) for _ in paths[0]]
        for inside, path in zip(held_out, paths, strict=True):
            asked = [part[inside] for part in inputs]
            for there, one in zip(found, path, strict=True):
                there[inside] = one.answer(*asked)
        return found

    simple, path = [_simple(part) for part in folds], _simple(everything)
    log_odds = unseen(simple)
    bases = _bases(_shares([_log_likelihood(one, gold) for one in log_odds]))
    first = _weighted(folds[0], _base(simple[0], bases), WEIGHTS)
    there, right = [part[held_out[0]] for part in inputs], gold[held_out[0]]
    likely = np.array([_log_likelihood(one.answer(*there), right) for one in first])
    kept = [one for one, value in zip(WEIGHTS, likely, strict=True) if value >= likely.max() - HOPELESS]
    others = [_weighted(part, _base(one, bases), kept) for part, one in zip(folds[1:], simple[1:], strict=True)]
    log_odds += unseen([[one for one, strength in zip(first, WEIGHTS, strict=True) if strength in kept], *others])
    path += _weighted(everything, _base(path, bases), kept)
    shares, asked = _shares([_log_likelihood(one, gold) for one in log_odds]), np.isfinite(scores)
    mixed = sum(share * np.where(asked, one, 0.0) for share, one in zip(shares, log_odds, strict=True))
    found, unseen_ = _average(path, shares), np.where(asked, mixed, -np.inf)
    return Learned(found, unseen_, _doubt(found, unseen_[asked], inputs[2][asked], start))


@dataclass(frozen=True, eq=False)
class _Slice:
    """Labelled documents, ready to be fitted on.

    nothing      the read-out that is the zero-shot answer
    gold, asked  [n, m]
    shared       [n, m, 7] the inputs of the numbers that labels share
    basis        [r, d + m] and coordinates [n, r] in it of what each label weighs for itself
    """

    nothing: Readout
    gold: BoolArray
    asked: BoolArray
    shared: FloatArray
    basis: FloatArray
    coordinates: FloatArray

    @classmethod
    def of(  # noqa: PLR0917
        cls,
        scores: FloatArray,
        vectors: FloatArray,
        shared: FloatArray,
        labels: FloatArray,
        gold: BoolArray,
        start: FloatArray,
    ) -> "_Slice":
        asked, cosine = np.isfinite(scores), float(shared[..., 3].mean()) / COSINE_SCALE
        level = np.where(asked, scores, 0.0).sum(axis=0) / np.maximum(asked.sum(axis=0), 1)
        centre, (d, m) = vectors.mean(axis=0), (vectors.shape[1], gold.shape[1])
        own = np.zeros((d, m)), np.zeros((m, m)), np.zeros(m)
        nothing = Readout(labels, centre, level, cosine, start, *own, np.zeros(KINDS))
        basis, coordinates = _coordinates(_inputs(vectors, scores, centre, level))
        return cls(nothing, gold, asked, shared - cosine * COSINE, basis, coordinates)


def _simple(part: _Slice) -> list[Readout]:
    """The zero-shot answer; for each of BASES what labels share, and that with biases, the strongest held first."""
    found, inputs = [part.nothing], part.shared[part.asked][:, :-1]
    for centre, precision in BASES:
        numbers = fit_logistic(inputs, part.gold[part.asked], Prior(centre, precision))
        base = replace(part.nothing, shared=numbers)
        start, none = np.zeros((len(part.basis) + 1, part.gold.shape[1])), np.full(len(part.basis), np.inf)
        found.append(base)
        for strength in BIASES:
            start = _fit_each(part, numbers, np.append(none, strength), start)
            found.append(replace(base, biases=start[-1]))
    return found


def _weighted(part: _Slice, numbers: FloatArray, strengths: Sequence[tuple[float, float]]) -> list[Readout]:
    """On top of the shared `numbers`: weights and biases of each label, the strongest held first."""
    d, found = part.nothing.centre.size, []
    start = np.zeros((len(part.basis) + 1, part.gold.shape[1]))
    for strength, of_bias in strengths:
        start = _fit_each(part, numbers, np.append(np.full(len(part.basis), strength), of_bias), start)
        own = part.basis.T @ start[:-1]
        found.append(replace(part.nothing, shared=numbers, weights=own[:d], mutual=own[d:], biases=start[-1]))
    return found


def _bases(shares: FloatArray) -> FloatArray:
    """How much each of BASES counts among the simple read-outs; as much as the other where neither does."""
    found = shares[1:].reshape(len(BASES), -1).sum(axis=1)
    return np.asarray(found / found.sum()) if found.sum() > 0 else np.full(len(BASES), 1 / len(BASES))


def _base(simple: list[Readout], bases: FloatArray) -> FloatArray:
    """The shared numbers of the simple read-outs from both starts, averaged."""
    return np.asarray(bases @ np.stack([one.shared for one in simple[1 :: len(BIASES) + 1]]))


def _shares(likelihoods: list[float]) -> FloatArray:
    """How much each counts. Before any document the zero-shot answer, each start and weights are as likely."""
    family = np.minimum((np.arange(len(likelihoods)) + len(BIASES)) // (len(BIASES) + 1), len(BASES) + 1)
    found = np.exp(np.array(likelihoods) - max(likelihoods)) / np.bincount(family)[family]
    return np.asarray(found / found.sum())


def _average(path: list[Readout], shares: FloatArray) -> Readout:
    """One read-out: what is fitted of each counts by its share."""

    def mean(name: str) -> FloatArray:
        return np.asarray(np.tensordot(shares, np.stack([getattr(one, name) for one in path]), axes=1))

    shared, weights, mutual, biases = (mean(name) for name in ("shared", "weights", "mutual", "biases"))
    each = [0] + [0, *(1 for _ in BIASES)] * len(BASES)
    kinds = np.asarray(np.bincount(each + [2] * (len(path) - len(each)), shares, KINDS), dtype=np.float64)
    return replace(path[0], shared=shared, weights=weights, mutual=mutual, biases=biases, shares=kinds)


def _fit_each(part: _Slice, numbers: FloatArray, held: FloatArray, start: FloatArray) -> FloatArray:
    """Weights and, last, biases [r + 1, m] of a logistic regression for each label, all at once, from `start` on.

    The shared `numbers` stay; `held` [r + 1] are the precisions, and what is held infinitely stays as it is.
    """
    from scipy.optimize import minimize  # here: who only classifies need not wait for it

    gold, asked, offset = part.gold, part.asked, part.shared @ numbers
    free = np.isfinite(held)
    x = np.column_stack([part.coordinates, np.ones(len(gold))])[:, free]
    counted, strengths, shape = asked.astype(np.float64), held[free][:, None], start[free].shape

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(shape)
        z = x @ theta + offset
        surprise = counted * (np.logaddexp(0, z) - gold * z)
        slope = x.T @ (counted * (expit(z) - gold)) + strengths * theta
        return float(surprise.sum() + (strengths * theta**2).sum() / 2), slope.ravel()

    solved = minimize(loss, start[free].ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    found = start.copy()
    found[free] = np.asarray(solved.x).reshape(shape)
    return found


def _doubt(found: Readout, learned: FloatArray, shared: FloatArray, start: FloatArray) -> float:
    """The learned log-odds of pairs moved to where the zero-shot answer is in doubt; pairs near to it count most."""
    answer = shared @ start
    probabilities = expit(answer)
    moved = learned - found.shared[0] / start[0] * answer  # by as much as their own log-odds are too high
    return float(np.average(moved, weights=probabilities * (1 - probabilities) + TINY))


def _coordinates(inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """An orthonormal basis [r, p] of the documents' inputs [n, p] and their coordinates in it [n, r]: r at most n."""
    if len(inputs) >= inputs.shape[1]:
        return np.eye(inputs.shape[1]), inputs
    left, sizes, right = np.linalg.svd(inputs, full_matrices=False)
    return right, left * sizes


def _inputs(vectors: FloatArray, scores: FloatArray, centre: FloatArray, level: FloatArray) -> FloatArray:
    """What each label weighs for itself [n, d + m]; a label that was not asked says nothing."""
    others = np.where(np.isfinite(scores), np.clip(scores - level, -FAR, FAR), 0.0)
    return np.hstack([EMBEDDING_SCALE * (vectors - centre), MUTUAL_SCALE / np.sqrt(scores.shape[1]) * others])


def shared_inputs(scores: FloatArray, cosines: FloatArray) -> FloatArray:
    """What all labels share [n, m, 7]: own log-odds, the document's mean and maximum, cosine, alone, beside, 1."""
    asked = np.isfinite(scores)
    count = np.maximum(asked.sum(axis=1, keepdims=True), 1)
    own = np.where(asked, scores, 0.0)
    mean = own.sum(axis=1, keepdims=True) / count
    highest = np.where(asked.any(axis=1, keepdims=True), scores.max(axis=1, keepdims=True), 0.0)
    parts = (own, mean, highest, COSINE_SCALE * cosines, *standing(scores), np.ones(1))
    return np.stack([np.broadcast_to(part, scores.shape) for part in parts], axis=-1)


def _log_likelihood(log_odds: FloatArray, gold: BoolArray) -> float:
    """Of all gold labels, yes and no, that were asked about."""
    asked = np.isfinite(log_odds)
    return -float(np.logaddexp(0, np.where(gold, -log_odds, log_odds)[asked]).sum())
