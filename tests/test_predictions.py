"""The value at the end of the way: all other answers are views of it, and a bad document costs no other."""

import json

import numpy as np
import pytest
from fakes import FakeBackbone
from hypothesis import given
from hypothesis import strategies as st

from setscore import Document, Prediction, Predictions, SetScoreClassifier
from setscore.errors import DocumentError, ScoreError, SetScoreError, TruncationWarning

LABELS = ["oil", "sports", "music"]
TEXTS = ["Crude oil prices fell.", "Music at sports events.", "Nothing happened.", "Oil, music and sports."]
GOLD = [["oil"], ["music", "sports"], [], ["oil", "music", "sports"]]


def classifier(**options):
    return SetScoreClassifier(LABELS, **{"backbone": FakeBackbone(), **options})


class Failing(FakeBackbone):
    """Has no number for documents that hold the word "cursed"; counts how often it is asked about each document."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def log_odds(self, queries):
        self.asked += [query.document for query in queries]
        if bad := [number for number, query in enumerate(queries) if "cursed" in query.document]:
            raise ScoreError("fake gave NaN", tuple(bad))
        return super().log_odds(queries)


@pytest.mark.parametrize("fitted", [False, True])
def test_every_answer_is_a_view_of_the_predictions(fitted):
    model = classifier(calibration="temperature?margin=0.1", threshold=0.4, head="readout")
    if fitted:
        model.fit(TEXTS, GOLD)
    found = model.classify(TEXTS)
    assert isinstance(found, Predictions)
    np.testing.assert_array_equal(model.decision_function(TEXTS), found.scores.log_odds)
    np.testing.assert_array_equal(model.predict_proba(TEXTS), found.probabilities)
    np.testing.assert_array_equal(model.predict(TEXTS), found.decisions)
    assert model.predict_labels(TEXTS) == [set(prediction.labels) for prediction in found]
    assert found.regime == found[0].regime == model.regime == ("learned" if fitted else "zero-shot")
    assert (found.undecided is not None) == fitted


def test_one_prediction():
    one = classifier().classify([Document("Oil, oil and music.", id="a7")])[0]
    assert isinstance(one, Prediction)
    assert (one.id, one.error, one.truncated, one.undecided) == ("a7", None, False, None)
    assert set(one.labels) == {"oil", "music"}
    assert one.probabilities[one.labels[0]] >= one.probabilities[one.labels[1]]
    assert list(one.probabilities) == list(one.log_odds) == list(one.asked) == LABELS
    assert one.probabilities["sports"] < 0.5
    assert one.raw["oil"] == pytest.approx(1 / (1 + np.exp(-one.log_odds["oil"])))


def test_it_is_a_sequence_and_prints_well():
    found = classifier().classify(TEXTS)
    assert len(found) == 4
    assert found[-1] == found[3] == list(found)[3] == found[2:][1]
    with pytest.raises(IndexError):
        _ = found[4]
    lines = str(found).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("0: oil 9")
    assert lines[2] == "2: no label"
    assert repr(found) == "<Predictions of 4 documents over 3 labels, zero-shot>"
    assert str(classifier().classify(TEXTS * 10)).splitlines()[-1] == "and 20 more"


def test_plain_values_and_a_data_frame():
    found = classifier().classify([*TEXTS, "", "Rain."], candidates=[LABELS] * 5 + [["oil"]])
    values = json.loads(json.dumps(found.to_dict()))
    assert values[0]["labels"] == ["oil"]
    assert values[4] == {"id": "4", "error": "is empty or blank", "regime": "zero-shot"}
    assert list(values[5]["probabilities"]) == ["oil"]
    frame = found.to_frame()
    assert frame.columns.tolist() == ["labels", *LABELS, "truncated", "error"]
    assert frame.index.tolist() == ["0", "1", "2", "3", "4", "5"]
    assert frame["labels"].tolist()[0] == ["oil"]
    assert frame["oil"].isna().tolist() == [False] * 4 + [True, False]
    assert frame["music"].isna().tolist() == [False] * 4 + [True, True]
    assert frame["error"].tolist()[4] == "is empty or blank"


BAD = ["", "   ", None, 7, "\ud800 lone", Document("text", candidates=("oyl",))]
SAID = [
    "is empty or blank",
    "is empty or blank",
    "is None, not a text",
    "is 7 of type int, not a text",
    "holds a lone surrogate (U+D800) at character 0, which is no valid text; decode the source with errors='replace'",
    "asks an unknown label 'oyl'. Did you mean 'oil'? Known: music, oil, sports.",
]


def test_documents_that_cannot_be_scored_are_errors_of_their_row():
    found = classifier().classify([BAD[0], TEXTS[0], *BAD[1:], TEXTS[1]])
    assert [prediction.error for prediction in found] == [SAID[0], None, *SAID[1:], None]
    assert found[1].labels == classifier().classify(TEXTS)[0].labels
    assert found[0] == Prediction("0", error=SAID[0])
    assert found.dropped == 0
    with pytest.raises(DocumentError, match=r"6 of 8 documents cannot be scored: document 0: is empty or blank;"):
        found.checked()
    assert len(classifier().classify(BAD)) == len(BAD)  # nothing to ask at all


@given(st.lists(st.booleans(), min_size=1, max_size=9))
def test_a_document_without_a_number_is_parted_from_the_others(cursed):
    texts = [f"{'cursed ' if bad else ''}text {number} of oil" for number, bad in enumerate(cursed)]
    found = classifier(backbone=Failing()).classify(texts)
    alone = classifier().classify(texts)
    for row, bad in enumerate(cursed):
        assert found[row].error == ("could not be scored: fake gave NaN" if bad else None)
        if not bad:
            np.testing.assert_array_equal(found.scores.log_odds[row], alone.scores.log_odds[row])
    if any(cursed):
        with pytest.raises(DocumentError, match="could not be scored: fake gave NaN"):
            classifier(backbone=Failing()).predict(texts)


def test_a_caller_s_mistake_is_an_error_and_no_documents_are_no_predictions():
    with pytest.raises(DocumentError, match=r"a single string was given where a list of documents is expected"):
        classifier().classify("oil")
    assert list(classifier().classify([])) == []
    with pytest.raises(SetScoreError, match="there are no documents; pass at least one"):
        classifier().predict([])


def test_truncation_and_dropped_labels_are_data_and_only_predict_warns(recwarn):
    long = "word " * 700
    found = classifier(shortlist="bm25:1").classify([f"oil {long}", "music"])
    assert not recwarn.list
    assert [prediction.truncated for prediction in found] == [True, False]
    assert found.dropped == 4
    with pytest.warns(TruncationWarning, match="1 of 2 documents was truncated"):
        classifier().predict([f"oil {long}", "music"])


def test_progress_is_told_with_one_signature():
    told = []
    classifier().classify(TEXTS, progress=lambda *what: told.append(what))
    assert told[-1] == ("scoring", 4, 4)
    classifier().fit(TEXTS, GOLD, progress=lambda *what: told.append(what))
    assert told[-1] == ("scoring", 4, 4)


def test_check_finds_what_cannot_be_used_without_a_document():
    assert classifier().check()
    for options, message in (
        ({"template": "expres"}, "Did you mean 'express'"),
        ({"scorer": "jrs"}, "Did you mean 'jsr'"),
        ({"pool": "meen"}, "Did you mean 'mean'"),
        ({"shortlist": 0}, "an empty shortlist asks nothing"),
        ({"blend": "cosin"}, "Did you mean 'cosine'"),
        ({"calibration": "papr"}, "Did you mean 'paper'"),
        ({"threshold": 2}, "a threshold lies between 0 and 1"),
        ({"competition": -1}, "competition lies between 0"),
        ({"backbone": "setscore-mimi"}, "Did you mean 'setscore-mini'"),
        ({"backbone": "setscore-mini", "attention": "exakt"}, "Did you mean 'exact'"),
        ({"backbone": "setscore-mini", "verbalizer": "yes/non"}, "Did you mean 'yes/no'"),
    ):
        with pytest.raises(SetScoreError, match=message):
            classifier(**options).check()


def test_a_threshold_by_hand_makes_a_copy():
    model = classifier().fit(TEXTS, GOLD)
    strict = model.with_threshold(1.0)
    assert strict.predict(TEXTS).sum() == 0
    assert model.predict(TEXTS).sum() > 0
    assert strict.regime == model.regime == "learned"
    assert classifier().with_threshold(0.0).predict(TEXTS).all()
