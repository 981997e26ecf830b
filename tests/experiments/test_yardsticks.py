import sys

import numpy as np
import pytest

from setscore.encoders import load_encoder
from setscore.errors import MissingExtraError
from setscore.experiments import score_dataset
from setscore.experiments.evaluation import draw_trials
from setscore.experiments.yardsticks import cosine, every_label, label_prior, score_cosine
from setscore.store import MemoryStore

WORDS = ("joy", "anger", "fear")


def encode(texts):
    """How often each word stands in a text, and a little of everything."""
    return np.array([[0.1, *(text.count(word) for word in WORDS)] for text in texts])


@pytest.fixture
def trial(dataset, classifier):
    return draw_trials(score_dataset(dataset, classifier), [13], size=30)[0]


def test_the_label_prior_reads_no_text(trial):
    row = label_prior(trial.validation, trial.test)
    shuffled = trial.test.take(np.arange(len(trial.test)))
    object.__setattr__(shuffled, "log_odds", -shuffled.log_odds)
    assert label_prior(trial.validation, shuffled) == row
    assert (row.name, row.kind) == ("label prior", "yardstick")
    taken = int(row.metrics["cardinality_predicted"])
    assert row.metrics["cardinality_predicted"] == taken  # every document gets the same labels
    rates = trial.validation.gold.mean(axis=0)
    f1 = [2 * s.sum() / (k + rates.sum()) for k in (1, 2, 3) for s in [np.sort(rates)[::-1][:k]]]
    assert taken == 1 + int(np.argmax(f1))  # as many of the most frequent labels as micro-F1 on validation likes best


def test_every_label_has_full_recall(trial):
    row = every_label(trial.test)
    assert (row.name, row.metrics["micro_recall"], row.metrics["cardinality_predicted"]) == ("every label", 1.0, 3.0)


def test_cosine(dataset):
    store = MemoryStore()
    scored = score_cosine(dataset, encode, store=store)
    assert scored.log_odds.max() <= 1 + 1e-6
    one, other = encode(dataset.texts[3:4])[0], encode(["anger"])[0]
    assert scored.log_odds[3, 1] == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other), abs=1e-6)

    def never(_):
        raise AssertionError("the saved scores were not used")

    np.testing.assert_array_equal(score_cosine(dataset, never, store=store).log_odds, scored.log_odds)
    trial = draw_trials(scored, [13], size=30)[0]
    rows = cosine(trial.validation, trial.test, ["auto", "paper"])
    assert [(row.name, row.kind) for row in rows] == [("cosine, auto", "yardstick"), ("cosine, paper", "yardstick")]
    assert all(row.metrics["micro_f1"] > 0.5 for row in rows)


def test_without_gold_labels_a_cosine_stays_a_cosine(dataset):
    empty = type(dataset)("n", "", dataset.texts, dataset.ids, dataset.labels, np.zeros_like(dataset.gold))
    trial = draw_trials(score_cosine(empty, encode), [13], size=30)[0]
    assert cosine(trial.validation, trial.test, ["temperature"])[0].metrics["micro_f1"] == 0


def test_a_missing_encoder_says_what_to_install(monkeypatch, dataset):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    load_encoder.cache_clear()
    with pytest.raises(MissingExtraError, match=r"the cosine yardstick needs the extra 'sbert': pip install"):
        score_cosine(dataset)
