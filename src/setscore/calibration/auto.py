"""Chooses a calibration by cross-validation inside the labelled slice, and says what it chose and why."""

from typing import Any, ClassVar, Self

import numpy as np

from setscore.calibration.base import SEED, Calibration
from setscore.calibration.platt import LevelledCalibration, PlattCalibration
from setscore.calibration.temperature import ShrunkCalibration, TemperatureCalibration
from setscore.metrics import objective_value
from setscore.records import BoolArray, FloatArray, IntArray

# The first is taken unless another is better beyond doubt: 200 documents cannot tell close candidates apart.
CANDIDATES: dict[str, type[Calibration]] = {
    "levelled": LevelledCalibration,
    "platt": PlattCalibration,
    "shrunk": ShrunkCalibration,
    "temperature": TemperatureCalibration,
}
ROUNDS = 200  # bootstrap rounds for that doubt


class AutoCalibration(Calibration):
    """Fitted: `chosen_`, the calibration in use; `scores_`, the cross-validated objective of every candidate."""

    name: ClassVar[str] = "auto"
    fitted: ClassVar[tuple[str, ...]] = ("scores_",)
    candidates: ClassVar[dict[str, type[Calibration]]] = CANDIDATES

    def label_by_label(self) -> Calibration:
        return LabelByLabel(**self.get_params(deep=False))

    def _fit_logits(self, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> str:
        made = {name: kind(**self.get_params(deep=False)) for name, kind in self.candidates.items()}
        if len(log_odds) == 1:
            self.chosen_, self.scores_ = made["temperature"].fit(log_odds, gold), {}
            return f"temperature: {self.chosen_.choice_}. One document cannot be cross-validated"
        everything = np.ones((1, len(gold)))
        decisions = {name: _cross_validated(candidate, log_odds, gold, fold) for name, candidate in made.items()}
        self.scores_ = {
            name: float(objective_value(self.objective, gold, found, everything, self.cost)[0])
            for name, found in decisions.items()
        }
        best = next(iter(made))
        for name in made:
            if self.scores_[name] > self.scores_[best] and self._surely_better(gold, decisions[name], decisions[best]):
                best = name
        self.chosen_ = made[best].fit(log_odds, gold)
        table = ", ".join(f"{name} {score:.3f}" for name, score in self.scores_.items())
        return f"{best}: {self.chosen_.choice_}. Cross-validated {self.objective}: {table}"

    def _fit_thresholds(self, log_odds: FloatArray, gold: BoolArray) -> FloatArray:  # noqa: ARG002
        return self.chosen_.thresholds_

    def _surely_better(self, gold: BoolArray, challenger: BoolArray, holder: BoolArray) -> bool:
        """Whether the challenger wins in 97.5% of resampled slices."""
        shares, generator = np.full(len(gold), 1 / len(gold)), np.random.default_rng(SEED)
        weights = generator.multinomial(len(gold), shares, size=ROUNDS).astype(np.float64)
        values = [objective_value(self.objective, gold, one, weights, self.cost) for one in (challenger, holder)]
        return bool((values[0] > values[1]).mean() >= 0.975)

    def _logits(self, log_odds: FloatArray) -> FloatArray:
        return self.chosen_._logits(log_odds)

    def _probabilities(self, log_odds: FloatArray) -> FloatArray:
        return self.chosen_._probabilities(log_odds)

    def state(self) -> dict[str, Any]:
        state = super().state()
        return state | {"chosen": state["fitted"].pop("chosen_").state()}

    @classmethod
    def restore(cls, state: dict[str, Any], n_labels: int) -> Self:
        chosen = CANDIDATES[state["chosen"]["name"]].restore(state["chosen"], n_labels)
        return super().restore(state | {"fitted": state["fitted"] | {"chosen_": chosen}}, n_labels)


class LabelByLabel(AutoCalibration):
    """Of the candidates, those whose decision on a label looks at that label's log-odds alone."""

    candidates: ClassVar[dict[str, type[Calibration]]] = {
        name: kind for name, kind in CANDIDATES.items() if kind is not LevelledCalibration
    }


def _cross_validated(candidate: Calibration, log_odds: FloatArray, gold: BoolArray, fold: IntArray) -> BoolArray:
    """Decisions on documents that the candidate was not fitted on."""
    decisions = np.zeros(gold.shape, dtype=np.bool_)
    for number in range(fold.max() + 1):
        inside = fold == number
        decisions[inside] = candidate.fit(log_odds[~inside], gold[~inside]).predict(log_odds[inside])
    return decisions
