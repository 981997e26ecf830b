"""Messages: what they quote is bounded, and what they look up is cheap."""

import difflib

import pytest

from setscore.errors import brief, unknown_name

MANY = [f"{letter}{number:04}" for letter in "abcdefghij" for number in range(500)]


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("oyl", ["sports", "oil"], "unknown label 'oyl'. Did you mean 'oil'? Known: oil, sports."),
        ("tea", ["sports", "oil"], "unknown label 'tea'. Known: oil, sports."),
        ("x" * 500, ["oil"], f"unknown label '{'x' * 37}...{'x' * 38}'. Known: oil."),
        (
            "c00042",
            MANY,
            f"unknown label 'c00042'. Did you mean 'c0042'? Known: {', '.join(MANY[:50])}, … (5000 in all).",
        ),
    ],
)
def test_an_unknown_name(name, known, message):
    assert unknown_name("label", name, known) == message


def test_few_names_of_a_large_inventory_are_compared(monkeypatch):
    asked = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda name, names, n: asked.append(len(names)) or [])
    unknown_name("label", "c00042", MANY)
    unknown_name("label", "x" * 5000, MANY)
    unknown_name("label", "oyl", ["oil", "sports"])
    assert asked == [200, 2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("oil", "'oil'"),
        (["text", "id"], "['text', 'id']"),
        ({"name": 7}, "{'name': 7}"),
        (None, "None"),
        ("x" * 1000, "'" + "x" * 37 + "..." + "x" * 38 + "'"),
        (1 << 20000, "int with too many digits to show"),
    ],
    ids=["text", "list", "dict", "none", "long", "digits"],
)
def test_what_a_message_quotes(value, text):
    assert brief(value) == text


def test_nothing_makes_a_quotation_long():
    shared = ["lol"] * 10
    for _ in range(30):
        shared = [shared] * 10  # 10^30 strings when it is written out
    assert len(brief(shared)) < 400
    assert len(brief({str(n) * 100: ["x" * 100] * 100 for n in range(100)})) < 400
