"""From log-odds to probabilities and decisions.

    p_i(x) = sigmoid(logit_i(u_i(x))),    label i is predicted where p_i(x) >= tau_i              (Section 3.5)

Everything is fitted on a few hundred labelled documents; the model's weights are never touched.
"""

from typing import Any

from sklearn.base import clone

from setscore.calibration.auto import AutoCalibration
from setscore.calibration.base import Calibration, options_from
from setscore.calibration.isotonic import IsotonicCalibration
from setscore.calibration.paper import PaperCalibration
from setscore.calibration.platt import PlattCalibration
from setscore.calibration.shrunk import ShrunkCalibration
from setscore.calibration.temperature import TemperatureCalibration
from setscore.errors import SetScoreError, unknown_name

__all__ = [
    "CALIBRATIONS",
    "AutoCalibration",
    "Calibration",
    "IsotonicCalibration",
    "PaperCalibration",
    "PlattCalibration",
    "ShrunkCalibration",
    "TemperatureCalibration",
    "describe",
    "make",
    "restore",
]

CALIBRATIONS: dict[str, type[Calibration]] = {
    kind.name: kind
    for kind in (
        AutoCalibration,
        PaperCalibration,
        TemperatureCalibration,
        ShrunkCalibration,
        PlattCalibration,
        IsotonicCalibration,
    )
}


def make(kind: "str | dict[str, Any] | Calibration") -> Calibration:
    """A calibration ready to be fitted: by name, as `describe` gave it, or a copy of an object."""
    if isinstance(kind, Calibration):
        copy: Calibration = clone(kind)
        return copy
    name, options = (kind, {}) if isinstance(kind, str) else (kind["name"], kind["options"])
    if name not in CALIBRATIONS:
        raise SetScoreError(unknown_name("calibration", name, CALIBRATIONS))
    return CALIBRATIONS[name](**options_from(options))


def describe(kind: "str | dict[str, Any] | Calibration") -> dict[str, Any]:
    """Name and options, as JSON values."""
    calibration = make(kind)
    return {"name": calibration.name, "options": calibration.get_params(deep=False)}


def restore(state: dict[str, Any], n_labels: int) -> Calibration:
    """The fitted calibration that `state()` described."""
    return CALIBRATIONS[state["name"]].restore(state, n_labels)
