"""Relations that must hold between a classifier's scores: candidates, orders, duplicates, long documents."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeBackbone
from hypothesis import given
from hypothesis import strategies as st

from setscore import Document, SetScoreClassifier, Template, TruncationWarning, load_backbone, read_labels
from setscore.errors import LabelError, TemplateError

DATA = Path(__file__).parent / "data"
LABELS = ["oil", "sports", "music", "crude oil prices"]
DOCUMENTS = [
    "Crude oil prices fell again on Monday.",
    "The match ended in a draw, and sports fans went home.",
    "New music from an old band.",
    "Music at sports events pays well, unlike oil.",
    "Nothing of interest happened here today.",
    "Oil oil oil.",
]
LONG = " ".join(f"word{i}" for i in range(700)) + " oil"  # beyond the budget of 600 tokens, and "oil" at the end


def classifier(labels=LABELS, **options):
    return SetScoreClassifier(labels, **{"backbone": FakeBackbone(), **options})


def test_labels_that_were_not_asked():
    candidates = [["oil"], LABELS, [], {"music", "sports"}, ["oil"], ("oil", "music")]
    model = classifier(threshold=0)  # even so, what was not asked is not predicted
    asked = np.array([[name in names for name in LABELS] for names in candidates])
    scores = model.score_documents(DOCUMENTS, candidates=candidates)
    assert model.backbone.queries == asked.sum()
    np.testing.assert_array_equal(scores.scored, asked)
    np.testing.assert_array_equal(np.isneginf(scores.log_odds), ~asked)
    np.testing.assert_array_equal(scores.log_odds[asked], model.decision_function(DOCUMENTS)[asked])
    assert (model.predict_proba(DOCUMENTS, candidates=candidates)[~asked] == 0).all()
    np.testing.assert_array_equal(model.predict(DOCUMENTS, candidates=candidates), asked)
    assert model.predict_labels(DOCUMENTS, candidates=candidates) == [set(names) for names in candidates]


def test_a_documents_own_candidates_count_unless_others_are_given():
    documents = [Document(DOCUMENTS[0], candidates=("oil",)), Document(DOCUMENTS[1]), DOCUMENTS[2]]
    expected = classifier().decision_function(DOCUMENTS[:3], candidates=[["oil"], LABELS, LABELS])
    np.testing.assert_array_equal(classifier().decision_function(documents), expected)
    everything = classifier().decision_function(documents, candidates=[LABELS] * 3)
    assert np.isfinite(everything).all()


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (
            [["oil"], ["musik"], ["oil"]],
            r"1 candidate is not in the inventory: 'musik' \(1 time, did you mean 'music'\?\)",
        ),
        ([["oil"]], "candidates were given for 1 document, but there are 3 documents"),
        ([["oil"]] * 4, "candidates were given for 4 documents, but there are 3 documents"),
        (["oil", "oil", "oil"], "candidates of document 0 must be a list of names, got the string 'oil'"),
    ],
)
def test_candidates_that_cannot_be_used(candidates, message):
    with pytest.raises(LabelError, match=message):
        classifier().predict(DOCUMENTS[:3], candidates=candidates)


@given(st.permutations(range(len(LABELS))))
def test_permuting_the_labels_permutes_the_scores(order):
    permuted = classifier([LABELS[i] for i in order]).decision_function(DOCUMENTS)
    np.testing.assert_array_equal(permuted, classifier().decision_function(DOCUMENTS)[:, order])


@pytest.mark.parametrize("attention", ["shared", "exact"])
def test_permuting_the_labels_permutes_the_scores_of_the_embedded_model_to_the_last_bit(attention):
    labels = read_labels(DATA / "everyday_labels.yaml").labels
    scores = SetScoreClassifier(labels, attention=attention).decision_function(DOCUMENTS)
    order = np.random.default_rng(0).permutation(len(labels))
    permuted = SetScoreClassifier([labels[i] for i in order], attention=attention).decision_function(DOCUMENTS)
    np.testing.assert_array_equal(permuted, scores[:, order])


def test_with_shared_attention_the_model_is_fed_the_same_whatever_the_order_of_the_labels():
    # Why the scores above are equal to the last bit, and not by luck: rounding follows the place in the row.
    template = Template.of("express")
    queries = [template.query(DOCUMENTS[0], name) for name in ["oil", "art", "law", "music", "crude oil", "sports"]]
    backbone = load_backbone("setscore-mini")
    (forwards,), (backwards,) = backbone.batches(queries), backbone.batches(queries[::-1])
    np.testing.assert_array_equal(forwards.token_ids, backwards.token_ids)
    np.testing.assert_array_equal(forwards.slots, backwards.slots)


@given(st.lists(st.integers(0, len(DOCUMENTS) - 1), min_size=1, max_size=12))
def test_neither_the_order_of_documents_nor_duplicates_matter(rows):
    scores = classifier().decision_function([DOCUMENTS[i] for i in rows])
    np.testing.assert_array_equal(scores, classifier().decision_function(DOCUMENTS)[rows])


def test_duplicates_score_the_same_with_the_embedded_model():
    rows = [0, 1, 0, 2, 1, 0]
    scores = SetScoreClassifier(LABELS).decision_function([DOCUMENTS[i] for i in rows])
    for row, original in enumerate(rows):
        np.testing.assert_array_equal(scores[row], scores[rows.index(original)])


@pytest.mark.parametrize("pool", ["max", "mean", "logmeanexp"])
def test_long_documents_are_read_whole_in_windows(pool):
    model = classifier(["oil"], long_documents="chunk", pool=pool, overlap=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = model.score_documents([LONG])
    assert model.backbone.queries == scores.forwards == 2
    assert not scores.truncated.any()
    words = LONG.split()
    first, second = classifier(["oil"]).decision_function([" ".join(words[:600]), " ".join(words[600:])])[:, 0]
    assert first < 0 < second  # only the second window holds the word
    pooled = {"max": second, "mean": (first + second) / 2, "logmeanexp": np.log((np.exp(first) + np.exp(second)) / 2)}
    assert scores.log_odds[0, 0] == pytest.approx(pooled[pool])


def test_truncation_is_counted_and_reported():
    model = classifier(["oil"])
    with pytest.warns(
        TruncationWarning, match="2 of 3 documents were truncated: .*long_documents='chunk' reads them whole"
    ):
        scores = model.score_documents([LONG, "oil", LONG])
    assert scores.truncated.tolist() == [True, False, True]
    assert scores.log_odds[0, 0] < 0 < scores.log_odds[1, 0]  # the word stood in the part that was not read


def test_a_label_before_the_document_needs_exact_attention():
    template = "Is this about {label}?\n{document}\nAnswer:"
    with pytest.raises(TemplateError, match=r"names the label before the document.*attention='exact'"):
        SetScoreClassifier(LABELS, template=template).predict(DOCUMENTS)
    model = SetScoreClassifier(["oil", "sports"], template=template, attention="exact")
    log_odds = model.decision_function(DOCUMENTS[:2])
    assert log_odds[0, 0] > log_odds[0, 1]
    assert log_odds[1, 1] > log_odds[1, 0]
    scores = classifier(template=template, backbone=FakeBackbone("exact")).score_documents(DOCUMENTS)
    assert scores.forwards == len(DOCUMENTS) * len(LABELS)
