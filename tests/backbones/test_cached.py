"""A backbone behind a store: the same answers, asked once, and never those of other weights, wordings or answers."""

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from fakes import EmittingBackbone, FakeBackbone, PlantedBackbone
from sklearn.base import clone

from setscore import SetScoreClassifier
from setscore.backbones import Emitter, MassReader, load_backbone, mini
from setscore.backbones.asking import AskingBackbone
from setscore.backbones.cached import CachedBackbone, query_keys
from setscore.errors import ScoreError
from setscore.prompts import Template
from setscore.records import LabelSet, Query, Slot
from setscore.scorers.unary import UnaryScorer
from setscore.store import MemoryStore

LABELS = ["oil", "sports", "music"]
TEXTS = ["Crude prices fell again.", "The striker scored twice.", "The band released an album."]


def test_answers_are_the_others_and_asked_once():
    inner, plain = FakeBackbone(), FakeBackbone()
    backbone = CachedBackbone(inner, MemoryStore())
    queries = [Template.of("express").query(text, label) for text in TEXTS for label in LABELS]
    for _ in range(2):
        for found, expected in zip(backbone.log_odds(queries), plain.log_odds(queries), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert (inner.queries, inner.calls) == (9, 1)
    assert (backbone.spec, backbone.attention, backbone.identity) == (inner.spec, inner.attention, inner.identity)
    assert backbone.spans("two words") == inner.spans("two words")


def test_with_an_empty_store_the_model_is_asked_what_it_would_be_asked_without():
    """Batches round differently, so numbers are the same only if the questions come together as they do without."""
    calls = []

    class Listening(FakeBackbone):
        def log_odds(self, queries):
            calls.append(list(queries))
            return super().log_odds(queries)

    for store in (None, MemoryStore()):
        SetScoreClassifier(LABELS, backbone=Listening(), store=store).decision_function([*TEXTS, TEXTS[0]])
    assert len(calls) == 2
    assert list(dict.fromkeys(calls[0])) == calls[1]


def test_a_large_model_is_asked_in_smaller_blocks():
    inner = FakeBackbone()
    inner.spec = replace(inner.spec, parameters=8 * 10**9)
    queries = [Template.of("express").query(f"text {number}", "oil") for number in range(1100)]
    CachedBackbone(inner, MemoryStore()).log_odds(queries)
    assert (inner.queries, inner.calls) == (1100, 3)


def test_what_a_backbone_offers_besides_is_passed_on():
    plain = CachedBackbone(FakeBackbone(), MemoryStore())
    assert not isinstance(plain, Emitter | MassReader)
    offering = CachedBackbone(EmittingBackbone(emitted="oil"), MemoryStore())
    assert isinstance(offering, Emitter)
    assert isinstance(offering, MassReader)
    assert offering.most_likely([Query("", "x", (Slot(),))]) == ["oil"]


@pytest.mark.parametrize("raises", [True, False], ids=["the backbone says so", "the backbone is silent"])
def test_what_is_no_number_is_an_error_with_the_callers_numbers_and_is_not_stored(raises):
    class Nan(FakeBackbone):
        def log_odds(self, queries):
            found = super().log_odds(queries)
            bad = [number for number, query in enumerate(queries) if "bad" in query.document]
            if bad and raises:
                raise ScoreError("NaN", tuple(bad))
            return [np.array([np.nan]) if number in bad else answer for number, answer in enumerate(found)]

    template, store = Template.of("express"), MemoryStore()
    backbone = CachedBackbone(Nan(), store)
    good, bad = template.query("good", "oil"), template.query("bad", "oil")
    backbone.log_odds([good])
    with pytest.raises(
        ScoreError, match=r"^fake gave NaN or infinity for 1 queries, the first is number 2\.$"
    ) as error:
        backbone.log_odds([good, template.query("fine", "oil"), bad])
    assert error.value.queries == (2,)
    assert store.get(query_keys("fake shared 2000", [bad])) == {}
    predictions = SetScoreClassifier(["oil"], backbone=Nan(), store=store).classify(["a", "bad", "c"])
    assert list(predictions.errors) == [1]


def test_every_part_of_a_query_counts():
    base = Query("p", "d", ("q", Slot(), "r", Slot(True)))
    others = [
        replace(base, prefix="pd", document=""),
        replace(base, document="e"),
        replace(base, question=("q", Slot(), "r", Slot(False))),
        replace(base, question=("q", Slot(), "r", Slot())),
        replace(base, question=("qr", Slot(), Slot(True))),
        replace(base, question=("q", "[null]", "r", Slot(True))),
    ]
    keys = [*query_keys("one", [base, *others]), *query_keys("other", [base])]
    assert len(set(keys)) == len(keys) == 8
    assert query_keys("one", [base, base]) == [keys[0]] * 2
    assert (
        keys[0].hex() == "c992b8680a92d8d34ea4704753681e3c"
    )  # stores that are there are read for ever: the digest never changes


def test_scorers_count_their_forwards_as_without_a_store():
    texts, labels = [f"text {number}" for number in range(9)], LabelSet.of(LABELS)
    expected = UnaryScorer(contexts=3).score(PlantedBackbone(), texts, labels)
    cached = CachedBackbone(PlantedBackbone(), MemoryStore(most=7))
    for _ in range(2):
        found = UnaryScorer(contexts=3).score(cached, texts, labels)
        assert (found.log_odds == expected.log_odds).all()
        assert found.forwards == expected.forwards


# What an answer depends on, each time by a real model


def scores(backbone, store, **options):
    return SetScoreClassifier(LABELS, backbone=backbone, store=store, **options).decision_function(TEXTS)


@pytest.fixture
def counted(monkeypatch):
    """How many queries reached a model."""
    asked, plain = [], AskingBackbone.log_odds

    def counting(self, queries):
        asked.append(len(queries))
        return plain(self, queries)

    monkeypatch.setattr(AskingBackbone, "log_odds", counting)
    return asked


def retrain(folder):
    """Other weights in the same folder, as a new training would leave them."""
    path = folder / "model.onnx"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 50_000] = bytes(byte ^ 1 for byte in data[middle : middle + 50_000])
    path.write_bytes(bytes(data))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"]["model.onnx"] = hashlib.sha256(data).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_relative_folder_with_other_weights_is_asked_anew(tmp_path, monkeypatch, counted):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(mini.default_folder(), "weights")
    first = scores("weights", "store")
    assert counted == [9]
    np.testing.assert_array_equal(scores("weights", "store"), first)
    assert counted == [9]
    retrain(tmp_path / "weights")
    other = scores("weights", "store")
    assert counted == [9, 9]
    assert (other != first).any()
    np.testing.assert_array_equal(other, scores("weights", None))


