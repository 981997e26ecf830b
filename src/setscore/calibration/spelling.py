"""Calibrations as they are written: `platt?objective=cost&cost=1:4&most=3`."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from setscore.calibration.base import Calibration
from setscore.errors import SetScoreError, unknown_name


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
