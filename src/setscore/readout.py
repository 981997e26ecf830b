"""What labelled documents teach on top of the scores. The model's weights stay as they are.

    z_i(x) = a s_i(x) + c mean_j s_j(x) + d max_j s_j(x) + e cos(x, i) + f      the same five numbers for all labels
             + w_i . (v(x) - v) + b_i                                           of each label

s are the log-odds that the classifier decides by before `fit`, v(x) is the document's sentence embedding, v its mean
over the slice, and cos(x, i) its cosine with the label's text. All are fitted by logistic regression with priors that
are centred on a = 1 and nothing else: without evidence z *is* the zero-shot answer. What all labels share is fitted
first, so a label with three gold documents borrows from the others; then each label may differ, as far as a common
strength lets it:  w_i ~ N(0, 1 / strength).  Strength, and whether any of it is used, is chosen by the likelihood of
documents that the fit has not seen; in doubt the simpler one is kept.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from setscore.errors import SetScoreError, unknown_name
from setscore.logistic import Prior, fit_logistic
from setscore.records import BoolArray, FloatArray, IntArray

HEADS = ("auto", "none")
OWN = np.array([1.0, 0.0, 0.0, 0.0, 0.0])  # a, c, d, e and f that leave the scores as they are
COSINE_SCALE = 10.0  # brings differences of cosines to the size of log-odds
EMBEDDING_SCALE = 4.0  # and differences of unit vectors
STRENGTHS = (
    (100.0, 30.0),
    (30.0, 10.0),
    (10.0, 5.0),
    (3.0, 3.0),
    (1.0, 1.0),
    (0.3, 1.0),
)  # of w and b, strongest first
DOUBT = 1.0  # standard errors over documents by which a more complex read-out must be likelier
LEAST_DOCUMENTS = 2  # to leave one out
FOLDS, SEED = 5, 13
STEPS = 60


def check_head(head: str) -> str:
    """The classifier's option `head`, or an error that names both values."""
    if head not in HEADS:
        raise SetScoreError(unknown_name("head", head, HEADS))
    return head


@dataclass(frozen=True, eq=False)
class Readout:
    """A fitted read-out.

    labels   [m, d] unit vectors of the label texts
    centre   [d] the mean embedding, and `cosine` the mean cosine of the slice
    shared   [5]: a, c, d, e and f
    weights  [d, m], all 0 where labels do not differ
    biases   [m]
    strength of `weights`; infinite where there are none
    """

    labels: FloatArray
    centre: FloatArray
    cosine: float
    shared: FloatArray
    weights: FloatArray
    biases: FloatArray
    strength: float

    def log_odds(self, scores: FloatArray, vectors: FloatArray) -> FloatArray:
        """z [n, m] from scores [n, m] and unit vectors [n, d]; a label that was not asked stays -inf."""
        asked = np.isfinite(scores)
        own = _inputs(vectors, self.centre) @ self.weights + self.biases
        return np.where(asked, _shared(scores, vectors @ self.labels.T - self.cosine) @ self.shared + own, -np.inf)

    def sentence(self) -> str:
        """What was learned, in words."""
        if np.isinf(self.strength):
            return "a read-out with five numbers that all labels share"
        return f"a read-out with weights for each label, strength {self.strength:g}"

    def plain(self) -> dict[str, Any]:
        """As JSON values: arrays as shapes and bytes of 32-bit floats."""
        arrays = {name: _text(getattr(self, name)) for name in ("labels", "centre", "shared", "weights", "biases")}
        strength = None if np.isinf(self.strength) else self.strength
        return {**arrays, "cosine": self.cosine, "strength": strength}

    @classmethod
    def restore(cls, plain: Mapping[str, Any], n_labels: int) -> "Readout":
        """What `plain` gave."""
        arrays = {name: _array(plain[name]) for name in ("labels", "centre", "shared", "weights", "biases")}
        made = cls(**arrays, cosine=float(plain["cosine"]), strength=float(plain["strength"] or np.inf))
        d = len(made.centre)
        wanted = {"labels": (n_labels, d), "shared": OWN.shape, "weights": (d, n_labels), "biases": (n_labels,)}
        if any(getattr(made, name).shape != shape for name, shape in wanted.items()):
            raise SetScoreError(f"the read-out is damaged: its arrays do not fit {n_labels} labels.")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise SetScoreError("the read-out is damaged: it holds numbers that are not finite.")
        return made


def fit(
    scores: FloatArray, vectors: FloatArray, labels: FloatArray, gold: BoolArray
) -> tuple[Readout | None, FloatArray]:
    """A read-out and the log-odds [n, m] to fit a calibration on; None and `scores` where none is surely likelier.

    Those log-odds are of a read-out that has not seen the document: in its own eyes a fit looks better than it is.
    """
    if len(gold) < LEAST_DOCUMENTS or not gold.any():
        return None, scores
    fold = np.random.default_rng(SEED).permutation(len(gold)) % min(FOLDS, len(gold))
    unseen = _out_of_fold(scores, vectors, labels, gold, fold)
    losses = [_losses(scores, gold), *(_losses(one, gold) for one in unseen)]
    best = 0
    for number in range(1, len(losses)):
        gain = losses[best] - losses[number]
        if gain.mean() > DOUBT * gain.std() / np.sqrt(len(gain)):
            best = number
    if best == 0:
        return None, scores
    return _path(scores, vectors, labels, gold, best)[-1], unseen[best - 1]


