"""Asking about passages too: what they are, which labels they are asked about, and what becomes of their answers."""

import numpy as np
import pytest
from fakes import PlantedBackbone
from hypothesis import given
from hypothesis import strategies as st

from setscore import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.scorers.passages import DOUBT, LEAST, PASSAGE, SHARE, in_doubt, passages, with_passages

FILLER = "The meeting began at nine and everybody who was asked to come was there in time for it. "
LONG = FILLER * 3 + "The lift is out of order, by the way. " + FILLER * 3
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


def test_in_doubt_the_whole_and_the_passage_that_speaks_for_a_label_most_count_alike():
    whole = np.array([1.0, -1.0, -1.5, 1.5, -2.0, 4.0])
    parts = np.array([[0.0, 2.0, -9.0, 0.0, 3.0, -3.0], [3.0, -9.0, 2.5, -1.5, 9.0, -4.0]])
    assert with_passages(whole, parts).tolist() == [2.0, 0.5, -0.5, 1.125, -2.0, 4.0]
    assert with_passages(whole, np.empty((0, 6))).tolist() == whole.tolist()


ODDS = st.floats(-10, 10)


@given(ODDS, st.lists(ODDS, min_size=1, max_size=5))
def test_a_score_lies_between_the_whole_and_the_best_passage_and_is_the_wholes_without_doubt(whole, parts):
    values = np.array([whole])
    (found,) = with_passages(values, np.array(parts)[:, None])
    assert min(whole, max(parts)) - 1e-9 <= found <= max(whole, *parts) + 1e-9
    assert abs(found - whole) <= SHARE * abs(max(parts) - whole) + 1e-9
    assert in_doubt(values)[0] or found == whole


@given(st.floats(-3, 3), ODDS, st.floats(-1e-3, 1e-3))
def test_no_score_jumps_where_a_label_comes_into_doubt(whole, best, step):
    found = with_passages(np.array([whole, whole + step, DOUBT, -DOUBT]), np.full((1, 4), best))
    assert abs(found[1] - found[0]) <= abs(step) * (1 + 2 * SHARE / DOUBT * 14) + 1e-12
    assert found[2:].tolist() == [DOUBT, -DOUBT]


def test_a_label_that_was_not_asked_is_not_in_doubt():
    assert in_doubt(np.array([-np.inf, -DOUBT, -1.9, 0.0, 1.9, DOUBT])).tolist() == [
        False,
        False,
        True,
        True,
        True,
        False,
    ]


# With a model whose answers are planted: log-odds between -3 and 3 by document and label

MANY = [f"label {number}" for number in range(12)]
TEXTS = [FILLER * count + f"This was meeting number {number}. " + FILLER for number, count in enumerate((0, 3, 5, 8))]


def planted(attention="shared", labels=MANY, **options):
    backbone = PlantedBackbone(attention=attention)
    return SetScoreClassifier(labels, backbone=backbone, long_documents="passages", **options), backbone


@pytest.mark.parametrize("attention", ["shared", "exact"])
def test_passages_are_asked_about_the_labels_in_doubt_alone_and_counted(attention):
    model, backbone = planted(attention)
    scores = model.score_documents(TEXTS)
    whole = np.array([[backbone.affinity(text, label) for label in MANY] for text in TEXTS])
    doubt, parts = in_doubt(whole), [passages(text) for text in TEXTS]
    assert 0 < doubt.sum() < doubt.size
    assert [len(found) for found in parts] == [0, 4, 6, 9]
    questions = sum(len(found) * mine.sum() for found, mine in zip(parts, doubt, strict=True))
    assert backbone.queries == doubt.size + questions
    read = len(TEXTS) + sum(len(found) * mine.any() for found, mine in zip(parts, doubt, strict=True))
    assert scores.forwards == (read if attention == "shared" else doubt.size + questions)
    for row, found in enumerate(parts):
        said = np.array([[backbone.affinity(part, label) for label in MANY] for part in found]).reshape(-1, len(MANY))
        assert scores.log_odds[row].tolist() == pytest.approx(with_passages(whole[row], said).tolist())
    assert (scores.log_odds == whole)[~doubt].all()
    assert (scores.log_odds != whole)[1:][doubt[1:]].any()


@given(st.permutations(range(len(MANY))), st.permutations(range(len(TEXTS))))
def test_neither_other_labels_nor_other_documents_matter(labels, texts):
    expected = planted()[0].decision_function(TEXTS)
    model, _ = planted(labels=[MANY[i] for i in labels])
    assert model.decision_function([TEXTS[row] for row in texts]).tolist() == expected[np.ix_(texts, labels)].tolist()
    alone, _ = planted(labels=[MANY[labels[0]]])
    assert alone.decision_function([TEXTS[texts[0]]])[0, 0] == expected[texts[0], labels[0]]


def test_the_size_of_a_block_does_not_matter(monkeypatch):
    expected = planted()[0].score_documents(TEXTS)
    monkeypatch.setattr("setscore.scorers.per_label.BLOCK_QUERIES", len(MANY))
    found = planted()[0].score_documents(TEXTS)
    assert (found.log_odds.tolist(), found.forwards) == (expected.log_odds.tolist(), expected.forwards)


def test_labels_that_are_no_candidates_are_not_asked_about_passages():
    model, backbone = planted()
    everything = model.decision_function(TEXTS)
    backbone.queries = 0
    names = MANY[:3]
    found = model.decision_function(TEXTS, candidates=[names] * len(TEXTS))
    assert found[:, :3].tolist() == everything[:, :3].tolist()
    assert np.isneginf(found[:, 3:]).all()
    whole = np.array([[backbone.affinity(text, label) for label in names] for text in TEXTS])
    parts = np.array([len(passages(text)) for text in TEXTS])
    assert backbone.queries == whole.size + int(parts @ in_doubt(whole).sum(axis=1))


def test_without_any_doubt_nothing_more_is_asked():
    model, backbone = planted()
    backbone.affinity = lambda document, label: 5.0
    assert model.score_documents(TEXTS).forwards == len(TEXTS)
    assert (backbone.calls, backbone.queries) == (1, len(TEXTS) * len(MANY))


def test_a_store_answers_for_passages_too(tmp_path):
    model, backbone = planted(store=tmp_path)
    once = model.score_documents(TEXTS)
    asked = backbone.queries
    again = model.score_documents(TEXTS)
    assert backbone.queries == asked
    assert (again.log_odds.tolist(), again.forwards) == (once.log_odds.tolist(), once.forwards)


# With the embedded model


@pytest.fixture(scope="module")
def both():
    return {mode: SetScoreClassifier(LABELS, long_documents=mode) for mode in ("auto", "passages")}


def test_a_document_is_scored_as_its_whole_and_its_passages_are(both):
    read = both["passages"].decision_function([LONG, SHORT])
    alone = both["auto"].decision_function([LONG, *passages(LONG), SHORT])
    assert in_doubt(alone[0]).tolist() == [True, False]
    assert read[0] == pytest.approx(with_passages(alone[0], alone[1:-1]))
    assert read[1] == pytest.approx(alone[-1])  # a short text is read as ever


def test_what_one_sentence_says_is_found(both):
    before, after = (both[mode].decision_function([LONG])[0] for mode in ("auto", "passages"))
    assert after[0] > 1
    assert before[0] < 0
    assert after[1] == pytest.approx(before[1])


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
