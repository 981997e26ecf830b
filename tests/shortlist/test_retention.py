"""What a shortlist keeps, and ceilings that no method on it can pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setscore.errors import SetScoreError
from setscore.experiments import paper
from setscore.metrics import decision_metrics
from setscore.shortlist import f1_ceiling, retention, worst_labels

PAIRS = st.integers(1, 6).flatmap(
    lambda m: st.lists(
        st.lists(st.tuples(st.booleans(), st.booleans()), min_size=m, max_size=m), min_size=1, max_size=8
    )
)


@given(PAIRS)
def test_the_best_possible_predictor_meets_the_micro_ceiling_and_none_passes_it(rows):
    gold, kept = np.array(rows).transpose(2, 0, 1)
    found = retention(gold, kept)
    reached = decision_metrics(gold, gold & kept)
    if gold.any():
        assert reached["micro_f1"] == pytest.approx(found.micro_ceiling)
        assert reached["micro_recall"] == pytest.approx(found.pooled)
        assert reached["macro_f1_present"] == pytest.approx(found.macro_ceiling)
    assert found.dropped == (~kept).sum()
    everything = decision_metrics(gold, kept)
    assert everything["micro_f1"] <= found.micro_ceiling + 1e-12


def test_asking_everything_keeps_everything():
    gold = np.array([[True, False], [False, False]])
    found = retention(gold, np.ones_like(gold))
    assert (found.pooled, found.per_document, found.chance, found.micro_ceiling, found.dropped) == (1, 1, 1, 1, 0)
    assert np.isnan(found.per_label[1])
    assert worst_labels(found, ("a", "b")) == []


def test_pooled_is_not_the_mean_over_documents():
    gold = np.array([[True, True, True, True], [True, False, False, False]])
    kept = np.array([[True, False, False, False], [True, False, False, False]])
    found = retention(gold, kept)
    assert (found.pooled, found.per_document) == (2 / 5, (1 / 4 + 1) / 2)
    assert worst_labels(found, "abcd", 2) == [("b", 0.0), ("c", 0.0)]
    assert "keeps 40.0% of the gold labels (chance 25.0%), so micro-F1 is at most 57.1" in found.sentence()


def test_the_ceilings_of_the_paper():
    for k in ("16", "32", "64", "100"):
        recall = paper.printed("shortlist_recall", k, "eurlex", "recall") / 100
        assert round(100 * f1_ceiling(recall), 1) == paper.target(f"shortlist_recall/{k}/eurlex/micro_f1_ceiling").value


def test_other_shapes_are_refused():
    with pytest.raises(SetScoreError, match=r"gold labels have the shape \(1, 2\), the shortlist \(2, 1\)"):
        retention(np.ones((1, 2), dtype=bool), np.ones((2, 1), dtype=bool))
