"""A document costs what is read of it: the same windows as from the whole text, from no more of it than they need."""

import functools
import os
import subprocess
import sys

import numpy as np
import pytest
import tokenizer_kinds
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore.backbones import load_backbone
from setscore.backbones.tokens import TextTokenizer
from setscore.prompts import Template
from setscore.records import LabelSet
from setscore.scorers import PerLabelScorer, per_label
from setscore.scorers.per_label import MOST_CHARACTERS_OF_A_TOKEN, Reading, read_document, split_document

KINDS = [*tokenizer_kinds.KINDS, "setscore-mini"]
PIECES = ["word ", "x", " ", "word", "🙂", "日本", "[MASK]", "é", "e\u0301", "a.b,", "\n", "internationalisation "]
TEXTS = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from([1, 2, 7, 40, 130, 300, 700])), min_size=1, max_size=40
).map(lambda pieces: "".join(piece * count for piece, count in pieces))


class Spans:
    """As much of a backbone as cutting a text needs; it counts the characters that it is given."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self.tokenizer, self.characters = tokenizer, 0

    def spans(self, text):
        self.characters += len(text)
        return self.tokenizer.spans(text)


@functools.cache
def spans(kind):
    if kind == "setscore-mini":
        return Spans(load_backbone(kind).prompter.tokenizer)
    return Spans(TextTokenizer(tokenizer_kinds.tokenizer(kind)))


def read_whole(backbone, text, reading, *, room, most):
    """What `read_document` gives, by tokenising all of the text."""
    wanted = 1 if reading.long_documents == "truncate" else most
    found = split_document(backbone, text, room=room, overlap=reading.overlap)
    return found[:wanted], len(found) > wanted


def reach(backbone, text, tokens):
    """Where the token after so many ends; the text's end where there is none."""
    found = backbone.spans(text)
    return found[tokens][1] if len(found) > tokens else len(text)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None)
@given(text=TEXTS, room=st.integers(16, 64), most=st.integers(0, 4), overlap=st.integers(0, 12))
def test_windows_and_flags_are_those_of_the_whole_text(kind, text, room, most, overlap):
    backbone, reading = spans(kind), Reading("auto" if most else "truncate", overlap=overlap)
    wanted = max(most, 1)
    found, truncated = read_document(backbone, text, reading, room=room, most=most)
    expected, more = read_whole(backbone, text, reading, room=room, most=most)
    last = MOST_CHARACTERS_OF_A_TOKEN * room * wanted
    if reach(backbone, text, room * wanted) <= last - per_label.UNSURE:
        assert (found, truncated) == (expected, more)
    else:  # blanks or an endless word: it is cut, and says so
        assert truncated or (found, truncated) == (expected, more)
        assert all(window in text for window in found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["The rain fell again on the plain. ", "x", " ", "日本", "🙂", "[MASK]"])
def test_what_is_tokenised_does_not_grow_with_the_text(kind, text):
    backbone, given = spans(kind), []
    for size in (300_000, 900_000):
        backbone.characters = 0
        read_document(backbone, text * (size // len(text)), Reading(), room=40, most=2)
        given.append(backbone.characters)
    assert given[0] == given[1] <= 6 * MOST_CHARACTERS_OF_A_TOKEN * 40 * 2


def test_a_text_of_ordinary_words_is_read_little_further_than_its_windows():
    backbone = spans("setscore-mini")
    text = "The rain fell again on the plain. " * 20_000
    backbone.characters = 0
    found, truncated = read_document(backbone, text, Reading(), room=450, most=16)
    assert (len(found), truncated) == (16, True)
    assert backbone.characters < 4 * 8 * 450 * 16 < len(text)


LONG = {
    "words": "The rain fell again on the plain, and the wind rose in the night. " * 900,
    "long words": " ".join("x" * length for length in range(1, 400)),
    "blanks": "Crude oil prices fell." + " " * 5000 + "The rain fell again. " * 900,
    "no spaces": "日本語の雨" * 4000,
    "emoji": "🙂 rain " * 3000,
    "short": "Rain.",
}


@pytest.mark.parametrize("long_documents", ["auto", "truncate"])
@pytest.mark.parametrize("text", LONG)
def test_log_odds_are_those_of_the_whole_text(monkeypatch, text, long_documents):
    labels, backbone = LabelSet.of(["rain", "oil"]), load_backbone("setscore-mini")
    scorer = PerLabelScorer(Template.of("express"), reading=Reading(long_documents))
    found = scorer.score(backbone, [LONG[text]], labels)
    monkeypatch.setattr(per_label, "read_document", read_whole)
    whole = scorer.score(backbone, [LONG[text]], labels)
    np.testing.assert_array_equal(found.log_odds, whole.log_odds)
    np.testing.assert_array_equal(found.truncated, whole.truncated)


CLASSIFYING = """
import resource
import sys

from setscore import SetScoreClassifier

model = SetScoreClassifier(["rain", "oil"], blend="own-cosine")
model.classify(["Rain."])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
piece = sys.argv[1]
text = piece * (50_000_000 // len(piece.encode()))
predictions = model.classify([text])
assert predictions.scores.truncated.tolist() == [True]
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's unit of memory")
@pytest.mark.parametrize("piece", ["The rain fell again on the plain. ", "x"], ids=["words", "an endless word"])
def test_fifty_megabytes_are_classified_in_little_memory(piece):
    """The text itself takes 50 MB; tokenised whole it would take seven thousand."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", CLASSIFYING, piece], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 600
