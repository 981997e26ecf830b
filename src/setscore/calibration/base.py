"""What every calibration shares: log-odds in, probabilities and decisions out, a state that is JSON."""

import copy
import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from setscore.calibration.thresholds import OBJECTIVES, TINY, best_thresholds
from setscore.errors import SetScoreError, unknown_name
from setscore.estimators import Transformer
from setscore.records import BoolArray, FloatArray, IntArray

FOLDS = 5
SEED = 13


class Calibration(Transformer, ABC):
    """Log-odds u [n_documents, n_labels] to probabilities p = sigmoid(logit(u)) and decisions p >= tau.

    Abstract: a subclass says how logits are fitted (`_fit_logits`) and computed (`_logits`). Log-odds of -inf mean that
    a label was not asked: probability 0, never predicted, and left out of the fit.

    objective    what the thresholds maximise on the labelled slice: "micro_f1", "macro_f1", "balanced" (the mean of
                 both), "sample_f1", or "cost"
    cost         for "cost": what a false positive and a false negative cost; tau = c_fp / (c_fp + c_fn), the Bayes rule
                 of the threshold-matched weighted Hamming loss (Section 4.2)
    least, most  a floor and a cap on labels per document: the likeliest are taken, the least likely dropped
    margin       abstention: a pair whose probability lies nearer than this to its threshold is `undecided`; 0 for none

    Fitted: `thresholds_` [n_labels] as probabilities, `choice_` a sentence on what was chosen and why, `fingerprint_`
    of the documents it was fitted on, whatever their order.
    """

    name: ClassVar[str]
    fitted: ClassVar[tuple[str, ...]] = ()  # what `fit` sets beside the thresholds, as a saved state has it

    def __init__(
        self,
        *,
        objective: str = "micro_f1",
        cost: tuple[float, float] = (1.0, 1.0),
        least: int = 0,
        most: int | None = None,
        margin: float = 0.0,
    ) -> None:
        self.objective = objective
        self.cost = cost
        self.least = least
        self.most = most
        self.margin = margin

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> Self:
        """Fits on log-odds `X` and the gold indicator `y`, both [n_documents, n_labels]."""
        log_odds = self._check(X, reset=True)
        gold = indicator(y, log_odds.shape)
        self.fingerprint_ = fingerprint(log_odds, gold)
        return self._fit(log_odds, gold)

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Probabilities [n_documents, n_labels]."""
        self._check_fitted()
        return self._probabilities(self._check(X, reset=False))

    def logits(self, X: npt.ArrayLike) -> FloatArray:
        """Calibrated log-odds [n_documents, n_labels]; -inf where nothing was asked."""
        probabilities = self.transform(X)
        return np.where(np.isneginf(np.asarray(X)), -np.inf, logit(np.clip(probabilities, TINY, 1 - TINY)))

    def predict(self, X: npt.ArrayLike) -> BoolArray:
        """Decisions [n_documents, n_labels]."""
        return self.decide(X)[1]

    def decide(self, X: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
        """Probabilities and decisions [n_documents, n_labels], of one pass."""
        self._check_fitted()
        log_odds = self._check(X, reset=False)
        asked, probabilities = np.isfinite(log_odds), self._probabilities(log_odds)
        decisions = asked & (probabilities >= self.thresholds_)
        if self.least > 0 or self.most is not None:
            decisions = _bounded(decisions, probabilities, asked, self.least, self.most)
        return probabilities, decisions

    def undecided(self, X: npt.ArrayLike, margin: float | None = None) -> BoolArray:
        """Where the probability lies within a margin of the threshold: for a person to look at. None takes `margin`."""
        self._check_fitted()
        log_odds, wanted = self._check(X, reset=False), self.margin if margin is None else margin
        return np.isfinite(log_odds) & (np.abs(self._probabilities(log_odds) - self.thresholds_) < wanted)

    def with_threshold(self, threshold: float) -> Self:
        """A copy that cuts every label at `threshold`: higher for more precision, lower for more recall."""
        self._check_fitted()
        if not 0 <= threshold <= 1:
            raise SetScoreError(f"a threshold lies between 0 and 1, got {threshold}.")
        other = copy.copy(self)
        other.thresholds_ = np.full(self.n_features_in_, float(threshold))
        other.choice_ = f"{self.choice_}; threshold {threshold:g} by hand"
        return other

    def label_by_label(self) -> "Calibration":
        """The nearest calibration whose decision on a label looks at that label's log-odds alone."""
        return self

    def fitted_on(self, X: npt.ArrayLike, y: npt.ArrayLike) -> bool:
        """Whether these very documents were fitted on, in any order, so that measuring on them would flatter."""
        return self._fingerprint_of(X, y) == getattr(self, "fingerprint_", None)

    def seen(self, X: npt.ArrayLike, y: npt.ArrayLike) -> int:
        """How many of these documents have the log-odds and gold labels of one that was fitted on."""
        found = Counter(self._fingerprint_of(X, y).split())
        return (found & Counter(getattr(self, "fingerprint_", "").split())).total()

    def state(self) -> dict[str, Any]:
        """Options and everything fitted, as JSON values."""
        self._check_fitted()
        fitted = {key: value for key, value in vars(self).items() if key.endswith("_") and not key.endswith("_in_")}
        return {"name": self.name, "options": self.get_params(deep=False), "fitted": _plain(fitted)}

    @classmethod
    def restore(cls, state: dict[str, Any], n_labels: int) -> Self:
        """The calibration that `state` describes."""
        calibration, fitted = cls(**options_from(state["options"])), state["fitted"]
        calibration.check_options()
        for key, value in fitted.items():
            setattr(calibration, key, _from_plain(value))
        calibration.n_features_in_ = n_labels
        thresholds = np.asarray(fitted["thresholds_"], dtype=np.float64)
        if thresholds.shape != (n_labels,) or not ((thresholds >= 0) & (thresholds <= 1)).all():
            raise SetScoreError(f"{n_labels} thresholds in [0, 1] are needed, got {fitted['thresholds_']}.")
        if not fitted.get("temperature_", 1.0) > 0:
            raise SetScoreError(f"a temperature above 0 is needed, got {fitted['temperature_']}.")
        return calibration

    # What subclasses say

    @abstractmethod
    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:
        """Fits whatever `_logits` needs and returns a sentence for `choice_`. `fold` [n] is for cross-validation."""

    @abstractmethod
    def _logits(self, log_odds: FloatArray) -> FloatArray:
        """Calibrated log-odds, of the same shape; what was not asked comes as 0."""

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:
        return best_thresholds(self._probabilities(log_odds), gold, np.isfinite(log_odds), self.objective, self.cost)

    # Shared parts

    def _fit(self, log_odds: FloatArray, gold: BoolArray) -> Self:
        self.check_options()
        self.choice_ = self._fit_logits(log_odds, gold, assign_folds(len(log_odds)))
        self.thresholds_ = self._fit_thresholds(log_odds, gold)
        return self

    def _probabilities(self, log_odds: FloatArray) -> FloatArray:
        asked = np.isfinite(log_odds)
        logits = self._logits(np.where(asked, log_odds, 0.0))
        return np.where(asked, expit(logits), 0.0)

    def _check(self, X: npt.ArrayLike, *, reset: bool) -> FloatArray:
        """The log-odds as a matrix; nothing can be fitted on no documents, but none can be asked about."""
        ours = (
            isinstance(X, np.ndarray) and X.dtype == np.float64 and not reset and not hasattr(self, "feature_names_in_")
        )
        log_odds = np.asarray(X) if ours else self.matrix(X, reset=reset)
        if log_odds.shape[1:] != (self.n_features_in_,):
            log_odds = self.matrix(X, reset=reset)  # which says what is wrong
        if np.isnan(log_odds).any() or np.isposinf(log_odds).any():
            raise ValueError("log-odds hold NaN or inf; only -inf (not asked) is allowed.")
        return log_odds

    def _check_fitted(self) -> None:
        if not hasattr(self, "thresholds_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")

    def _fingerprint_of(self, X: npt.ArrayLike, y: npt.ArrayLike) -> str:
        self._check_fitted()
        log_odds = self._check(X, reset=False)
        return fingerprint(log_odds, indicator(y, log_odds.shape))

    def check_options(self) -> None:
        """An option out of its range is an error here; `fit` asks first of all."""
        check_objective(self.objective)
        if len(self.cost) != 2 or not all(0 < cost < np.inf for cost in self.cost):
            raise SetScoreError(f"cost is (false positive, false negative), both above 0, got {self.cost}.")
        if self.objective != "cost" and self.cost[0] != self.cost[1]:
            raise SetScoreError(f"cost is for the objective 'cost'; got {self.cost} with {self.objective!r}.")
        if self.least < 0 or (self.most is not None and self.most < max(1, self.least)):
            raise SetScoreError(f"0 <= least <= most and most >= 1 are needed, got {self.least} and {self.most}.")
        if not 0 <= self.margin <= 1:
            raise SetScoreError(f"margin lies between 0 and 1, got {self.margin}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def check_objective(objective: str) -> None:
    """An error for an objective that there is none of."""
    if objective not in OBJECTIVES:
        raise SetScoreError(unknown_name("objective", objective, OBJECTIVES))


def assign_folds(documents: int) -> IntArray:
    """The fold of each document for cross-validation inside a slice: seeded, equal in size."""
    return np.random.default_rng(SEED).permutation(documents) % min(FOLDS, documents)


def fingerprint(log_odds: FloatArray, gold: BoolArray) -> str:
    """Of a labelled slice: 12 hexadecimal digits of the SHA-256 of each document, sorted, so no order matters."""
    rows = zip(log_odds + 0.0, np.packbits(gold, axis=1), strict=True)  # + 0.0 makes -0.0 and 0.0 the same
    return " ".join(sorted(hashlib.sha256(u.tobytes() + y.tobytes()).hexdigest()[:12] for u, y in rows))


def indicator(y: npt.ArrayLike | None, shape: tuple[int, ...]) -> BoolArray:
    """Gold labels as a boolean matrix of the same shape as the log-odds, or an error that names both shapes."""
    if y is None:
        raise ValueError("calibration requires y to be passed, but the target y is None.")
    gold = np.asarray(y)
    if gold.ndim == 1 and shape[1] == 1:
        gold = gold[:, None]
    if gold.shape != shape:
        raise ValueError(f"gold must be an indicator of shape {shape} like the log-odds, got shape {gold.shape}.")
    if gold.dtype != np.bool_:
        from sklearn.utils.multiclass import type_of_target

        if type_of_target(gold) not in ("binary", "multilabel-indicator") or not np.isin(gold, (0, 1)).all():
            raise ValueError("gold must hold only 0 and 1.")
    return gold.astype(np.bool_)


def options_from(values: dict[str, Any]) -> dict[str, Any]:
    """Options as they were before JSON made lists of tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def _bounded(
    decisions: BoolArray, probabilities: FloatArray, asked: BoolArray, least: int, most: int | None
) -> BoolArray:
    """At least `least` and at most `most` labels for each document, of those that were asked."""
    likelihood = np.where(asked, probabilities, -1.0)
    rank = np.argsort(np.argsort(-likelihood, axis=1, kind="stable"), axis=1, kind="stable")
    capped = decisions if most is None else decisions & (rank < most)
    return asked & (capped | (rank < least))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return "inf" if value == np.inf else value  # JSON has no infinity


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    return np.inf if value == "inf" else value
