"""Wordings of a label: what is asked, and what each is worth on planted answers."""

import numpy as np
import pytest
from fakes import PlantedBackbone

from setscore.errors import SetScoreError
from setscore.experiments.wordings import LabelWording, asked_texts, compare_wordings
from setscore.prompts import Template
from setscore.records import Label, LabelSet

LABELS = LabelSet.of({"oil": "crude oil", "rain": None})
TEXTS = ["one", "two", "three", "four"]
GOLD = np.array([[1, 0], [1, 0], [0, 0], [0, 0]], dtype=bool)
PLANTED = {
    "oil": [2, -1, 1, -2],
    "oil (crude oil)": [2, 1, -1, -2],
    "oil (fuel)": [2, 0, 1, -2],
    "oil (petrol)": [-2, -1, 1, 2],
    "fuel": [2, 1, -1, 3],
    "crude oil": [3, 3, 3, 3],
    "rain": [0, -1, -1, -1],
    "rain (wet weather)": [1, 1, 1, -1],
}


class Planted(PlantedBackbone):
    def affinity(self, document, label):
        return float(PLANTED[label][TEXTS.index(document)])


def compared(labels=LABELS, gold=GOLD, **wordings):
    return compare_wordings(Planted(), Template.of("express"), TEXTS, labels, gold, wordings=wordings)


def test_each_wording_is_measured_alone_and_the_one_in_use_comes_first():
    found, truncated = compared(oil=["fuel", "petrol"], rain=["wet weather"])
    assert found == [
        LabelWording("oil", "oil (crude oil)", 2, 2, 1.0, 1.0),
        LabelWording("oil", "oil", 2, 2, 0.5, pytest.approx(5 / 6)),
        LabelWording("oil", "oil (fuel)", 3, 2, 0.8, pytest.approx(5 / 6)),  # a probability of 0.5 is a yes
        LabelWording("oil", "oil (petrol)", 2, 2, 0.0, pytest.approx(5 / 12)),
        LabelWording("rain", "rain", 1, 0, 0.0, None),
        LabelWording("rain", "rain (wet weather)", 3, 0, 0.0, None),
    ]
    assert truncated == 0


def test_without_gold_labels_the_documents_that_get_yes_are_left():
    found, _ = compared(gold=None, oil=["fuel"])
    assert found[0] == LabelWording("oil", "oil (crude oil)", 2, None, None, None)
    assert [one.yes for one in found] == [2, 2, 3]


def test_wordings_are_asked_as_the_labels_are():
    labels = LabelSet((Label("oil", "crude oil"), Label("plain")))
    assert asked_texts(labels, 0, ["fuel", "crude oil", "fuel"]) == ["oil (crude oil)", "oil", "oil (fuel)"]
    assert asked_texts(labels.asked_by("description"), 0, ["fuel", "oil"]) == ["crude oil", "oil", "fuel"]
    assert asked_texts(labels, 1, ["fuel"]) == ["plain", "plain (fuel)"]
    identifiers = LabelSet.of({"LateDelivery": "too late", "TechSupport": None})
    assert asked_texts(identifiers, 0, ["overdue"])[0] == identifiers.texts[0] == "Late Delivery (too late)"
    assert asked_texts(identifiers, 1, ["help"]) == ["Tech Support", "Tech Support (help)"]
    found, _ = compared(LABELS.asked_by("description"), oil=["fuel"])
    assert [one.text for one in found] == ["crude oil", "oil", "fuel"]
    with pytest.raises(SetScoreError, match=r"^wordings are descriptions, but --label-text is name\. Make it both or"):
        compared(LABELS.asked_by("name"), oil=["fuel"])