def test_the_same_weights_by_name_or_by_path_are_asked_once(tmp_path, monkeypatch, counted):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(mini.default_folder(), "copy")
    names = ["setscore-mini", "copy", "./copy", str(tmp_path / "copy"), "setscore-mini?guidance=0"]
    found = [scores(name, "store") for name in names]
    assert counted == [9]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@pytest.mark.parametrize(
    "change",
    [
        {"backbone": "setscore-mini?prior=true"},
        {"backbone": "setscore-mini?guidance=1"},
        {"template": "article-about"},
        {"verbalizer": "true/false"},
        {"attention": "exact"},
    ],
    ids=lambda change: next(iter(change.values())),
)
def test_whatever_changes_an_answer_is_asked_apart_and_overwrites_nothing(tmp_path, counted, change):
    plain = {"backbone": "setscore-mini"}
    first, other = scores(**plain, store=tmp_path), scores(**plain | change, store=tmp_path)
    assert counted == [9, 9]
    np.testing.assert_array_equal(other, scores(**plain | change, store=None))
    assert (first != other).any()
    before = len(counted)
    np.testing.assert_array_equal(scores(**plain, store=tmp_path), first)
    np.testing.assert_array_equal(scores(**plain | change, store=tmp_path), other)
    assert len(counted) == before


def test_a_native_folder_with_other_weights_is_asked_anew(tmp_path, counted):
    pytest.importorskip("torch")
    import checkpoints
    from safetensors.torch import load_file, save_file

    folder = checkpoints.make(tmp_path / "model", "llada")
    name = f"{folder}?device=cpu&dtype=fp32"
    first = scores(name, tmp_path / "store")
    np.testing.assert_array_equal(scores(name, tmp_path / "store"), first)
    assert counted == [9]
    state = load_file(folder / "model.safetensors")
    save_file({key: tensor * 1.5 for key, tensor in state.items()}, folder / "model.safetensors")
    assert (scores(name, tmp_path / "store") != first).any()
    assert counted == [9, 9]


def test_the_store_is_a_parameter_that_is_never_saved(tmp_path):
    made = SetScoreClassifier(LABELS, store=tmp_path / "store")
    assert clone(made).store == tmp_path / "store"
    store = MemoryStore()
    assert clone(SetScoreClassifier(LABELS, store=store)).store is store
    made.save(tmp_path / "c.json")
    assert "store" not in (tmp_path / "c.json").read_text()
    assert SetScoreClassifier.load(tmp_path / "c.json").store is None
    assert load_backbone("setscore-small").identity == made.identity
