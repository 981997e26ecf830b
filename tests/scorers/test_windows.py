"""Long documents: windows fit, cover everything and overlap; pooling is what its name says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore.backbones import load_backbone
from setscore.errors import BackboneError, SetScoreError
from setscore.prompts import Template
from setscore.records import LabelSet
from setscore.scorers import PerLabelScorer
from setscore.scorers.per_label import POOLS, Reading, document_room, pool_windows, split_document, window_cuts

BACKBONE = load_backbone("setscore-mini")
words = st.lists(
    st.sampled_from(["rain", "unbelievably", "internationalisation", "a-b", "naïve", "x" * 130, "日本語", "!?", "é"])
    | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(words, st.integers(4, 40), st.integers(0, 30))
def test_windows_fit_and_cover_the_text(parts, room, overlap):
    text = " ".join(parts)
    windows = split_document(BACKBONE, text, room=room, overlap=overlap)
    assert all(len(BACKBONE.spans(window)) <= room for window in windows)
    spans = BACKBONE.spans(text)
    cuts = window_cuts(spans, room=room, overlap=overlap)
    inside = [any(start <= low and high <= stop for start, stop in cuts) for low, high in spans]
    assert all(inside)
    assert [start for start, _ in cuts] == sorted({start for start, _ in cuts})  # always forward


def test_a_short_text_is_its_own_window_and_the_first_window_is_the_beginning():
    assert split_document(BACKBONE, "rain today", room=8, overlap=2) == ["rain today"]
    windows = split_document(BACKBONE, "one two three four five six seven", room=4, overlap=2)
    assert windows == ["one two three four", "three four five six", "five six seven"]


def test_windows_end_between_words_when_they_can():
    text = "rain internationalisation internationalisation rain rain"
    for window in split_document(BACKBONE, text, room=9, overlap=0):
        assert set(window.split()) <= set(text.split())


def test_room_is_what_the_longest_question_leaves():
    template = Template.of("express")
    short, long = template.query("", "oil"), template.query("", "oil " * 50)
    room = document_room(BACKBONE, [short], None)
    assert document_room(BACKBONE, [short, long], None) == room - 49
    assert document_room(BACKBONE, [short], 100) == 100  # the caller's budget
    text = " ".join(["word"] * room)
    assert np.isfinite(BACKBONE.log_odds([template.query(text, "oil")])[0]).all()  # it fits to the last token
    with pytest.raises(BackboneError, match="has 513 tokens"):
        BACKBONE.log_odds([template.query(text + " word", "oil")])


def test_a_question_that_leaves_no_room_is_named():
    queries = [Template.of("express").query("", label) for label in ("oil", "oil " * 500)]
    with pytest.raises(BackboneError, match=r"question 1 takes 5\d\d of the 512 tokens .* Shorten that label"):
        document_room(BACKBONE, queries, None)


@given(st.lists(st.lists(st.floats(-20, 20), min_size=3, max_size=3), min_size=1, max_size=6))
def test_pools_lie_between_the_least_and_the_most(parts):
    parts = np.array(parts)
    pooled = {pool: pool_windows(parts, pool) for pool in POOLS}
    assert (pooled["max"] == parts.max(0)).all()
    assert np.allclose(pooled["mean"], parts.mean(0))
    assert np.allclose(pooled["logmeanexp"], np.log(np.exp(parts).mean(0)))
    assert (pooled["mean"] <= pooled["logmeanexp"] + 1e-9).all()
    assert (pooled["logmeanexp"] <= pooled["max"] + 1e-9).all()


def test_chunking_finds_what_truncation_cannot_see():
    filler = "The committee met and approved the minutes of the previous session. " * 60
    text = filler + "Crude oil prices fell sharply as OPEC raised its output of petroleum."
    labels = LabelSet.of(["crude oil"])
    template = Template.of("article-about")
    cut = PerLabelScorer(template, Reading("truncate")).score(BACKBONE, [text], labels)
    whole = PerLabelScorer(template, Reading("chunk", "max")).score(BACKBONE, [text], labels)
    assert cut.truncated.tolist() == [True]
    assert whole.truncated.tolist() == [False]
    assert whole.log_odds[0, 0] > cut.log_odds[0, 0] + 1
    assert cut.forwards == 1
    assert whole.forwards > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"long_documents": "chunks"}, "Did you mean 'chunk'"),
        ({"pool": "maximum"}, "unknown pool 'maximum'"),
        ({"overlap": -1}, "0 or more, got -1"),
    ],
)
def test_unknown_options_are_errors(options, message):
    with pytest.raises(SetScoreError, match=message):
        Reading(**options)
