"""Which labels are asked: relations that hold for every retriever, and the errors."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shortlist.encoders import encode

from setscore import Label, LabelSet, SetScoreClassifier, encoders
from setscore.encoders import load_encoder, unit
from setscore.errors import BackboneError, DataFileError, MissingExtraError, SetScoreError
from setscore.shortlist import RETRIEVERS, Shortlist, ShortlistWarning, shortlist_of
from setscore.shortlist.index import VectorIndex, label_vectors
from setscore.shortlist.lexical import LexicalIndex, stems
from setscore.shortlist.memory import Memory
from setscore.shortlist.windows import split_words

pytest.importorskip("faiss")
pytest.importorskip("bm25s")

NAMES = ("oil", "sports", "music", "weather", "cooking", "law")
LABELS = LabelSet.of({"oil": "crude oil prices", "sports": None, "music": "albums and songs", "weather": "rain or sun",
                      "cooking": "recipes in a kitchen", "law": "courts and judges"})  # fmt: skip
TEXTS = ("Crude oil prices fell.", "A judge in a kitchen with songs.", "Sports and rain, sun and sports.")
DENSE = [name for name in RETRIEVERS if name != "bm25"]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_the_right_labels_come_first(retriever):
    kept = Shortlist(2, retriever).select(TEXTS, LABELS, encode=encode)
    assert (kept.sum(axis=1) <= 2).all()
    assert kept[0, 0]
    assert kept[1, 4] or kept[1, 2]
    assert kept[2, 1]
    assert kept[2, 3]


SLICE = ("Rain fell on the oil.", "A court and a judge.", "Songs of the kitchen.")
SLICE_GOLD = LABELS.indicator([["weather"], ["law"], ["music", "cooking"]])


@pytest.mark.parametrize(("retriever", "fits"), [("cosine", False), ("fused", False), ("fused", True)])
@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(6)), k=st.integers(1, 6))
def test_permuting_labels_permutes_shortlists_and_larger_k_keeps_more(retriever, fits, order, k):
    def select(labels, gold, size):
        shortlist = Shortlist(size, retriever)
        if fits:
            shortlist = shortlist.fitted(SLICE, labels, gold, encode=encode)
        return shortlist.select(TEXTS, labels, encode=encode)

    kept = select(LABELS, SLICE_GOLD, k)
    assert (kept.sum(axis=1) == k).all()
    permuted = LabelSet(tuple(LABELS.labels[i] for i in order))
    np.testing.assert_array_equal(select(permuted, SLICE_GOLD[:, order], k), kept[:, order])
    if k < 6:
        assert (select(LABELS, SLICE_GOLD, k + 1) >= kept).all()


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_a_document_is_shortlisted_as_if_it_were_alone(retriever):
    together = Shortlist(2, retriever).select(TEXTS, LABELS, encode=encode)
    alone = [Shortlist(2, retriever).select([text], LABELS, encode=encode)[0] for text in TEXTS]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("retriever", DENSE)
def test_candidates_limit_a_shortlist(retriever):
    within = np.ones((3, 6), dtype=bool)
    within[:, 0] = False
    within[2] = False
    kept = Shortlist(3, retriever).select(TEXTS, LABELS, within=within, encode=encode)
    assert not (kept & ~within).any()
    assert kept.sum(axis=1).tolist() == [3, 3, 0]


def test_the_end_of_a_long_document_is_read_by_windows_only():
    text = " ".join(["nothing to see here"] * 200) + " a recipe in a kitchen"
    fused = Shortlist(1, "fused", windows=None).select([text], LABELS, encode=encode)
    assert fused[0, 4]
    with pytest.warns(ShortlistWarning, match="shortlist of 7 is above the inventory of 6 labels; all are asked"):
        assert Shortlist(7).select([text], LABELS, encode=encode).all()
    assert Shortlist(6).select([text], LABELS).all()  # no encoder is needed


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (16, Shortlist(16)),
        ("16", Shortlist(16)),
        ("cosine", Shortlist(retriever="cosine")),
        ("cosine:8", Shortlist(8, "cosine")),
        ({"k": 4, "retriever": "bm25", "memory": None}, Shortlist(4, "bm25")),
        (Shortlist(3), Shortlist(3)),
    ],
)
def test_ways_to_say_it(source, expected):
    assert Shortlist.of(source) == expected
    assert shortlist_of(source) == expected
    assert shortlist_of(None) is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (0, "an empty shortlist asks nothing: k is a whole number from 1, got 0"),
        ("0", "an empty shortlist asks nothing"),
        (True, "an empty shortlist"),
        ("cosin:3", "unknown retriever 'cosin'. Did you mean 'cosine'?"),
        ("fused:many", "a number of labels, a retriever, or both as in fused:32; got 'fused:many'"),
        ({"k": 2, "windows": 0}, "at least one window, got 0"),
    ],
)
def test_mistakes_are_named(source, message):
    with pytest.raises(SetScoreError, match=message.replace("?", r"\?").replace(".", r"\.")):
        Shortlist.of(source)


def test_a_memory_of_other_labels_and_empty_shortlists_are_errors():
    fitted = Shortlist(1).fitted(SLICE, LabelSet.of(["oil", "law"]), encode=encode)
    with pytest.raises(SetScoreError, match="remembers 2 labels, there are 6"):
        fitted.select(TEXTS, LABELS, encode=encode)
    with pytest.raises(SetScoreError, match=r"shortlists of 1 of 2 documents are empty, the first is document 1: it"):
        Shortlist(2, "bm25").select([TEXTS[0], "xyzzy"], LABELS)


def test_labels_of_documents_that_are_alike_are_kept():
    gold = np.zeros((3, 6), dtype=bool)
    gold[1, 1] = True  # a court and a judge, but it was about sports
    for labelled, kept in ((gold, True), (None, False)):
        fitted = Shortlist(2).fitted(SLICE, LABELS, labelled, encode=encode)
        assert fitted.select(["The judge is in court."], LABELS, encode=encode)[0, 1] == kept
    assert Shortlist(3, "cosine").fitted(SLICE, LABELS, gold) == Shortlist(3, "cosine")
    assert Shortlist(6).fitted(SLICE, LABELS, gold) == Shortlist(6)  # nothing to choose


def test_a_document_is_no_neighbour_of_itself():
    gold = np.zeros((3, 6), dtype=bool)
    gold[0, 1] = True
    memory = Shortlist(2).fitted(SLICE, LABELS, gold, encode=encode).memory
    assert memory.neighbours(memory.vectors[0]).sum() == 0
    assert memory.neighbours(memory.vectors[1])[1] > 0


def test_a_label_that_is_near_to_everything_is_held_against_itself():
    cosines = np.array([[0.8, 0.7], [0.8, 0.1], [0.8, 0.1]])
    memory = Memory.of(cosines, np.eye(3, dtype=np.float32), None)
    assert np.argmax(memory.nearness(cosines[0])) == 1
    assert memory.neighbours(np.eye(3, dtype=np.float32)[0]).tolist() == [0, 0]


def test_what_is_remembered_survives_json():
    memory = Shortlist(2).fitted(SLICE, LABELS, SLICE_GOLD, encode=encode).memory
    plain = json.loads(json.dumps(memory.plain()))
    again = Memory.restore(plain)
    np.testing.assert_array_equal(again.hubs, memory.hubs)
    np.testing.assert_allclose(again.vectors, memory.vectors, atol=1e-3)
    with pytest.raises(SetScoreError, match="what the shortlist remembers is damaged"):
        Memory.restore(plain | {"rows": plain["hubs"]})


def test_labels_are_encoded_once_for_a_folder(tmp_path):
    calls = []

    def counting(texts):
        calls.append(len(texts))
        return encode(texts)

    first = label_vectors(LABELS.texts, counting, "e", tmp_path)
    np.testing.assert_array_equal(label_vectors(LABELS.texts, counting, "e", tmp_path), first)
    assert calls == [6]
    label_vectors(LABELS.texts, counting, "another", tmp_path)
    label_vectors(LABELS.names, counting, "e", tmp_path)
    assert calls == [6, 6, 6]
    for path in tmp_path.iterdir():
        path.write_bytes(b"no numpy")
    with pytest.raises(DataFileError, match=r"is damaged.*Delete it to encode the labels again"):
        label_vectors(LABELS.texts, counting, "e", tmp_path)


def test_cells_find_almost_what_an_exact_search_finds():
    vectors = unit(np.random.default_rng(3).normal(size=(3000, 16)))
    exact, cells = VectorIndex.of(vectors), VectorIndex.of(vectors, exact_up_to=1000)
    assert (exact.exact, cells.exact) == (True, False)
    _, right = exact.nearest(vectors[:50], 1)
    assert (right[:, 0] == np.arange(50)).all()
    _, found = cells.nearest(vectors[:50], 10)
    _, wanted = exact.nearest(vectors[:50], 10)
    shares = [len(set(a) & set(b)) / 10 for a, b in zip(found, wanted, strict=True)]
    assert np.mean(shares) > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_a_search_of_rounded_vectors_finds_what_an_exact_one_finds(seed):
    random = np.random.default_rng(seed)
    vectors = unit(random.normal(size=(400, 32)))
    queries = unit(vectors[:20] + 0.3 * random.normal(size=(20, 32)))
    rounded, full = VectorIndex.of(vectors, rounded_from=1), VectorIndex.of(vectors, rounded_from=10_000)
    assert rounded.off > 0
    assert full.off == 0
    for depth in (1, 16, 200, 400):
        (cosines, labels), (right, wanted) = rounded.nearest(queries, depth), full.nearest(queries, depth)
        np.testing.assert_array_equal(np.sort(labels, axis=1), np.sort(wanted, axis=1))
        np.testing.assert_allclose(cosines, right, atol=1e-6)


def test_what_rounding_cannot_tell_apart_is_searched_in_full():
    random = np.random.default_rng(5)
    middle = unit(random.normal(size=(1, 32)))
    vectors = unit(middle + 1e-5 * random.normal(size=(400, 32)))  # nearer to each other than 16 bits show
    rounded, full = VectorIndex.of(vectors, rounded_from=1), VectorIndex.of(vectors, rounded_from=10_000)
    query = unit(random.normal(size=(1, 32)))
    (cosines, labels), (_, wanted) = rounded.nearest(query, 8), full.nearest(query, 8)
    np.testing.assert_allclose(cosines[0], np.sort(vectors @ query[0])[::-1][:8], atol=1e-6)
    assert len(set(labels[0]) & set(wanted[0])) >= 6  # the rest tie within the rounding of their sums


@pytest.mark.parametrize(("words", "most"), [(5, 3), (128, 3), (129, 3), (1000, 3), (1000, 4), (1000, 1), (1000, None)])
def test_windows_begin_with_the_document_and_look_into_the_rest(words, most):
    found = split_words(" ".join(f"w{number}" for number in range(words)), most=most)
    begins = [int(window.split()[0][1:]) for window in found]
    whole = split_words(" ".join(f"w{number}" for number in range(words)))
    assert len(found) == min(most or len(whole), len(whole))
    assert set(found) <= set(whole)
    assert begins == sorted(set(begins))
    assert begins[: (len(found) + 1) // 2] == [96 * place for place in range((len(found) + 1) // 2)]
    if most and most > 1 and words == 1000:
        assert begins[-1] > words // 3  # not the beginning alone


def test_each_retriever_has_an_encoder_of_its_own(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "setscore.shortlist.shortlist.load_encoder", lambda name, read: asked.append((name, read)) or encode
    )
    for retriever, name in (("fused", None), ("cosine", None), ("cosine", "setscore-mini")):
        Shortlist(2, retriever, name).select(TEXTS, LABELS)
    assert asked == [("setscore-mini", 160), ("all-MiniLM-L6-v2", None), ("setscore-mini", None)]


def test_the_packaged_encoder_needs_no_other_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    load_encoder.cache_clear()
    labels = LabelSet.of(["sports", "cooking", "the stock market"])
    texts = ["The football team won the match after extra time.", "Shares fell as investors sold bonds."]
    kept = Shortlist(1).select(texts, labels)
    assert kept.argmax(axis=1).tolist() == [0, 2]
    load_encoder.cache_clear()


def test_words_without_evidence_score_nothing():
    index = LexicalIndex.of(["the of", "oil prices"])
    assert index.scores("xyzzy").tolist() == [0, 0]
    assert (index.scores("The price of OIL") > 0).tolist() == [False, True]
    assert index.scores("oil oil oil oil")[1] > index.scores("oil")[1]
    assert LexicalIndex.of(["the", "of"]).scores("the of").tolist() == [0, 0]
    assert index.scores("tea " * 2**18 + "oil")[1] == 0  # a million characters are read, as of a text that is embedded
    assert stems("The policies of cities, taxes and the bus") == ["policy", "city", "taxe", "bus"]


@given(st.integers(0, 900), st.integers(1, 9))
def test_windows_hold_every_word(count, most):
    text = " ".join(str(number) for number in range(count))
    assert {word for window in split_words(text) for word in window.split()} == set(text.split())
    assert len(split_words(text, most=most)) <= most
    assert split_words(text, most=most)[0] == split_words(text)[0]


@pytest.mark.parametrize(("module", "extra"), [("faiss", "shortlist"), ("bm25s", "shortlist")])
def test_a_missing_extra_is_named(monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    labels = LabelSet.of([f"label {module} {number}" for number in range(3)])
    with pytest.raises(MissingExtraError, match=f"needs the extra '{extra}'"):
        Shortlist(2).select(TEXTS, labels, encode=encode)


def test_a_missing_encoder_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    load_encoder.cache_clear()
    with pytest.raises(MissingExtraError, match="the shortlist needs the extra 'sbert'"):
        Shortlist(2, "cosine").select(TEXTS, LABELS)


@pytest.mark.parametrize("installed", [True, False])
def test_the_encoder_is_taken_from_its_package_or_else_by_name(monkeypatch, tmp_path, installed):
    loaded = []

    class Library:
        class SentenceTransformer:
            def __init__(self, name, device):
                loaded.append((name, device))

            def encode(self, texts, show_progress_bar):
                return encode(texts)

    if installed:
        (tmp_path / "gt_made_up" / "model").mkdir(parents=True)
        (tmp_path / "gt_made_up" / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(encoders, "OFFLINE", "gt_made_up")
    monkeypatch.setitem(sys.modules, "sentence_transformers", Library)
    load_encoder.cache_clear()
    np.testing.assert_array_equal(load_encoder()(("joy",)), encode(["joy"]))
    load_encoder.cache_clear()
    folder = str(tmp_path / "gt_made_up" / "model")
    assert loaded == [(folder if installed else "sentence-transformers/all-MiniLM-L6-v2", "cpu")]


def test_an_encoder_that_cannot_be_had_says_which_files_to_put_where(monkeypatch):
    class Library:
        class SentenceTransformer:
            def __init__(self, name, device):
                raise OSError(f"cannot reach {name}\nand more")

    monkeypatch.setitem(sys.modules, "sentence_transformers", Library)
    with pytest.raises(BackboneError, match=r"someone/else cannot be loaded: cannot reach .*modules.json.* folder"):
        load_encoder("someone/else")
    load_encoder.cache_clear()


@pytest.fixture
def fake_encoder(monkeypatch):
    monkeypatch.setattr("setscore.shortlist.shortlist.load_encoder", lambda name, read: encode)


def test_a_classifier_asks_only_the_shortlist(fake_encoder, backbone, tmp_path):
    plain, short = (SetScoreClassifier(LABELS, backbone=backbone, shortlist=k) for k in (None, 2))
    every = plain.score_documents(TEXTS)
    backbone.queries = 0
    some = short.score_documents(TEXTS)
    assert backbone.queries == some.scored.sum() == 6
    np.testing.assert_array_equal(some.log_odds[some.scored], every.log_odds[some.scored])
    assert np.isneginf(some.log_odds[~some.scored]).all()
    assert not short.predict(TEXTS)[~some.scored].any()
    limited = short.score_documents(TEXTS, candidates=[["law"], ["oil", "law", "music"], NAMES])
    assert limited.scored.sum(axis=1).tolist() == [1, 2, 2]


def test_a_fitted_classifier_keeps_its_shortlist_when_saved(fake_encoder, tmp_path):
    model = SetScoreClassifier(LABELS, shortlist="fused:3").fit(TEXTS, [["oil"], ["law", "music"], ["sports"]])
    model.save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json")
    np.testing.assert_array_equal(Shortlist.of(loaded.shortlist).memory.rows, model.fitted_.shortlist.memory.rows)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert model.set_params(shortlist=None).fit(TEXTS, [["oil"], ["law"], []]).score_documents(TEXTS).scored.all()


def test_a_hundred_thousand_labels(fake_encoder, backbone):
    labels = LabelSet(
        tuple(Label(f"topic {number}", f"word{number} and word{number // 7}") for number in range(100_000))
    )
    text = "it says word4242 and so on"
    for shortlist, asked in (("fused:20", 20), ("bm25:20", 8)):
        backbone.queries = 0
        scores = SetScoreClassifier(labels, backbone=backbone, shortlist=shortlist).score_documents([text])
        assert scores.scored.sum() == backbone.queries == asked
    assert scores.scored[0, 4242]


@pytest.mark.parametrize("scorer", ["unary", "jsr?sweeps=1", "bp"])
def test_every_scorer_takes_a_shortlist_learners_too(fake_encoder, backbone, scorer):
    model = SetScoreClassifier(LABELS, backbone=backbone, scorer=scorer, shortlist=2)
    scores = model.fit(TEXTS, [["oil"], ["law", "music"], ["sports"]]).score_documents(TEXTS)
    assert scores.scored.sum(axis=1).tolist() == [2, 2, 2]
    np.testing.assert_array_equal(np.isfinite(scores.log_odds), scores.scored)
