"""From log-odds to probabilities and decisions.

    p_i(x) = sigmoid(logit_i(u_i(x))),    label i is predicted where p_i(x) >= tau_i              (Section 3.5)

Everything is fitted on a few hundred labelled documents; the model's weights are never touched.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from setscore.calibration.auto import AutoCalibration
from setscore.calibration.base import Calibration, options_from
from setscore.calibration.bias import BiasCalibration
from setscore.calibration.conformal import ConformalCalibration
from setscore.calibration.isotonic import IsotonicCalibration
from setscore.calibration.paper import PaperCalibration
from setscore.calibration.platt import LevelledCalibration, PlattCalibration
from setscore.calibration.temperature import ShrunkCalibration, TemperatureCalibration
from setscore.calibration.unfitted import UnfittedCalibration
from setscore.errors import SetScoreError, unknown_name
from setscore.named import split_options

__all__ = [
    "CALIBRATIONS",
    "AutoCalibration",
    "BiasCalibration",
    "Calibration",
    "ConformalCalibration",
    "IsotonicCalibration",
    "LevelledCalibration",
    "PaperCalibration",
    "PlattCalibration",
    "ShrunkCalibration",
    "TemperatureCalibration",
    "UnfittedCalibration",
    "describe",
    "make",
    "options_of",
    "restore",
    "spelt",
]

CALIBRATIONS: dict[str, type[Calibration]] = {
    kind.name: kind
    for kind in (
        AutoCalibration,
        PaperCalibration,
        TemperatureCalibration,
        ShrunkCalibration,
        PlattCalibration,
        LevelledCalibration,
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
        copy: Calibration = clone(kind)
        return copy
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
