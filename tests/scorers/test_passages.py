"""Asking about passages too: what they are, that short texts have none, and what becomes of their answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setscore import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.scorers.passages import LEAST, PASSAGE, passages, with_passages

FILLER = "The meeting began at nine and everybody who was asked to come was there in time for it. "
LONG = FILLER * 6 + "The lift is broken again and two guests were stuck in it for an hour! " + FILLER * 6
SHORT = "The lift is broken again."
LABELS = {"broken lift": "a lift that does not work", "praise": "praise or thanks"}


def test_passages_hold_every_word_in_order():
    found = passages(LONG)
    assert " ".join(found).split() == LONG.split()
    assert all(len(passage.split()) >= PASSAGE for passage in found)
    assert len(found) > 5


@pytest.mark.parametrize("text", ["", SHORT, "word " * (LEAST - 1), "word " * 500, "\n \n"])
def test_short_texts_and_single_sentences_have_none(text):
    assert passages(text) == []


@given(st.text(alphabet="ab .!?\n\t\u2028", max_size=900))
def test_no_word_is_lost_and_no_passage_is_blank(text):
    found = passages(text)
    assert not found or " ".join(found).split() == text.split()
    assert all(passage.strip() for passage in found)


def test_the_whole_and_the_passage_that_speaks_for_a_label_most_count_alike():
    whole, parts = np.array([1.0, -4.0]), np.array([[0.0, 2.0], [3.0, -9.0]])
    assert with_passages(whole, parts).tolist() == [2.0, -1.0]
    assert with_passages(whole, np.empty((0, 2))).tolist() == [1.0, -4.0]


@pytest.fixture(scope="module")
def both():
    return {mode: SetScoreClassifier(LABELS, long_documents=mode) for mode in ("auto", "passages")}


def test_a_document_is_scored_as_its_whole_and_its_passages_are(both):
    read = both["passages"].decision_function([LONG, SHORT])
    alone = both["auto"].decision_function([LONG, *passages(LONG), SHORT])
    assert read[0] == pytest.approx((alone[0] + alone[1:-1].max(axis=0)) / 2)
    assert read[1] == pytest.approx(alone[-1])  # a short text is read as ever


def test_what_one_sentence_says_is_found(both):
    before, after = (both[mode].predict_proba([LONG])[0] for mode in ("auto", "passages"))
    assert after[0] > max(0.5, before[0])
    assert after[1] < 0.5


def test_embeddings_are_those_of_the_document(both):
    vectors = [both[mode].classify([LONG, SHORT], embed=True).scores.vectors for mode in ("auto", "passages")]
    assert vectors[0] == pytest.approx(vectors[1])


def test_candidates_and_counted_forwards(both):
    found = both["passages"].classify([LONG, SHORT])
    assert found.scores.forwards == 1 + len(passages(LONG)) + 1


def test_it_is_saved_and_needs_the_scorer_per_label(both, tmp_path):
    both["passages"].save(tmp_path / "c.json")
    again = SetScoreClassifier.load(tmp_path / "c.json")
    assert again.decision_function([LONG]).tolist() == both["passages"].decision_function([LONG]).tolist()
    with pytest.raises(SetScoreError, match="long_documents='passages' asks label by label: it needs the scorer per_"):
        SetScoreClassifier(LABELS, long_documents="passages", scorer="unary").predict([LONG])
