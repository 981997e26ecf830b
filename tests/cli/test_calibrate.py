"""What `setscore calibrate` suggests: a blend, where the labelled documents say that it is better."""

import sys

import numpy as np
import pytest

from setscore.cli.calibrate import _suggested
from setscore.datasets import Dataset
from setscore.experiments import Scored, cross_validated
from setscore.metrics import Comparison
from setscore.records import LabelSet

SUBJECTS = {
    "cooking": ["Boil the pasta in salted water", "Whisk the eggs with sugar", "Fry the onions in butter"],
    "astronomy": ["The telescope saw a distant galaxy", "A comet passes the sun", "Stars form in the nebula"],
    "football": ["The striker scored in extra time", "A late penalty won the match", "The goalkeeper was injured"],
}


def slice_of(documents):
    """Documents on one subject each, and their gold labels."""
    subjects = [list(SUBJECTS)[n % 3] for n in range(documents)]
    texts = tuple(f"{SUBJECTS[subject][n // 3 % 3]}, note {n}." for n, subject in enumerate(subjects))
    gold = np.array([[name == subject for name in SUBJECTS] for subject in subjects])
    return Dataset("made-up", "all", texts, tuple(map(str, range(documents))), LabelSet.of(list(SUBJECTS)), gold)


def scored_as(dataset, log_odds):
    nothing = np.zeros(len(dataset), dtype=bool)
    return Scored("made-up", "all", dataset.labels.names, dataset.ids, log_odds, dataset.gold, nothing, (), {}, ())


def suggestions(documents, noise):
    """What is said of a model that knows every answer, but for so much noise."""
    dataset = slice_of(documents)
    random = np.random.default_rng(7)
    log_odds = np.where(dataset.gold, 3.0, -3.0) + noise * random.normal(size=dataset.gold.shape)
    scored = scored_as(dataset, log_odds)
    return list(_suggested(scored, dataset, "auto", cross_validated(scored, "auto")))


def test_a_blend_that_is_better_is_told_with_both_numbers():
    (said,) = suggestions(60, noise=9.0)
    now, was = (float(word.rstrip(".,")) for word in said.split() if word[0].isdigit())
    assert said == (
        f"with --blend own-cosine micro-F1 would be {now:.1f} cross-validated instead of {was:.1f}, its weights chosen"
        " on all of these documents."
    )
    assert now > was + 1


def test_a_gain_that_chance_explains_is_not_told(monkeypatch):
    """The same documents and a gain above a point, but one that other draws of them do not bear out."""
    found = {"micro_f1": Comparison(0.05, -0.01, 0.11, 0.1)}
    monkeypatch.setattr(sys.modules["setscore.cli.calibrate"], "compare", lambda *_: found)
    assert suggestions(60, noise=9.0) == []


@pytest.mark.parametrize(("documents", "noise"), [(60, 0.0), (30, 9.0)], ids=["nothing to gain", "too few documents"])
def test_nothing_is_said_without_a_reason(documents, noise):
    assert suggestions(documents, noise) == []
