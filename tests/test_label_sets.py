"""Inventories that are large, deep or hostile: one short line, and no more work than there are labels."""

import pytest

from setscore.errors import LabelError
from setscore.records import Document, Label, LabelSet

LARGE = LabelSet.of([f"topic number {number}" for number in range(5_000)])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"oil": {"parent": 7}},
            "the parent of label 'oil' is 7 of type int, not a text. Give the name of a label, or None.",
        ),
        (
            {"oil": {"parent": False}},
            "the parent of label 'oil' is False of type bool, not a text. Give the name of a label, or None.",
        ),
        (
            [Label("oil", parent=["gas"])],
            "the parent of label 'oil' is ['gas'] of type list, not a text. Give the name of a label, or None.",
        ),
        (
            {"oil": {"description": False}},
            "the description of label 0 is False of type bool, not a text. Labels count from 0.",
        ),
        ({"oil": {1: "a", "b": 2}}, "label 'oil' has a description and perhaps a parent, got 1, b."),
        # The first label leads into the circle, but it is not in it.
        (
            [Label("a", parent="b"), Label("b", parent="c"), Label("c", parent="b")],
            "label 'b' is its own ancestor: its parents form a circle.",
        ),
        (["x" * 10_000] * 2, f"label '{'x' * 37}...{'x' * 38}' is listed twice, at 0 and 1. Remove one of them."),
    ],
    ids=["number", "no", "list", "description", "unknown", "circle", "long"],
)
def test_what_cannot_be_an_inventory(source, message):
    with pytest.raises(LabelError) as error:
        LabelSet.of(source)
    assert str(error.value).startswith(message)
    assert len(str(error.value)) < 300


def test_an_empty_text_is_no_parent_and_no_description():
    assert LabelSet.of({"oil": {"description": "", "parent": ""}}) == LabelSet.of(["oil"])


def test_a_long_chain_of_parents_is_checked_once_through():
    # Each label is below the one before it: walking up from each of them anew would take 1,250,000,000 steps.
    names = [f"level {number}" for number in range(50_000)]
    labels = LabelSet(tuple(Label(name, parent=above) for name, above in zip(names, [None, *names], strict=False)))
    assert labels.parents.tolist() == list(range(-1, 49_999))


def test_an_unknown_candidate_of_a_large_inventory_is_a_short_message():
    documents = [Document("one", candidates=("topic numbr 4999",))] * 200
    with pytest.raises(LabelError) as error:
        LARGE.asked(documents, None)
    assert str(error.value).startswith(
        "200 candidates are not in the inventory: 'topic numbr 4999' (200 times, did you mean 'topic number 4999'?)."
        " Known: topic number 0, "
    )
    assert len(str(error.value)) < 2_000


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["late_delivery", "refund"], ["late delivery", "refund"]),
        (["LateDelivery", "TechSupport", "refund"], ["Late Delivery", "Tech Support", "refund"]),
        (["HTTPError", "userID", "B2BSales"], ["HTTP Error", "user ID", "B2B Sales"]),
        (["JavaScript", "Python"], ["JavaScript", "Python"]),  # one name with capitals inside is a word
        (["JavaScript", "TypeScript", "web pages"], ["JavaScript", "TypeScript", "web pages"]),
        (["money-fx", "a_b c", "__"], ["money-fx", "a_b c", "__"]),
    ],
)
def test_names_that_are_written_as_identifiers_are_asked_in_words(names, asked):
    labels = LabelSet.of(names)
    assert list(labels.names) == names
    assert list(labels.texts) == asked
    described = LabelSet.of(dict.fromkeys(names, "what it is"))
    assert list(described.texts) == [f"{name} (what it is)" for name in asked]
    assert set(described.asked_by("description").texts) == {"what it is"}
