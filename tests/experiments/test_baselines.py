"""Baselines over seeds: what they learn from, what is saved, and what is said about it."""

import numpy as np
import pytest
from baselines import tiny
from made_up import write_goemotions
from shortlist.encoders import encode

from setscore.baselines import load_baseline
from setscore.baselines.base import finished
from setscore.baselines.supervised import SigmoidHead
from setscore.errors import DataFileError
from setscore.experiments import baselines, prepare
from setscore.experiments.baselines import measure_baseline
from setscore.experiments.evaluation import trials
from setscore.experiments.saved import one_saved
from setscore.experiments.training import training_documents
from setscore.shortlist import Shortlist

SEEDS = (13, 17)


@pytest.fixture
def data(tmp_path):
    return write_goemotions(tmp_path / "data")


@pytest.fixture
def fake_encoder(monkeypatch):
    monkeypatch.setattr(baselines, "load_encoder", lambda **_: encode)


def experiment(data):
    return prepare("goemotions", "development", SEEDS, data_dir=data)


def test_a_training_split_is_never_measured_on(data):
    write_goemotions(data, documents=400, split="train")  # the first 60 texts are those of dev
    ready = experiment(data)
    train = training_documents("linear", ready, "split", data_dir=data)
    assert len(train) == 340
    assert not set(train.texts) & set(ready.parts["pool"].texts)
    assert "60 of 400 training documents have a text that is measured on; left out." in train.notes
    assert len(training_documents("linear", ready, "either", data_dir=data, limit=50)) == 50
    assert training_documents("linear", ready, "validation", data_dir=data) is None
    assert training_documents("cosine", ready, "split", data_dir=data) is None


@pytest.mark.parametrize("documents", [0, 70])
def test_without_a_training_split_one_must_ask_for_the_validation_documents(data, documents):
    if documents:
        write_goemotions(data, documents=documents, split="train")
    ready = experiment(data)
    assert training_documents("linear", ready, "either", data_dir=data) is None
    with pytest.raises(DataFileError, match=r"With --train validation linear learns from the 200 validation documents"):
        training_documents("linear", ready, "split", data_dir=data)


@pytest.mark.parametrize("split", [True, False])
def test_learning_is_saved_by_seed_and_done_once(data, tmp_path, fake_encoder, monkeypatch, split):
    ready, train = experiment(data), None
    if split:
        write_goemotions(data, documents=400, split="train")
        train = training_documents("linear", ready, "split", data_dir=data)
    made = measure_baseline("linear", ready, SEEDS, training=train, save=tmp_path)
    place = tmp_path / ready.saved_as / "baselines" / "linear"
    names = {f"pool-{seed}" for seed in SEEDS} if split else {f"{p}-{s}" for p in ("validation", "test") for s in SEEDS}
    assert set(one_saved(place).parts()) == set(made.scored) == names
    first = trials(one_saved(place).parts(), SEEDS)[0]
    assert not set(first.validation.ids) & set(first.test.ids)
    assert any(("340 documents of the training split" if split else "cross-fitted") in text for text in made.remarks)
    monkeypatch.setattr(baselines, "load_baseline", lambda name, **options: NoScores() if "encode" in options else None)
    again = measure_baseline("linear", ready, SEEDS, training=train, save=tmp_path)
    assert again.summaries[0].mean == made.summaries[0].mean
    assert again.documents_per_second == pytest.approx(made.documents_per_second)


class NoScores:
    """Fails whoever asks."""


def test_a_training_loop_is_watched_and_its_state_removed(data, tmp_path):
    pytest.importorskip("setfit")
    told = []
    checkpoint = tiny.sentence_encoder(tmp_path)
    made = measure_baseline(
        "setfit",
        experiment(data),
        SEEDS[:1],
        options={"checkpoint": checkpoint, "steps": 2},
        save=tmp_path,
        progress=lambda *step: told.append(step),
    )
    assert made.summaries[0].name == "platt" or made.summaries[0].kind == "model"
    assert {step[0].partition(",")[0] for step in told} == {
        f"goemotions setfit {p}: training" for p in ("13-0", "13-1", "13")
    }
    assert not (tmp_path / "training").exists()


def test_unreadable_answers_are_counted(data, tmp_path):
    pytest.importorskip("transformers")
    folder = str(tmp_path / "causal")
    tiny.causal(folder)
    small = prepare("goemotions", "development", SEEDS, data_dir=data, limit=4)
    made = measure_baseline("qwen-generate", small, SEEDS, options={"checkpoint": folder})
    assert made.remarks == ("4 of 4 answers of qwen-generate held something that is no label.",)


def test_a_hypothesis_is_chosen_on_each_seeds_validation_documents(data, tmp_path):
    pytest.importorskip("transformers")
    folder = str(tmp_path / "nli")
    tiny.nli(folder, kind="bart")
    small = prepare("goemotions", "development", SEEDS, data_dir=data, limit=8)
    made = measure_baseline("bart-mnli-template", small, SEEDS, options={"checkpoint": folder})
    assert set(made.scored) == {f"{part}-{seed}" for part in ("validation", "test") for seed in SEEDS}
    (validation, test), *_ = [(t.validation, t.test) for t in trials(made.scored, SEEDS)]
    chosen = load_baseline("bart-mnli-template", checkpoint=folder).fit(
        [dict(zip(small.parts["pool"].ids, small.parts["pool"].texts, strict=True))[i] for i in validation.ids],
        validation.gold,
        small.parts["pool"].labels,
    )
    texts = [dict(zip(small.parts["pool"].ids, small.parts["pool"].texts, strict=True))[i] for i in test.ids]
    np.testing.assert_allclose(chosen.score(texts, small.parts["pool"].labels).log_odds, test.log_odds, atol=1e-4)


def test_with_a_shortlist_only_its_labels_are_asked_and_nothing_else_is_predicted(data, tmp_path):
    pytest.importorskip("transformers")
    folder = str(tmp_path / "nli")
    tiny.nli(folder, kind="bart")
    small = prepare("goemotions", "development", SEEDS, data_dir=data, limit=8)
    options = {"options": {"checkpoint": folder}, "save": tmp_path / "scores"}
    cut = measure_baseline("bart-mnli", small, SEEDS, shortlist=Shortlist(1, "bm25"), **options)
    whole = measure_baseline("bart-mnli", small, SEEDS, **options)
    asked = np.isfinite(cut.scored["pool"].log_odds)
    assert (asked.sum(axis=1) == 1).all()
    np.testing.assert_allclose(cut.scored["pool"].log_odds[asked], whole.scored["pool"].log_odds[asked], atol=1e-4)
    again = measure_baseline("bart-mnli", small, SEEDS, shortlist=Shortlist(1, "bm25"), **options)
    np.testing.assert_array_equal(again.scored["pool"].log_odds, cut.scored["pool"].log_odds)


def test_supervised_models_are_trained_once_for_all_seeds(data, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    write_goemotions(data, documents=300, split="train")
    trained = []
    monkeypatch.setattr(SigmoidHead, "fit", lambda self, texts, gold, labels: trained.append(len(texts)) or Fitted())
    ready = experiment(data)
    train = training_documents("bert", ready, "split", data_dir=data, limit=20)
    made = measure_baseline("bert", ready, SEEDS, training=train)
    assert (trained, set(made.scored)) == ([20], {"pool"})


class Fitted:
    def score(self, texts, labels, *, candidates=None, progress=None):
        return finished(np.zeros((len(texts), len(labels))), candidates, len(texts))
