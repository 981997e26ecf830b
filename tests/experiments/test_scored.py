import numpy as np
import pytest
from fakes import FakeBackbone

from setscore import SetScoreClassifier, __version__
from setscore.errors import DocumentError, LabelError, SetScoreError, TruncationWarning
from setscore.experiments import Scored, evaluation, score_dataset
from setscore.store import MemoryStore


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_QUESTIONS", 30)  # ten documents of three labels


def test_scores_are_those_of_the_classifier(dataset, classifier):
    found = score_dataset(dataset, classifier)
    expected = SetScoreClassifier(dataset.labels, backbone=FakeBackbone()).decision_function(dataset.texts)
    np.testing.assert_array_equal(found.log_odds, expected)
    np.testing.assert_array_equal(found.gold, dataset.gold)
    assert (found.ids, found.labels, len(found)) == (dataset.ids, dataset.labels.names, 60)
    assert found.config == {
        "backbone": "fake",
        "model": "fake",
        "identity": "fake shared 2000",
        "template": "Document:\n{document}\n\nQuestion: Does this document express {label}?\nAnswer:",
        "attention": "shared",
        "verbalizer": "yes/no",
        "long_documents": "truncate",
        "temperature": 1.0,
        "competition": 0.0,
        "handicap": 1.0,
        "label_text": "name",
        "version": __version__,
        "fingerprint": dataset.fingerprint,
    }


@pytest.mark.usefixtures("small_blocks")
def test_blocks_do_not_matter_and_are_told(dataset):
    told = []
    blocks = score_dataset(
        dataset, SetScoreClassifier(backbone=FakeBackbone()), progress=lambda *step: told.append(step)
    )
    whole = SetScoreClassifier(dataset.labels, backbone=FakeBackbone()).decision_function(dataset.texts)
    np.testing.assert_array_equal(blocks.log_odds, whole)
    assert told == [("scoring", done, 60) for done in range(0, 61, 10)]


class Dying(FakeBackbone):
    """Is killed when it is asked for the third time."""

    def log_odds(self, queries):
        if self.calls == 2:
            raise KeyboardInterrupt
        return super().log_odds(queries)


@pytest.mark.usefixtures("small_blocks")
def test_a_run_that_was_killed_goes_on_where_it_stopped(dataset, backbone, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        score_dataset(dataset, SetScoreClassifier(backbone=Dying(), store=tmp_path))
    resumed = score_dataset(dataset, SetScoreClassifier(backbone=backbone, store=tmp_path))
    assert backbone.queries == 40 * 3
    np.testing.assert_array_equal(
        resumed.log_odds, score_dataset(dataset, SetScoreClassifier(backbone=backbone)).log_odds
    )


def test_truncated_documents_are_counted(dataset):
    classifier = SetScoreClassifier(backbone=FakeBackbone(context=75), overlap=1)
    long = dataset.take([0, 1])
    long = type(long)(long.name, long.split, ("word " * 100, long.texts[1]), long.ids, long.labels, long.gold)
    with pytest.warns(TruncationWarning, match="1 of 2 documents was truncated"):
        found = score_dataset(long, classifier)
    assert found.truncated.tolist() == [True, False]


def test_a_document_that_has_no_number_is_named(dataset):
    class Nan(FakeBackbone):
        def _answer(self, query):
            return np.array([np.nan]) if dataset.texts[3] == query.document else super()._answer(query)

    with pytest.raises(DocumentError, match="1 of 60 documents cannot be scored: document"):
        score_dataset(dataset, SetScoreClassifier(backbone=Nan(), store=MemoryStore()))


def test_a_fitted_classifier_is_asked_as_it_is(dataset, backbone):
    fitted = SetScoreClassifier(dataset.labels, backbone=backbone, scorer="milp").fit(dataset.texts, dataset.gold)
    found = score_dataset(dataset, fitted)
    np.testing.assert_array_equal(found.log_odds, fitted.decision_function(dataset.texts))
    assert found.config["learned"] == dict(fitted.fitted_.learned)
    assert found.config["scorer"] == "milp"


def test_mistakes_are_named(dataset, backbone):
    with pytest.raises(LabelError, match="the classifier has other labels than the dataset"):
        score_dataset(dataset, SetScoreClassifier(["joy"], backbone=backbone))
    with pytest.raises(SetScoreError, match="goemotions validation has no documents to score"):
        score_dataset(dataset.take([]), SetScoreClassifier(backbone=backbone))
    with pytest.raises(SetScoreError, match="there is something else among them"):
        Scored("n", "", ("a",), ("1",), np.array([[np.nan]]), np.array([[True]]), np.array([False]))
