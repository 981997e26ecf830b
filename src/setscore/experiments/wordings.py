"""Which wording of a label does best on documents at hand: each is asked by itself, without competition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setscore.backbones import Backbone
from setscore.errors import SetScoreError
from setscore.metrics import Counts
from setscore.prompts import Template
from setscore.records import BoolArray, FloatArray, Label, LabelSet, Progress
from setscore.scorers import PerLabelScorer


@dataclass(frozen=True)
class LabelWording:
    """One wording of one label, measured.

    text               what the question says
    yes                documents with a probability of 0.5 or more
    gold, f1           documents with the label, and F1 of that yes; None without gold labels
    average_precision  of the documents ordered by log-odds; None without a document that has the label
    """

    label: str
    text: str
    yes: int
    gold: int | None
    f1: float | None
    average_precision: float | None


def asked_texts(labels: LabelSet, place: int, descriptions: Sequence[str]) -> list[str]:
    """What questions can say of a label: as it is now, by its name alone, and with other descriptions; none twice."""
    called, others = labels.called[place], (labels.labels[place].description, None, *descriptions)
    return list(dict.fromkeys(Label(called, other).text(labels.label_text) for other in others))


def compare_wordings(
    backbone: Backbone,
    template: Template,
    texts: Sequence[str],
    labels: LabelSet,
    gold: BoolArray | None,
    *,
    wordings: Mapping[str, Sequence[str]],
    progress: Progress | None = None,
) -> tuple[list[LabelWording], int]:
    """Every wording, label by label, the one in use first; and how many documents were read in part.

    `wordings` has descriptions by the names of labels, asked as `labels` are: by name and description, or description.
    """
    if labels.label_text == "name":
        raise SetScoreError("wordings are descriptions, but --label-text is name. Make it both or description.")
    places = {name: place for place, name in enumerate(labels.names)}
    asked = [
        (places[name], text)
        for name, descriptions in wordings.items()
        for text in asked_texts(labels, places[name], descriptions)
    ]
    inventory = LabelSet(tuple(Label(str(number), text) for number, (_, text) in enumerate(asked)), "description")
    scores = PerLabelScorer(template).score(backbone, texts, inventory, progress=progress)
    found = [
        _measured(labels.names[place], text, log_odds, None if gold is None else gold[:, place])
        for (place, text), log_odds in zip(asked, scores.log_odds.T, strict=True)
    ]
    return found, int(scores.truncated.sum())


def _measured(label: str, text: str, log_odds: FloatArray, gold: BoolArray | None) -> LabelWording:
    yes = log_odds >= 0
    if gold is None:
        return LabelWording(label, text, int(yes.sum()), None, None, None)
    precision = None
    if gold.any():
        from sklearn.metrics import average_precision_score

        precision = float(average_precision_score(gold, log_odds))
    return LabelWording(label, text, int(yes.sum()), int(gold.sum()), float(Counts.of(gold, yes).f1()), precision)
