"""Ensembles: convex mixtures of log-odds, their weights from a grid by cross-validated likelihood on the slice.

    u(x) = sum_k w_k (a_k u_k(x) + b_k),    w_k >= 0,  sum_k w_k = 1

a_k and b_k bring members to one scale (a cosine is no log-odds) and come from a logistic regression on the slice. The
grid is the simplex in quarters: every member alone, every mixture whose weights are quarters, and so both blends that
the paper prints. A member alone is a grid point, so what is chosen is never below it in the score that is compared. The
classifier's own blend keeps its model alone in doubt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import logit

from setscore.encoders import EMBEDDED, ENCODER, Encode, load_encoder, unit
from setscore.errors import SetScoreError, counted, unknown_name
from setscore.logistic import fit_logistic
from setscore.records import BoolArray, FloatArray, LabelSet

STEPS = 4  # the grid's quarters
FOLDS, SEED = 5, 13
DOUBT = 1.0  # standard errors; no worse than 0, 2 or 3 inside the validation slices, with 25 documents or more
RATE_NOT_ASKED = 1e-3  # the probability of a label that was not asked, where likelihoods are compared
LEAST_SLOPE = 1e-3  # a member that points the wrong way on the slice is muted, never turned round
# What the classifier mixes its model with: a cosine, of which encoder. The second needs no extra.
BLENDS = {"cosine": ENCODER, "own-cosine": EMBEDDED}
# Before `fit`: slope and bias that put a cosine roughly on the scale of log-odds, set by hand, and how much it counts.
COSINE_SCALE = (12.0, -4.5)
COSINE_SHARE = 0.25  # held against validation slices with the embedded model: recipes/LOG.md

Members = dict[str, FloatArray]  # log-odds or cosines [n_documents, n_labels] by name


@dataclass(frozen=True)
class Ensemble:
    """names, weights, and each member's scale (a_k, b_k).

    `validation` is the cross-validated log-likelihood a question of the choice, `tried` the grid points it was chosen
    from.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    scales: tuple[tuple[float, float], ...]
    validation: float | None = None
    tried: int = 0

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.weights) == len(self.scales) > 0:
            raise SetScoreError(
                f"{len(self.names)} members have {len(self.weights)} weights and {len(self.scales)} scales."
            )
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise SetScoreError(f"weights are 0 or more and sum to 1, got {self.weights}.")

    @classmethod
    def of(cls, source: "Ensemble | Mapping[str, Any]") -> "Ensemble":
        """From an ensemble, or its fields as JSON gave them back."""
        if isinstance(source, Ensemble):
            return source
        scales = tuple((float(a), float(b)) for a, b in source["scales"])
        return cls(**{**source, "names": tuple(source["names"]), "weights": tuple(source["weights"]), "scales": scales})

    def mix(self, members: Mapping[str, FloatArray]) -> FloatArray:
        """Log-odds of the mixture; one member alone is returned as it is. -inf where a member was not asked."""
        check_same(members)
        if absent := [name for name in self.names if name not in members]:
            raise SetScoreError(unknown_name("member", absent[0], members))
        used = [part for part in zip(self.names, self.weights, self.scales, strict=True) if part[1] > 0]
        if len(used) == 1:
            return members[used[0][0]]
        return np.asarray(np.sum([weight * (a * members[name] + b) for name, weight, (a, b) in used], axis=0))

    def sentence(self) -> str:
        """1/4 a + 3/4 b"""
        used = [(weight, name) for name, weight in zip(self.names, self.weights, strict=True) if weight > 0]
        return " + ".join(f"{weight:g} {name}" for weight, name in used)


