"""SetScore: training-free multi-label text classification with masked-diffusion language models.

>>> from setscore import SetScoreClassifier
>>> SetScoreClassifier(["oil", "sports"]).predict_labels(["Crude prices fell again."])

`setscore.classifier` explains the method on one page. Names are imported when first used, so that `import setscore`
costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "SetScoreClassifier": "setscore.classifier",
    "pipeline": "setscore.pipelines",
    "Document": "setscore.records",
    "Label": "setscore.records",
    "LabelSet": "setscore.records",
    "Scores": "setscore.records",
    "Prediction": "setscore.predictions",
    "Predictions": "setscore.predictions",
    "Suggestion": "setscore.suggesting",
    "Template": "setscore.prompts",
    "Verbalizer": "setscore.prompts",
    "SetScoreError": "setscore.errors",
    "TruncationWarning": "setscore.errors",
    "load_backbone": "setscore.backbones",
    "read_labels": "setscore.datasets",
    "read_documents": "setscore.datasets",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604

if TYPE_CHECKING:
    from setscore.backbones import load_backbone as load_backbone
    from setscore.classifier import SetScoreClassifier as SetScoreClassifier
    from setscore.datasets import read_documents as read_documents
    from setscore.datasets import read_labels as read_labels
    from setscore.errors import SetScoreError as SetScoreError
    from setscore.errors import TruncationWarning as TruncationWarning
    from setscore.pipelines import pipeline as pipeline
    from setscore.predictions import Prediction as Prediction
    from setscore.predictions import Predictions as Predictions
    from setscore.prompts import Template as Template
    from setscore.prompts import Verbalizer as Verbalizer
    from setscore.records import Document as Document
    from setscore.records import Label as Label
    from setscore.records import LabelSet as LabelSet
    from setscore.records import Scores as Scores
    from setscore.suggesting import Suggestion as Suggestion


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'setscore' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
