"""What keeps evaluation data out of training."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.overlap import N, copies, evaluation_ngrams, forbidden_wordings, ngrams, normal, overlaps
from recipes.prepare import without_evaluation
from recipes.sources.rows import Row

WORDS = st.lists(st.integers(0, 9999).map(str), min_size=N + 2, max_size=40, unique=True)


@given(WORDS, WORDS, WORDS)
def test_a_copied_passage_is_found_wherever_it_stands(before, copied, after):
    evaluation = evaluation_ngrams([" ".join(copied)])
    assert overlaps(" ".join([*before, *copied, *after]), evaluation)


def test_case_and_punctuation_do_not_hide_it():
    evaluation = evaluation_ngrams(["one two three four five six seven eight nine"])
    assert overlaps("One, two; THREE four-five six seven eight: nine!", evaluation)


def test_one_common_phrase_is_no_copy():
    evaluation = evaluation_ngrams(["a b c d e f g h and nothing else is the same here"])
    assert not overlaps("before it a b c d e f g h but then quite another thing follows", evaluation)


def test_a_short_text_must_match_whole():
    evaluation = evaluation_ngrams(["thank you so much"])
    assert overlaps("Thank you so much!", evaluation)
    assert not overlaps("thank you so", evaluation)


@pytest.mark.parametrize("text", ["", "?!"])
def test_nothing_overlaps_nothing(text):
    assert not overlaps(text, evaluation_ngrams(["a text"]))
    assert not overlaps("a text", evaluation_ngrams([]))
    assert len(ngrams(text)) == 0


def test_every_inventory_is_forbidden():
    forbidden = forbidden_wordings()
    for wording in (
        "admiration",
        "Severe_Toxic",
        "the right to a fair trial",
        "crude",
        "machine learning",
        "fisheries",
    ):
        assert normal(wording) in forbidden
    assert normal("a picnic in the park") not in forbidden


def test_questions_and_answers_are_looked_at_too():
    copied = "the court found that the applicant had been held without a hearing for months"
    rows = [
        Row("a", "Another text.", asks=((f"Is it so that {copied}?", True),)),
        Row("b", "What did it find?", answer=f"It says {copied}."),
        Row("c", f"As reported, {copied}."),
        Row("d", "A text of its own.", asks=(("Is it short?", False),), answer="no"),
    ]
    clean, removed = without_evaluation(rows, iter([copied, "no", "is it short"]))
    assert [row.source for row in clean] == ["d"]
    assert removed["documents"] == {"a": 1, "b": 1, "c": 1}


def test_a_row_is_a_copy_where_one_of_its_texts_is():
    evaluation = evaluation_ngrams(["one two three four five six seven eight nine ten"])
    copied, other = "one two three four five six seven eight nine", "quite another text of this and that and more"
    assert copies([(other,), (other, copied), (), (copied,)], evaluation) == [False, True, False, True]