def fit(
    members: Mapping[str, FloatArray], gold: BoolArray, steps: int = STEPS, in_doubt: str | None = None
) -> Ensemble:
    """Weights with the highest cross-validated likelihood; of equals the one with fewest members.

    Scales are fitted on four fifths and judge the last, in turn. A few hundred documents tell weights apart by their
    likelihood; F1 at a threshold jumps too much, and another draw of the slice would choose others. `in_doubt` names
    a member that stays alone unless the best mixture is likelier by more than DOUBT standard errors over documents.
    """
    check_same(members, gold)
    names, folds = tuple(members), _folds(len(gold))
    parts = [(folds != fold, folds == fold) for fold in np.unique(folds)]
    if len(parts) == 1:  # one document: nothing to cross-validate
        parts = [(parts[0][1], parts[0][1])]
    scales = [[_scale(members[name][rest], gold[rest]) for name in names] for rest, _ in parts]
    found: dict[tuple[float, ...], FloatArray] = {}
    for weights in simplex(len(names), steps):
        each = np.zeros(len(gold))
        for (rest, held), scale in zip(parts, scales, strict=True):
            mixed = Ensemble(names, weights, tuple(scale)).mix(members)
            each[held] = _likelihoods(mixed[rest], gold[rest], mixed[held], gold[held])
        found[weights] = each
    chosen = max(found, key=lambda weights: (found[weights].sum(), -sum(weight > 0 for weight in weights)))
    if in_doubt is not None:
        alone = tuple(float(name == in_doubt) for name in names)
        gain = found[chosen] - found[alone]
        if gain.mean() <= DOUBT * gain.std() / np.sqrt(len(gain)):
            chosen = alone
    whole = tuple(_scale(members[name], gold) for name in names)
    return Ensemble(names, chosen, whole, float(found[chosen].sum()) / gold.size, len(found))


def oracle(members: Mapping[str, FloatArray], gold: BoolArray, steps: int = STEPS) -> tuple[Ensemble, float]:
    """The mixture and threshold with the highest micro-F1 on the very documents they are measured on: no result.

    It says how much the members complement each other, as the paper's blends do.
    """
    check_same(members, gold)
    scales = tuple(_scale(member, gold) for member in members.values())
    best, reached = None, -1.0
    for weights in simplex(len(members), steps):
        ensemble = Ensemble(tuple(members), weights, scales)
        mixed = ensemble.mix(members)
        if (f1 := _f1(gold, np.isfinite(mixed) & (mixed >= best_cut(mixed, gold)))) > reached:
            best, reached = ensemble, f1
    assert best is not None  # the grid has the singletons
    return best, reached


def simplex(members: int, steps: int = STEPS) -> list[tuple[float, ...]]:
    """All weights in multiples of 1 / steps that sum to one; for three members and quarters 15."""
    whole = [part for part in product(range(steps + 1), repeat=members) if sum(part) == steps]
    return [tuple(number / steps for number in part) for part in whole]


def check_same(members: Mapping[str, FloatArray], gold: BoolArray | None = None) -> None:
    """Members score the same documents and labels; other shapes are refused with both counts."""
    if not members:
        raise SetScoreError("an ensemble has at least one member.")
    shapes = {name: member.shape for name, member in members.items()} | ({} if gold is None else {"gold": gold.shape})
    first, (documents, labels) = next(iter(shapes.items()))
    for name, shape in shapes.items():
        if shape != (documents, labels):
            raise SetScoreError(
                f"{first} has scores of {counted(documents, 'document')} and {counted(labels, 'label')}, {name} of"
                f" {counted(shape[0], 'document')} and {counted(shape[1], 'label')}. An ensemble's members score the"
                " same documents and labels."
            )


def blend_of(source: Any) -> Ensemble | None:
    """The classifier's option `blend`: None, a name of BLENDS, or an ensemble of "model" and one of those."""
    if source is None:
        return None
    if isinstance(source, str):
        if source not in BLENDS:
            raise SetScoreError(unknown_name("blend", source, BLENDS))
        return Ensemble(("model", source), (1 - COSINE_SHARE, COSINE_SHARE), ((1.0, 0.0), COSINE_SCALE))
    made = Ensemble.of(source)
    if sorted(made.names) not in [sorted(("model", name)) for name in BLENDS]:
        raise SetScoreError(f"a blend mixes 'model' with one of {', '.join(BLENDS)}; got {', '.join(made.names)}.")
    return made


