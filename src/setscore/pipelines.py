"""A drop-in for the zero-shot pipeline of transformers: same call, same return shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from setscore.backbones import BACKBONES, EMBEDDED, Backbone, is_place, split_name
from setscore.classifier import SetScoreClassifier
from setscore.errors import LabelError, SetScoreError, TemplateError, unknown_name
from setscore.predictions import Prediction
from setscore.records import LabelSet

TASK = "zero-shot-classification"


def pipeline(
    task: str = TASK,
    model: str = "setscore-small",
    *,
    attention: str = "auto",
    competition: float | None = None,
    device: object = None,
    batch_size: int | None = None,  # noqa: ARG001
) -> "ZeroShotPipeline":
    """`pipeline("zero-shot-classification")`, as in transformers.

    `model` is a backbone of SetScore, or `hf:<id>` for a masked language model. `competition` is how much labels
    compete with `multi_label=True`: 0 asks each for itself, None is the model's own number. `batch_size` is taken so
    that calls need no change, and does nothing: batches are made by length. `device` may say the CPU, or, for a model
    that is not embedded, a GPU.
    """
    if task != TASK:
        raise SetScoreError(f"the only task is {TASK!r}, got {task!r}.")
    base, _ = split_name(model)
    if base not in BACKBONES and not is_place(base):
        raise SetScoreError(unknown_name("backbone", base, BACKBONES) + " Or leave out model=.")
    on_cpu = device in (None, -1, "cpu") or str(device) == "cpu"
    if base in EMBEDDED:
        if not on_cpu:
            raise SetScoreError(f"{model} runs on the CPU; leave out device={device!r}.")
    elif device is not None:
        where = "cpu" if on_cpu else f"cuda:{device}" if isinstance(device, int) else str(device)
        model += f"{'&' if '?' in model else '?'}device={where}"
    return ZeroShotPipeline(model, attention, competition)


@dataclass(frozen=True)
class ZeroShotPipeline:
    """Scores texts against candidate labels.

    `multi_label=True`: a probability per label, any number of which may be high. Beside a likely label another one
    needs a little more, as in `SetScoreClassifier` before `fit`; `competition=0` asks each for itself.
    `multi_label=False` (the default, as in transformers): a softmax of the log-odds over the labels, which adds up
    to 1; a single label has nothing to be compared with and keeps its own probability.
    """

    model: str | Backbone
    attention: str
    competition: float | None = None

    def __call__(
        self,
        sequences: str | Sequence[str],
        candidate_labels: str | Sequence[str] | Mapping[str, str | None],
        *,
        multi_label: bool = False,
        hypothesis_template: str | None = None,
        batch_size: int | None = None,  # noqa: ARG002
        truncation: object = None,  # noqa: ARG002
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """For each sequence a dict of `sequence`, `labels` (best first) and their `scores`.

        `candidate_labels` may also map names to descriptions. `batch_size` and `truncation` do nothing.
        """
        if isinstance(candidate_labels, str):
            candidate_labels = [label.strip() for label in candidate_labels.split(",") if label.strip()]
        texts = [sequences] if isinstance(sequences, str) else list(sequences)
        classifier = self.classifier(candidate_labels, hypothesis_template)
        found = classifier.classify(texts).checked()
        found.scores.warn()
        results = [
            {"sequence": text, **ranked(prediction, multi_label=multi_label)}
            for text, prediction in zip(texts, found, strict=True)
        ]
        return results[0] if isinstance(sequences, str) else results

    def classifier(
        self, candidate_labels: Sequence[str] | Mapping[str, str | None], hypothesis_template: str | None = None
    ) -> SetScoreClassifier:
        """The classifier that is asked; `ranked` makes of its predictions what the pipeline returns."""
        if not candidate_labels:
            raise LabelError("there are no candidate labels; give at least one.")
        return SetScoreClassifier(
            LabelSet.of(candidate_labels),
            backbone=self.model,
            template="express" if hypothesis_template is None else _as_question(hypothesis_template),
            attention=self.attention,
            competition=self.competition,
        )


def ranked(prediction: Prediction, *, multi_label: bool) -> dict[str, list[Any]]:
    """`labels`, the best first, and their `scores`."""
    names, alone = list(prediction.log_odds), multi_label or len(prediction.log_odds) == 1
    values = np.array(list((prediction.probabilities if alone else prediction.log_odds).values()))
    scores = values if alone else softmax(values)
    order = np.argsort(-scores, kind="stable")
    return {"labels": [names[i] for i in order], "scores": [float(scores[i]) for i in order]}


def _as_question(hypothesis: str) -> str:
    """A hypothesis such as "This text is about {}." as a question; a question stays as it is."""
    if hypothesis.count("{}") != 1:
        raise TemplateError(f"a hypothesis template has {{}} exactly once for the label, got {hypothesis!r}.")
    wording = hypothesis.replace("{}", "{label}")
    return wording if wording.rstrip().endswith("?") else f"Is this statement true? {wording}"
