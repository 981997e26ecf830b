"""Chooses a calibration by cross-validation inside the labelled slice, and says what it chose and why."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from setscore.calibration.base import Calibration, fingerprint, indicator
from setscore.calibration.folds import SEED, assign
from setscore.calibration.platt import PlattCalibration
from setscore.calibration.shrunk import ShrunkCalibration
from setscore.calibration.temperature import TemperatureCalibration
from setscore.metrics import Counts, decision_metrics
from setscore.records import BoolArray, FloatArray

# The first is taken unless another is better beyond doubt: 200 documents cannot tell close candidates apart.
CANDIDATES: dict[str, type[Calibration]] = {
    "platt": PlattCalibration,
    "shrunk": ShrunkCalibration,
    "temperature": TemperatureCalibration,
}
ROUNDS = 200  # bootstrap rounds for that doubt


class AutoCalibration(Calibration):
    """Fitted: `chosen_`, the calibration in use; `scores_`, the cross-validated objective of every candidate."""

    name: ClassVar[str] = "auto"

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        log_odds = self._check(X, reset=True)
        gold = indicator(y, log_odds.shape)
        self._check_options()
        self.fingerprint_ = fingerprint(log_odds, gold)
        options: dict[str, Any] = {
            "objective": self.objective,
            "cost": self.cost,
            "least": self.least,
            "most": self.most,
        }
        made = {name: kind(**options) for name, kind in CANDIDATES.items()}
        decisions = {name: _cross_validated(candidate, log_odds, gold) for name, candidate in made.items()}
        self.scores_ = {name: self._value(gold, found) for name, found in decisions.items()}
        best = next(iter(made))
        for name in made:
            if self.scores_[name] > self.scores_[best] and self._surely_better(gold, decisions[name], decisions[best]):
                best = name
        self.chosen_ = made[best].fit(log_odds, gold)
        self.thresholds_ = self.chosen_.thresholds_
        table = ", ".join(f"{name} {score:.3f}" for name, score in self.scores_.items())
        self.choice_ = f"{best}: {self.chosen_.choice_}. Cross-validated {self.objective}: {table}"
        return self

    def _value(self, gold: BoolArray, decisions: BoolArray) -> float:
        """The objective; for a cost, its negative mean."""
        if self.objective == "cost":
            counts = Counts.of(gold, decisions).micro()
            return -float(self.cost[0] * counts.fp + self.cost[1] * counts.fn) / gold.size
        return decision_metrics(gold, decisions)[self.objective]

    def _surely_better(self, gold: BoolArray, challenger: BoolArray, holder: BoolArray) -> bool:
        """Whether the challenger wins in 97.5% of resampled slices."""
        draws = np.random.default_rng(SEED).integers(len(gold), size=(ROUNDS, len(gold)))
        wins = sum(self._value(gold[d], challenger[d]) > self._value(gold[d], holder[d]) for d in draws)
        return wins >= 0.975 * ROUNDS

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return self.chosen_._logits(log_odds)

    def state(self) -> dict[str, Any]:
        chosen, fitted = self.chosen_.state(), {"thresholds_": self.thresholds_.tolist(), "scores_": self.scores_}
        fitted |= {"choice_": self.choice_, "fingerprint_": self.fingerprint_}
        return {"name": self.name, "options": self.get_params(deep=False), "fitted": fitted, "chosen": chosen}

    @classmethod
    def restore(cls, state: dict[str, Any], n_labels: int) -> Self:
        calibration = super().restore(state, n_labels)
        calibration.chosen_ = CANDIDATES[state["chosen"]["name"]].restore(state["chosen"], n_labels)
        return calibration


def _cross_validated(candidate: Calibration, log_odds: FloatArray, gold: BoolArray) -> BoolArray:
    """Decisions on documents that the candidate was not fitted on."""
    fold, decisions = assign(len(log_odds)), np.zeros(gold.shape, dtype=np.bool_)
    for number in range(fold.max() + 1):
        inside = fold == number
        decisions[inside] = candidate.fit(log_odds[~inside], gold[~inside]).predict(log_odds[inside])
    return decisions
