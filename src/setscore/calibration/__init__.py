"""From log-odds to probabilities and decisions.

    p_i(x) = sigmoid(logit_i(u_i(x))),    label i is predicted where p_i(x) >= tau_i              (Section 3.5)

Everything is fitted on a few hundred labelled documents; the model's weights are never touched.
"""

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from setscore.calibration.base import SEED, Calibration, check_objective, fingerprint, options_from
from setscore.calibration.bias import BiasCalibration
from setscore.calibration.conformal import ConformalCalibration
from setscore.calibration.isotonic import IsotonicCalibration
from setscore.calibration.paper import PaperCalibration
from setscore.calibration.platt import LearnedCalibration, LevelledCalibration, PlattCalibration
from setscore.calibration.temperature import ShrunkCalibration, TemperatureCalibration, UnfittedCalibration
from setscore.errors import SetScoreError, unknown_name
from setscore.metrics import objective_value
from setscore.named import split_options
from setscore.records import BoolArray, FloatArray, IntArray

__all__ = [
    "CALIBRATIONS",
    "AutoCalibration",
    "BiasCalibration",
    "Calibration",
    "ConformalCalibration",
    "IsotonicCalibration",
    "LearnedCalibration",
    "LevelledCalibration",
    "PaperCalibration",
    "PlattCalibration",
    "ShrunkCalibration",
    "TemperatureCalibration",
    "UnfittedCalibration",
    "check_objective",
    "describe",
    "fingerprint",
    "make",
    "options_of",
    "relabelled",
    "restore",
    "spelt",
]

# The first is taken unless another is better beyond doubt: 200 documents cannot tell close candidates apart.
CANDIDATES: dict[str, type[Calibration]] = {
    "levelled": LevelledCalibration,
    "platt": PlattCalibration,
    "shrunk": ShrunkCalibration,
    "temperature": TemperatureCalibration,
}
ROUNDS = 200  # bootstrap rounds for that doubt


class AutoCalibration(Calibration):
    """Chooses a calibration by cross-validation inside the labelled slice, and says what it chose and why.

    Fitted: `chosen_`, the calibration in use; `scores_`, the cross-validated objective of every candidate."""

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


SHARED = ("levels_", "knots_", "values_")  # lists of what is no label's own
CALIBRATIONS: dict[str, type[Calibration]] = {
    kind.name: kind
    for kind in (
        AutoCalibration,
        PaperCalibration,
        TemperatureCalibration,
        ShrunkCalibration,
        PlattCalibration,
        LevelledCalibration,
        LearnedCalibration,
        IsotonicCalibration,
        ConformalCalibration,
        BiasCalibration,
        UnfittedCalibration,
    )
}


def make(kind: "str | dict[str, Any] | Calibration") -> Calibration:
    """A calibration ready to be fitted: by name, perhaps with options as in `platt?objective=macro_f1&most=3`; as
    `describe` gave it; or a copy of an object.
    """
    if isinstance(kind, Calibration):
        return type(kind)(**copy.deepcopy(kind.get_params(deep=False)))
    if isinstance(kind, str) and kind in CALIBRATIONS:
        return CALIBRATIONS[kind]()
    name, given = split_options(kind, "calibration") if isinstance(kind, str) else (kind["name"], kind["options"])
    if name not in CALIBRATIONS:
        raise SetScoreError(unknown_name("calibration", name, CALIBRATIONS))
    options = read_options(CALIBRATIONS[name], given) if isinstance(kind, str) else options_from(given)
    calibration = CALIBRATIONS[name](**options)
    calibration.check_options()
    return calibration


def describe(kind: "str | dict[str, Any] | Calibration") -> dict[str, Any]:
    """Name and options, as JSON values."""
    calibration = make(kind)
    return {"name": calibration.name, "options": calibration.get_params(deep=False)}


def restore(state: dict[str, Any], n_labels: int) -> Calibration:
    """The fitted calibration that `state()` described, tried on one made-up document: damage shows here, not later."""
    name = state["name"]
    if name not in CALIBRATIONS:
        raise SetScoreError(unknown_name("calibration", name, CALIBRATIONS))
    calibration = CALIBRATIONS[name].restore(state, n_labels)
    try:
        probabilities = calibration.transform(np.zeros((1, n_labels)))
    except AttributeError as error:
        raise SetScoreError(f"the state of the calibration {name!r} is not whole: {error}.") from error
    if probabilities.shape != (1, n_labels) or np.isnan(probabilities).any():
        raise SetScoreError(f"the state of the calibration {name!r} gives no probabilities for {n_labels} labels.")
    return calibration


def relabelled(calibration: Calibration, places: IntArray) -> Calibration:
    """A fitted calibration for other labels, by their places among the old ones; -1 for a new one.

    A new label gets what a label without examples has: the common threshold where there is one, else the mean of the
    known labels' numbers.
    """
    m, state = len(calibration.thresholds_), calibration.state()
    common = {"thresholds_": state["fitted"].get("common_")}
    _move(state, m, places, common)
    return restore(state, len(places))


def _move(state: dict[str, Any], m: int, places: IntArray, common: Mapping[str, float | None]) -> None:
    """Puts every number that belongs to a label in its new place, in the state of a calibration and of its parts."""
    for key, value in state["fitted"].items():
        if isinstance(value, list) and len(value) == m and key not in SHARED:
            rest = common.get(key)
            filling = float(np.mean(value)) if rest is None else rest
            state["fitted"][key] = [filling if place < 0 else value[place] for place in places.tolist()]
    for part in ("chosen", "map"):
        if part in state:
            _move(state[part], m, places, common)


# Calibrations as they are written: `platt?objective=cost&cost=1:4&most=3`
def options_of(kind: type[Calibration]) -> dict[str, inspect.Parameter]:
    """The options of a kind by name, with their types and defaults."""
    found = inspect.signature(kind).parameters.values()
    return {parameter.name: parameter for parameter in found}


def read_options(kind: type[Calibration], given: Mapping[str, str]) -> dict[str, Any]:
    """The values of options that were written as text; an unknown one is answered with the nearest and all others."""
    known, values = options_of(kind), {}
    for key, text in given.items():
        if key not in known:
            raise SetScoreError(unknown_name(f"option of the calibration {kind.name}", key, known))
        read, wanted = READERS[known[key].annotation]
        try:
            values[key] = read(text)
        except (KeyError, ValueError):
            message = f"the option {key} of the calibration {kind.name} is {wanted}, got {text!r}."
            raise SetScoreError(message) from None
    return values


def spelt(calibration: Calibration) -> str:
    """The name, and the options that are not at their defaults, as `read_options` reads them."""
    known, values = options_of(type(calibration)), calibration.get_params(deep=False)
    parts = [f"{key}={_written(value)}" for key, value in values.items() if value != known[key].default]
    return f"{calibration.name}?{'&'.join(parts)}" if parts else calibration.name


def _pair(text: str) -> tuple[float, float]:
    first, second = text.split(":")
    return float(first), float(second)


# How a text is read, and what is wanted in words.
READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "a name"),
    bool: (lambda text: {"true": True, "false": False}[text.lower()], "true or false"),
    int: (int, "a whole number"),
    int | None: (int, "a whole number"),
    float: (float, "a number"),
    tuple[float, float]: (_pair, "two numbers as in 1:4, the cost of a false positive and of a false negative"),
}


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(f"{number:g}" for number in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
