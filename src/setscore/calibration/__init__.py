"""From log-odds to probabilities and decisions.

    p_i(x) = sigmoid(logit_i(u_i(x))),    label i is predicted where p_i(x) >= tau_i              (Section 3.5)

Everything is fitted on a few hundred labelled documents; the model's weights are never touched.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from setscore.backbones import Backbone, backbone_spec
from setscore.calibration.auto import AutoCalibration
from setscore.calibration.base import Calibration, options_from
from setscore.calibration.bias import BiasCalibration
from setscore.calibration.conformal import ConformalCalibration
from setscore.calibration.isotonic import IsotonicCalibration
from setscore.calibration.learning import learn_from
from setscore.calibration.levelled import LevelledCalibration
from setscore.calibration.paper import PaperCalibration
from setscore.calibration.platt import PlattCalibration
from setscore.calibration.shrunk import ShrunkCalibration
from setscore.calibration.spelling import options_of, read_options, spelt
from setscore.calibration.temperature import TemperatureCalibration
from setscore.calibration.unfitted import UnfittedCalibration
from setscore.errors import FewDocumentsWarning, SetScoreError, counted, unknown_name
from setscore.named import split_options
from setscore.records import BoolArray, Document, FloatArray, LabelSet
from setscore.scorers import Learner, Scorer

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
    "few_documents",
    "fit",
    "learn",
    "learn_from",
    "make",
    "options_of",
    "restore",
    "spelt",
    "unfitted",
]

FEW_DOCUMENTS = 50
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
    name, given = split_options(kind, "calibration") if isinstance(kind, str) else (kind["name"], kind["options"])
    if name not in CALIBRATIONS:
        raise SetScoreError(unknown_name("calibration", name, CALIBRATIONS))
    options = read_options(CALIBRATIONS[name], given) if isinstance(kind, str) else options_from(given)
    calibration = CALIBRATIONS[name](**options)
    calibration.check_options()
    return calibration


def fit(kind: "str | dict[str, Any] | Calibration", log_odds: FloatArray, gold: BoolArray | None) -> Calibration:
    """A fresh calibration fitted on a labelled slice; warns when the slice is small."""
    if gold is not None and (message := few_documents(len(gold))):
        warnings.warn(message, FewDocumentsWarning, stacklevel=3)
    return make(kind).fit(log_odds, gold)


def unfitted(backbone: str | Backbone, n_labels: int, threshold: float = 0.5) -> Calibration:
    """What stands in before `fit`, with the numbers that belong to the backbone."""
    spec = backbone_spec(backbone) if isinstance(backbone, str) else backbone.spec
    ready = UnfittedCalibration(temperature=spec.temperature, competition=spec.competition, threshold=threshold)
    return ready.for_labels(n_labels)


def learn(  # noqa: PLR0917
    kind: "str | dict[str, Any] | Calibration",
    scorer: Scorer,
    backbone: Backbone,
    documents: Sequence[Document],
    labels: LabelSet,
    gold: BoolArray | None,
) -> dict[str, Any]:
    """What a scorer learns from labelled documents, as JSON values; nothing for one that needs none."""
    if not isinstance(scorer, Learner):
        return {}
    seeds = scorer.seed.score(backbone, [document.text for document in documents], labels).log_odds
    return learn_from(scorer, seeds, gold, make(kind))


def few_documents(n: int) -> str | None:
    """The warning for a slice of `n` labelled documents, or None if they are enough."""
    if n >= FEW_DOCUMENTS:
        return None
    return (
        f"fitted on {counted(n, 'document')}; with fewer than {FEW_DOCUMENTS}, decisions can get worse, use about 200."
    )


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
