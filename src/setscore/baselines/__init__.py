"""What the paper compares with, each by name: one call loads it, `fit` where it learns, `score` like every scorer."""

import importlib
from dataclasses import fields
from typing import Any

from setscore.baselines.base import Baseline
from setscore.errors import SetScoreError, unknown_name

__all__ = ["BASELINES", "GENERATIVE", "LOOPED", "SUPERVISED", "TRAINED", "TUNED", "Baseline", "load_baseline"]

# Name: module, class, options that differ from the class's own.
BASELINES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cosine": ("setscore.baselines.cosine", "Cosine", {}),
    "linear": ("setscore.baselines.linear", "LinearHead", {}),
    "setfit": ("setscore.baselines.setfit", "FewShot", {}),
    "bart-mnli": ("setscore.baselines.nli", "Entailment", {}),
    "bart-mnli-template": ("setscore.baselines.nli", "Entailment", {"hypotheses": "HYPOTHESES"}),
    "deberta-nli": ("setscore.baselines.nli", "Entailment", {"checkpoint": "DEBERTA"}),
    "deberta-nli-template": (
        "setscore.baselines.nli",
        "Entailment",
        {"checkpoint": "DEBERTA", "hypotheses": "HYPOTHESES"},
    ),
    "qwen-generate": ("setscore.baselines.causal", "LabelGeneration", {}),
    "qwen-yes-no": ("setscore.baselines.causal", "CausalYesNo", {}),
    "bert": ("setscore.baselines.supervised", "SigmoidHead", {}),
    "roberta": ("setscore.baselines.supervised", "SigmoidHead", {"checkpoint": "roberta-base"}),
    "flan-t5": ("setscore.baselines.text_to_set", "TextToSet", {}),
}
TRAINED = ("linear", "setfit", "bert", "roberta", "flan-t5")  # they learn from labelled documents
LOOPED = ("setfit", "bert", "roberta", "flan-t5")  # of those, step by step: progress is told, a kill is survived
SUPERVISED = ("bert", "roberta", "flan-t5")  # of those, from a whole training split: once, for whatever seeds
TUNED = ("bart-mnli-template", "deberta-nli-template")  # they choose a hypothesis on validation documents
GENERATIVE = ("qwen-generate", "flan-t5")  # they write text: no scores, nothing to calibrate


def load_baseline(name: str, **options: Any) -> Baseline:
    """A baseline by name. `checkpoint` takes the place of its public one: another repository, or a folder."""
    if name not in BASELINES:
        raise SetScoreError(unknown_name("baseline", name, BASELINES))
    home, kind, own = BASELINES[name]
    module = importlib.import_module(home)
    made = getattr(module, kind)
    known = {field.name for field in fields(made)}
    for option in options:
        if option not in known:
            raise SetScoreError(unknown_name(f"option of {name}", option, known))
    constants = {key: getattr(module, value, value) for key, value in own.items()}
    baseline: Baseline = made(**constants | options)
    return baseline