def members_of(blend: Ensemble | None, log_odds: FloatArray, texts: Sequence[str], labels: LabelSet) -> Members:
    """The model's log-odds as "model" and, where there is a blend, the cosine that it mixes in (see BLENDS)."""
    if blend is None:
        return {"model": log_odds}
    name = next(name for name in blend.names if name in BLENDS)
    encode = load_encoder(BLENDS[name], purpose=f"blend={name!r}")
    return {"model": log_odds, name: cosines(texts, labels, encode)}


def cosines(texts: Sequence[str], labels: LabelSet, encode: Encode) -> FloatArray:
    """The cosine between document and label text [n_documents, n_labels]; an encoder reads the first 256 tokens."""
    return np.asarray(unit(encode(texts)).astype(np.float64) @ unit(encode(labels.texts)).astype(np.float64).T)


def best_cut(scores: FloatArray, gold: BoolArray) -> float:
    """The log-odds from which predicting has the highest micro-F1; halfway to the next, against rounding."""
    asked = np.isfinite(scores)
    values, right = scores[asked], gold[asked]
    if not right.any():
        return np.inf
    order = np.argsort(-values, kind="stable")
    ranked, hits = values[order], np.cumsum(right[order])
    last_of_ties = np.append(ranked[1:] != ranked[:-1], True)
    f1 = np.where(last_of_ties, 2 * hits / (np.arange(1, len(ranked) + 1) + gold.sum()), -1.0)
    best = int(np.argmax(f1))
    return float(ranked[best] if best + 1 == len(ranked) else (ranked[best] + ranked[best + 1]) / 2)


def _scale(log_odds: FloatArray, gold: BoolArray) -> tuple[float, float]:
    """Slope and bias that make a member's scores log-odds of the gold answers."""
    asked = np.isfinite(log_odds)
    values, right = log_odds[asked], gold[asked]
    if not right.any() or right.all() or np.ptp(values) == 0:
        return 1.0, 0.0
    spread = float(values.std())
    slope, bias = fit_logistic(((values - values.mean()) / spread).reshape(-1, 1), right)
    slope = max(float(slope), LEAST_SLOPE)
    return slope / spread, float(bias) - slope * float(values.mean()) / spread


def _likelihoods(fitted: FloatArray, known: BoolArray, held: FloatArray, gold: BoolArray) -> FloatArray:
    """Log-likelihood of each document's `gold` given `held`: a logistic regression on log-odds and the labels' rates.

    Without the rates a member would be preferred for knowing which labels are frequent, which the calibration that
    follows learns anyway.
    """
    rates = logit((known.sum(axis=0) + 0.5) / (len(known) + 1))
    seen, asked = np.isfinite(fitted), np.isfinite(held)
    missed = np.log(RATE_NOT_ASKED) * (gold & ~asked).sum(axis=1)
    if not known[seen].any() or known[seen].all() or np.ptp(fitted[seen]) == 0 or not asked.any():
        return np.asarray(missed - np.where(asked, np.logaddexp(0, np.where(gold, -held, held)), 0).sum(axis=1))
    spread = float(fitted[seen].std())

    def features(scores: FloatArray, which: BoolArray) -> FloatArray:
        return np.stack([scores[which] / spread, np.broadcast_to(rates, scores.shape)[which]], axis=1)

    *slopes, bias = fit_logistic(features(fitted, seen), known[seen])
    surprise = np.zeros(held.shape)
    z = features(held, asked) @ np.array(slopes) + bias
    surprise[asked] = np.logaddexp(0, np.where(gold[asked], -z, z))
    return np.asarray(missed - surprise.sum(axis=1))


def _folds(documents: int) -> Any:
    return np.random.default_rng(SEED).permutation(documents) % min(FOLDS, documents)


def _f1(gold: BoolArray, decided: BoolArray) -> float:
    total = int(gold.sum() + decided.sum())
    return 2 * int((gold & decided).sum()) / total if total else 0.0