def _out_of_fold(
    scores: FloatArray, vectors: FloatArray, labels: FloatArray, gold: BoolArray, fold: IntArray
) -> list[FloatArray]:
    """For each step of the path the log-odds of documents that it was not fitted on."""
    found = [np.empty(scores.shape) for _ in range(len(STRENGTHS) + 1)]
    for number in range(fold.max() + 1):
        inside = fold == number
        path = _path(scores[~inside], vectors[~inside], labels, gold[~inside], len(found))
        for place, readout in zip(found, path, strict=True):
            place[inside] = readout.log_odds(scores[inside], vectors[inside])
    return found


def _path(scores: FloatArray, vectors: FloatArray, labels: FloatArray, gold: BoolArray, steps: int) -> list[Readout]:
    """What labels share alone, then with weights of each label, the strongest held first: the first `steps`."""
    asked, cosines = np.isfinite(scores), vectors @ labels.T
    centre, cosine = vectors.mean(axis=0), float(cosines.mean())
    inputs = _shared(scores, cosines - cosine)
    numbers = fit_logistic(inputs[asked][:, :-1], gold[asked], Prior(OWN, np.ones(len(OWN))))
    weights, biases = np.zeros((vectors.shape[1], gold.shape[1])), np.zeros(gold.shape[1])
    found = [Readout(labels, centre, cosine, numbers, weights, biases, np.inf)]
    start = np.zeros((min(vectors.shape) + 1, gold.shape[1]))
    basis, coordinates = _coordinates(_inputs(vectors, centre))
    for strength, of_bias in STRENGTHS[: steps - 1]:
        start = _fit_each(coordinates, inputs @ numbers, gold, asked, strength, of_bias, start)
        found.append(Readout(labels, centre, cosine, numbers, basis.T @ start[:-1], start[-1], strength))
    return found


def _fit_each(  # noqa: PLR0917
    features: FloatArray,
    offset: FloatArray,
    gold: BoolArray,
    asked: BoolArray,
    strength: float,
    of_bias: float,
    start: FloatArray,
) -> FloatArray:
    """Weights and, last, biases [r + 1, m] of a logistic regression for each label, all at once, from `start` on."""
    x = np.column_stack([features, np.ones(len(features))])
    held = np.append(np.full(features.shape[1], strength), of_bias)[:, None]
    counted = asked.astype(np.float64)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(start.shape)
        z = x @ theta + offset
        surprise = counted * (np.logaddexp(0, z) - gold * z)
        slope = x.T @ (counted * (expit(z) - gold)) + held * theta
        return float(surprise.sum() + (held * theta**2).sum() / 2), slope.ravel()

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x).reshape(start.shape)


def _coordinates(inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """An orthonormal basis [r, d] of the documents' vectors and their coordinates in it [n, r]: r is at most n."""
    if len(inputs) >= inputs.shape[1]:
        return np.eye(inputs.shape[1]), inputs
    left, sizes, right = np.linalg.svd(inputs, full_matrices=False)
    return right, left * sizes


def _inputs(vectors: FloatArray, centre: FloatArray) -> FloatArray:
    return EMBEDDING_SCALE * (vectors - centre)


def _shared(scores: FloatArray, cosines: FloatArray) -> FloatArray:
    """What all labels share [n, m, 5]: own score, mean and maximum of the document, cosine, 1."""
    asked = np.isfinite(scores)
    count = np.maximum(asked.sum(axis=1, keepdims=True), 1)
    own = np.where(asked, scores, 0.0)
    mean = own.sum(axis=1, keepdims=True) / count
    highest = np.where(asked.any(axis=1, keepdims=True), scores.max(axis=1, keepdims=True), 0.0)
    parts = (own, mean, highest, COSINE_SCALE * cosines, np.ones(1))
    return np.stack([np.broadcast_to(part, scores.shape) for part in parts], axis=-1)


def _losses(log_odds: FloatArray, gold: BoolArray) -> FloatArray:
    """The mean surprise of each document's gold labels [n], over the labels that were asked."""
    asked = np.isfinite(log_odds)
    z = np.where(asked, log_odds, 0.0)
    surprise = np.where(asked, np.logaddexp(0, np.where(gold, -z, z)), 0.0)
    return np.asarray(surprise.sum(axis=1) / np.maximum(asked.sum(axis=1), 1))


def _text(values: FloatArray) -> dict[str, Any]:
    return {"shape": list(values.shape), "base64": base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")}


def _array(entry: Mapping[str, Any]) -> FloatArray:
    shape: Sequence[int] = entry["shape"]
    data = base64.b64decode(entry["base64"], validate=True)
    return np.frombuffer(data, dtype="<f4").reshape(shape).astype(np.float64)
