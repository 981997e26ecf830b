"""Per-label scoring: one question per pair, counted, in order, limited to candidates, with progress."""

import numpy as np
import pytest

from setscore.backbones import load_backbone
from setscore.errors import TemplateError
from setscore.prompts import Template
from setscore.records import LabelSet
from setscore.scorers import PerLabelScorer, per_label

TEXTS = ["Crude prices fell again.", "The match ended two to one after extra time.", "Rain is expected in the north."]
LABELS = LabelSet.of({"oil": "crude oil", "sports": None, "weather": "the weather"})


class Recorder:
    """Passes queries on and remembers them."""

    def __init__(self, backbone):
        self.backbone, self.spec, self.attention, self.asked = backbone, backbone.spec, backbone.attention, []

    def spans(self, text):
        return self.backbone.spans(text)

    def log_odds(self, queries):
        self.asked += queries
        return self.backbone.log_odds(queries)


@pytest.fixture(params=["shared", "exact"])
def recorder(request):
    return Recorder(load_backbone("setscore-mini", attention=request.param))


def test_asks_each_pair_once_and_counts_forwards(recorder):
    scores = PerLabelScorer(Template.of("express")).score(recorder, TEXTS, LABELS)
    asked = {(query.document, query.question[0]) for query in recorder.asked}
    expected = {
        (text, f"\n\nQuestion: Does this document express {label}?\nAnswer:")
        for text in TEXTS
        for label in ("oil (crude oil)", "sports", "weather (the weather)")  # with descriptions where there are any
    }
    assert asked == expected
    assert len(recorder.asked) == len(expected)
    assert scores.forwards == (3 if recorder.attention == "shared" else 9)
    assert scores.scored.all()
    assert not scores.truncated.any()


def test_scores_belong_to_their_document_and_label(recorder):
    scores = PerLabelScorer(Template.of("express")).score(recorder, TEXTS, LABELS)
    for row, text in enumerate(TEXTS):
        for column, label in enumerate(LABELS.texts):
            (alone,) = recorder.log_odds([Template.of("express").query(text, label)])
            assert scores.log_odds[row, column] == pytest.approx(alone[0], abs=0.1)


def test_candidates_limit_what_is_asked(recorder):
    wanted = np.array([[True, False, False], [False, False, False], [True, False, True]])
    scores = PerLabelScorer(Template.of("express")).score(recorder, TEXTS, LABELS, candidates=wanted)
    assert len(recorder.asked) == 3
    assert (np.isfinite(scores.log_odds) == wanted).all()
    assert (scores.log_odds[~wanted] == -np.inf).all()
    assert scores.forwards == (2 if recorder.attention == "shared" else 3)


def test_blocks_change_nothing_and_report_progress(recorder, monkeypatch):
    scorer = PerLabelScorer(Template.of("express"))
    whole = scorer.score(recorder, TEXTS, LABELS)
    monkeypatch.setattr(per_label, "BLOCK_QUERIES", 6)
    done = []
    pieces = scorer.score(recorder, TEXTS, LABELS, progress=lambda *told: done.append(told))
    assert done == [("scoring", 2, 3), ("scoring", 3, 3)]
    assert np.abs(whole.log_odds - pieces.log_odds).max() < 0.1
    assert whole.forwards == pieces.forwards


def test_no_documents_give_no_scores(recorder):
    scores = PerLabelScorer(Template.of("express")).score(recorder, [], LABELS)
    assert scores.log_odds.shape == (0, 3)
    assert scores.forwards == 0


def test_a_label_before_the_document_cannot_be_shared(recorder):
    template = Template.of("Is {label} in this text?\n{document}\nAnswer:")
    scorer = PerLabelScorer(template)
    if recorder.attention == "shared":
        with pytest.raises(TemplateError, match="use attention='exact'"):
            scorer.score(recorder, TEXTS, LABELS)
    else:
        assert np.isfinite(scorer.score(recorder, TEXTS, LABELS).log_odds).all()
        assert recorder.asked[0].prefix == "Is oil (crude oil) in this text?\n"
