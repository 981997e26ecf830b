"""The drop-in for transformers' zero-shot pipeline: its call, its return shape, its corner cases."""

import numpy as np
import pytest
from fakes import FakeBackbone
from scipy.special import expit, softmax

from setscore import SetScoreClassifier, pipeline
from setscore.errors import LabelError, SetScoreError, TemplateError
from setscore.pipelines import ZeroShotPipeline

TEXT = "Crude oil prices fell again on Monday."
TEXTS = [TEXT, "She won the match in straight sets.", "A new album after ten quiet years."]
LABELS = ["music", "sports", "oil"]


def fake():
    return ZeroShotPipeline(FakeBackbone(), "auto")


def log_odds(texts, labels, **options):
    return SetScoreClassifier(labels, backbone=FakeBackbone(), **options).decision_function(texts)


def test_as_in_the_documentation_of_transformers():
    result = pipeline("zero-shot-classification")(TEXT, candidate_labels=LABELS)
    assert list(result) == ["sequence", "labels", "scores"]
    assert result["sequence"] == TEXT
    assert result["labels"][0] == "oil"
    assert sorted(result["labels"]) == sorted(LABELS)
    assert result["scores"] == sorted(result["scores"], reverse=True)
    assert all(type(score) is float for score in result["scores"])


@pytest.mark.parametrize("sequences", [TEXTS, tuple(TEXTS), TEXTS[:1]], ids=["list", "tuple", "list of one"])
def test_a_list_gives_a_list_in_its_order(sequences):
    results = fake()(sequences, LABELS)
    assert isinstance(results, list)
    assert results == [fake()(text, LABELS) for text in sequences]


@pytest.mark.parametrize("labels", ["music,sports,oil", " music , sports,, oil, ", tuple(LABELS)])
def test_labels_in_one_string_are_split_at_commas(labels):
    assert fake()(TEXT, labels) == fake()(TEXT, LABELS)


def test_by_default_the_scores_are_a_softmax_and_add_up_to_one():
    for result, expected in zip(fake()(TEXTS, LABELS), softmax(log_odds(TEXTS, LABELS), axis=1), strict=True):
        assert sum(result["scores"]) == pytest.approx(1)
        assert dict(zip(result["labels"], result["scores"], strict=True)) == pytest.approx(
            dict(zip(LABELS, expected, strict=True))
        )


def test_multi_label_scores_are_independent_probabilities():
    for result, expected in zip(fake()(TEXTS, LABELS, multi_label=True), expit(log_odds(TEXTS, LABELS)), strict=True):
        assert dict(zip(result["labels"], result["scores"], strict=True)) == pytest.approx(
            dict(zip(LABELS, expected, strict=True))
        )
        alone = fake()(result["sequence"], ["oil"], multi_label=True)
        assert alone["scores"][0] == pytest.approx(expected[LABELS.index("oil")])


def test_labels_compete_unless_they_are_asked_each_for_itself():
    labels, text = ["refund", "complaint"], "The lamp is not as bright as I had hoped."  # neither stands out

    def scores(labels, competition):
        result = pipeline(competition=competition)(text, labels, multi_label=True)
        return dict(zip(result["labels"], result["scores"], strict=True))

    alone = scores(["complaint"], 0.0) | scores(["refund"], 0.0)
    assert scores(labels, 0.0) == pytest.approx(alone, abs=1e-3)
    own = SetScoreClassifier(labels).predict_proba([text])[0]
    assert scores(labels, None) == pytest.approx(dict(zip(labels, own, strict=True)))
    assert max(abs(scores(labels, None)[label] - alone[label]) for label in labels) > 0.02
    with pytest.raises(
        SetScoreError, match=r"^competition lies between 0 \(independent\) and 1 \(one label\), got 2\."
    ):
        scores(labels, 2)


def test_a_single_label_gets_its_own_probability_as_in_transformers():
    # A softmax over one label is 1 whatever the text says.
    single = fake()(TEXTS, ["oil"])
    assert single == fake()(TEXTS, ["oil"], multi_label=True)
    assert single[0]["scores"][0] > 0.5 > single[1]["scores"][0]


@pytest.mark.parametrize(
    ("hypothesis", "question"),
    [
        (None, "Does this document express {label}?"),
        ("Is this news about {}?", "Is this news about {label}?"),
        ("Is this news about {}? ", "Is this news about {label}? "),
        ("This text is about {}.", "Is this statement true? This text is about {label}."),
        ("{}", "Is this statement true? {label}"),
    ],
)
def test_a_hypothesis_becomes_a_question_and_a_question_stays(hypothesis, question):
    result = fake()(TEXT, LABELS, hypothesis_template=hypothesis, multi_label=True)
    expected = expit(log_odds([TEXT], LABELS, template=question))[0]
    assert dict(zip(result["labels"], result["scores"], strict=True)) == pytest.approx(
        dict(zip(LABELS, expected, strict=True))
    )


def test_attention_reaches_the_embedded_model():
    for attention in ("shared", "exact"):
        result = pipeline(attention=attention)(TEXT, LABELS, multi_label=True)
        expected = SetScoreClassifier(LABELS, attention=attention).predict_proba([TEXT])[0]
        np.testing.assert_array_equal(sorted(result["scores"]), sorted(expected))


@pytest.mark.parametrize("labels", [[], "", " , "])
def test_no_labels(labels):
    with pytest.raises(LabelError, match="there are no candidate labels; give at least one"):
        fake()(TEXT, labels)


@pytest.mark.parametrize("hypothesis", ["This text is about it.", "{} and {}", ""])
def test_a_hypothesis_needs_one_place_for_the_label(hypothesis):
    with pytest.raises(TemplateError, match=r"a hypothesis template has {} exactly once for the label, got"):
        fake()(TEXT, LABELS, hypothesis_template=hypothesis)


def test_other_mistakes_explain_themselves():
    with pytest.raises(
        SetScoreError, match=r"the only task is 'zero-shot-classification', got 'zero-shot-clasification'"
    ):
        pipeline("zero-shot-clasification")
    with pytest.raises(SetScoreError, match=r"Did you mean 'setscore-mini'.* Or leave out model="):
        pipeline(model="setscore-mimi")
    with pytest.raises(SetScoreError, match=r"setscore-small runs on the CPU; leave out device=0"):
        pipeline(device=0)
    with pytest.raises(LabelError, match="label 'oil' is listed twice"):
        fake()(TEXT, ["oil", "oil"])
    with pytest.raises(SetScoreError, match="1 of 2 documents cannot be scored: document 1"):
        fake()([TEXT, ""], LABELS)


def test_arguments_of_the_original_that_change_nothing_are_taken():
    plain = pipeline()(TEXT, LABELS)
    assert pipeline(device="cpu", batch_size=8)(TEXT, LABELS, batch_size=4, truncation=True) == plain


def test_candidate_labels_may_have_descriptions():
    result = pipeline()(TEXT, {"a": "crude oil", "b": None}, multi_label=True)
    assert sorted(result["labels"]) == ["a", "b"]
