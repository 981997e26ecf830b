"""What a batch depends on, by name: whoever goes on with it must have the same of everything."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import setscore
from setscore.backbones import backbone_spec
from setscore.classifier import SetScoreClassifier
from setscore.errors import brief
from setscore.persistence import content_of
from setscore.readout import Readout
from setscore.records import LabelSet
from setscore.storage import as_json

SHOWN = 16  # characters of an identity in a row


def labels_of(classifier: SetScoreClassifier) -> LabelSet:
    """The inventory: the one it was fitted for, or the one it was given."""
    return classifier.labels_ if hasattr(classifier, "fitted_") else LabelSet.of(classifier.labels)


def identity_parts(classifier: SetScoreClassifier) -> dict[str, Any]:
    """Everything that changes a score, as JSON values by name. The weights are looked at."""
    params, fitted = classifier.get_params(deep=False), getattr(classifier, "fitted_", None)
    content = json.loads(as_json(content_of(params, labels_of(classifier), fitted)))
    backbone = classifier.backbone
    spec = backbone_spec(backbone) if isinstance(backbone, str) else backbone.spec
    return {
        "version": setscore.__version__,
        "weights and prompt": classifier.identity,  # with dtype, attention, answers and tokenizer
        "tokens that are read": spec.context,
        "windows that are read": spec.windows,
        **content.pop("params"),
        "calibration": json.loads(as_json(classifier.current_calibration().state())),
        "fitted": digest(content),
        "read-out": None if fitted is None or fitted.readout is None else _readout(fitted.readout),
    }


def _readout(readout: Readout) -> str:
    plain, arrays = readout.plain()
    return digest([plain, {name: [values.shape, values.tobytes().hex()] for name, values in arrays.items()}])


def digest(value: Any) -> str:
    """Of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What two sets of parts differ in, each as a phrase."""
    names = [name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)]
    return [f"{name} (then {brief(before.get(name), 60)}, now {brief(now.get(name), 60)})" for name in names]
