"""Labels with parents: the same scores as asking everything, for fewer questions."""

import numpy as np
import pytest
from fakes import FakeBackbone
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore import Label, LabelSet, SetScoreClassifier
from setscore.errors import LabelError, SetScoreError
from setscore.shortlist import Descent, shortlist_of

LABELS = LabelSet((
    Label("energy"), Label("oil", "crude oil", "energy"), Label("gas", None, "energy"),
    Label("sports"), Label("tennis", None, "sports"), Label("crude", None, "oil"),
))  # fmt: skip
TEXTS = ["Energy: crude oil fell.", "She won at tennis, the best of sports.", "Nothing at all."]


def classifier(**options):
    return SetScoreClassifier(LABELS, backbone=FakeBackbone(), **options)


def test_children_are_asked_where_the_parent_may_apply():
    every, some = classifier().score_documents(TEXTS), classifier(shortlist="parents").score_documents(TEXTS)
    assert some.scored.tolist() == [
        [True, True, True, True, False, True],
        [True, False, False, True, True, False],
        [True, False, False, True, False, False],
    ]
    np.testing.assert_array_equal(some.log_odds[some.scored], every.log_odds[some.scored])
    assert np.isneginf(some.log_odds[~some.scored]).all()


@settings(max_examples=20, deadline=None)
@given(st.floats(-5, 5), st.floats(-5, 5))
def test_a_lower_floor_asks_more(low, high):
    low, high = sorted((low, high))
    more, fewer = (classifier(shortlist=Descent(floor)).score_documents(TEXTS).scored for floor in (low, high))
    assert (more >= fewer).all()


def test_no_floor_asks_everything():
    every = classifier().score_documents(TEXTS)
    all_of_them = classifier(shortlist=Descent(-np.inf)).score_documents(TEXTS)
    np.testing.assert_array_equal(all_of_them.log_odds, every.log_odds)


def test_a_parent_that_is_not_a_candidate_is_passed_by():
    scored = classifier(shortlist="parents").score_documents(
        TEXTS, candidates=[["oil", "crude"], ["sports"], ["tennis"]]
    )
    assert [np.flatnonzero(row).tolist() for row in scored.scored] == [[1, 5], [3], [4]]


def test_thousands_of_labels_cost_tens_of_questions():
    parents = [Label(f"topic{number}") for number in range(40)]
    children = [
        Label(f"topic{number} kind{kind}", parent=f"topic{number}") for number in range(40) for kind in range(100)
    ]
    backbone = FakeBackbone()
    model = SetScoreClassifier(LabelSet((*parents, *children)), backbone=backbone, shortlist="parents")
    assert "topic7 kind3" in model.predict_labels(["This is topic7 of kind3."])[0]
    assert backbone.queries == 40 + 100


def test_parents_are_saved(tmp_path):
    model = SetScoreClassifier(LABELS, shortlist="parents:-1.5")
    model.save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json")
    assert LabelSet.of(loaded.labels) == LABELS
    assert shortlist_of(loaded.shortlist) == Descent(-1.5)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [Label("oil", parent="energie"), Label("energy")],
            "parent of label 'oil' is not a label: .*mean 'energy'",
        ),
        ([Label("a", parent="b"), Label("b", parent="a")], "label 'a' is its own ancestor"),
        ([Label("a", parent="a")], "label 'a' is its own ancestor"),
        ({"a": {"colour": "red"}}, "label 'a' has a description and perhaps a parent, got colour"),
    ],
)
def test_parents_that_cannot_be(labels, message):
    with pytest.raises(LabelError, match=message):
        LabelSet.of(labels)


def test_no_parents_and_no_number_are_errors():
    with pytest.raises(LabelError, match="no label has a parent"):
        SetScoreClassifier(["a", "b"], backbone=FakeBackbone(), shortlist="parents").score_documents(TEXTS)
    with pytest.raises(SetScoreError, match="parents:FLOOR takes log-odds, as in parents:-2; got 'parents:low'"):
        shortlist_of("parents:low")
