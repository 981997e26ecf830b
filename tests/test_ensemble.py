"""Mixtures of log-odds: relations that every fitted ensemble keeps."""

import numpy as np
import pytest
from fakes import FakeBackbone
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import f1

from setscore import SetScoreClassifier
from setscore.encoders import load_encoder
from setscore.ensemble import Ensemble, best_cut, blend_of, check_same, cosines, fit, oracle, simplex
from setscore.errors import MissingExtraError, SetScoreError

UNIT = ((1.0, 0.0),)


def members(seed, documents=60, labels=4, noises=(0.8, 1.5, 4.0)):
    """Three scorers of one truth, each with its own noise and scale."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(-1, 2, size=(documents, labels))
    gold = rng.random(truth.shape) < 1 / (1 + np.exp(-2 * truth))
    noisy = {name: truth + noise * rng.normal(size=truth.shape) for name, noise in zip("abc", noises, strict=True)}
    return {"a": noisy["a"], "b": 0.05 * noisy["b"] + 0.3, "c": 9 * noisy["c"]}, gold


@given(st.integers(1, 4), st.integers(1, 5))
def test_the_grid_is_the_whole_simplex(count, steps):
    grid = simplex(count, steps)
    assert len(set(grid)) == len(grid)
    assert all(sum(weights) == pytest.approx(1) and min(weights) >= 0 for weights in grid)
    singletons = [tuple(float(i == j) for j in range(count)) for i in range(count)]
    assert set(singletons) <= set(grid)


def test_the_published_blends_are_in_the_grid():
    assert len(simplex(3)) == 15
    assert (0.25, 0.5, 0.25) in simplex(3)
    assert (0.75, 0.25) in simplex(2)


@pytest.mark.parametrize("seed", range(6))
def test_the_choice_is_never_below_a_member_alone_and_weights_sum_to_one(seed):
    given_, gold = members(seed)
    found = fit(given_, gold)
    assert sum(found.weights) == 1
    assert found.tried == 15
    for name in given_:
        assert found.validation >= fit({name: given_[name]}, gold).validation
    again = fit(given_, gold)
    assert again == found


@given(st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_a_singleton_reproduces_its_member_exactly(seed):
    given_, gold = members(seed, documents=12)
    alone = fit({"b": given_["b"]}, gold)
    assert alone.weights == (1,)
    assert alone.mix(given_) is given_["b"]
    assert Ensemble(("a", "b"), (0.0, 1.0), UNIT * 2).mix(given_) is given_["b"]


def test_the_scale_of_a_member_does_not_matter():
    given_, gold = members(3)
    other = given_ | {"a": 100 * given_["a"] - 7}
    one, two = fit(given_, gold), fit(other, gold)
    assert one.weights == two.weights
    np.testing.assert_allclose(one.mix(given_), two.mix(other), atol=1e-2)


def test_averaging_is_in_log_odds_and_what_was_not_asked_stays_so():
    mixed = Ensemble(("a", "b"), (0.25, 0.75), ((2.0, 1.0), (1.0, 0.0))).mix(
        {"a": np.array([[1.0, -np.inf]]), "b": np.array([[4.0, 2.0]])}
    )
    assert mixed.tolist() == [[0.25 * 3 + 0.75 * 4, -np.inf]]


def test_two_noisy_scorers_are_better_together():
    given_, gold = members(1, documents=400, noises=(1.5, 1.5, 1.5))
    found = fit(given_, gold)
    assert sum(weight > 0 for weight in found.weights) > 1
    test, truth = members(2, documents=400, noises=(1.5, 1.5, 1.5))

    def reached(ensemble):
        return f1(truth, ensemble.mix(test) >= best_cut(ensemble.mix(given_), gold))

    assert all(reached(found) > reached(fit({name: given_[name]}, gold)) for name in given_)


@pytest.mark.parametrize("seed", range(4))
def test_no_choice_passes_the_oracle(seed):
    given_, gold = members(seed)
    _, best = oracle(given_, gold)
    mixed = fit(given_, gold).mix(given_)
    assert f1(gold, mixed >= best_cut(mixed, gold)) <= best + 1e-12


def test_mismatches_are_refused_with_both_counts():
    message = "a has scores of 60 documents and 4 labels, b of 59 documents and 4 labels"
    given_, gold = members(0)
    with pytest.raises(SetScoreError, match=message):
        fit(given_ | {"b": given_["b"][1:]}, gold)
    with pytest.raises(SetScoreError, match="gold of 60 documents and 3 labels"):
        fit(given_, gold[:, :3])
    with pytest.raises(SetScoreError, match="at least one member"):
        check_same({})
    with pytest.raises(SetScoreError, match="unknown member 'd'"):
        Ensemble(("a", "d"), (0.5, 0.5), UNIT * 2).mix(given_)


@pytest.mark.parametrize("weights", [(0.5, 0.6), (1.5, -0.5)])
def test_weights_that_are_no_mixture_are_refused(weights):
    with pytest.raises(SetScoreError, match="weights are 0 or more and sum to 1"):
        Ensemble(("a", "b"), weights, UNIT * 2)


def test_small_and_one_sided_slices_work():
    for gold in (np.zeros((1, 2), bool), np.ones((1, 2), bool), np.array([[True, False]])):
        found = fit({"a": np.array([[1.0, -1.0]]), "b": np.array([[0.0, 0.0]])}, gold)
        assert sum(found.weights) == 1


def drawn_members(seed, noise):
    """A model that knows something of 30 documents, and another that knows as much apart from so much noise."""
    random = np.random.default_rng(seed)
    gold = random.random((30, 3)) < 0.4
    known = np.where(gold, 1.0, -1.0)
    model, other = (known + random.normal(scale=scale, size=gold.shape) for scale in (2.0, noise))
    return {"model": model, "other": other}, gold


def test_in_doubt_the_model_stays_alone():
    """A member that is only noise wins a share by luck in some draws; one that knows a lot keeps it in all."""
    for noise, kept in ((50.0, False), (1.0, True)):
        shares = []
        for seed in range(30):
            members, gold = drawn_members(seed, noise)
            free, doubting = fit(members, gold), fit(members, gold, in_doubt="model")
            assert doubting.weights in (free.weights, (1.0, 0.0))
            assert doubting.validation <= free.validation
            shares.append((free.weights[1] > 0, doubting.weights[1] > 0))
        lucky, trusted = np.sum(shares, axis=0)
        assert trusted == 30 if kept else trusted <= lucky / 2
        assert lucky > 4  # else the draws show nothing


def words(texts):
    return np.array([[0.1, *(text.lower().count(word) for word in ("oil", "match", "song"))] for text in texts])


@pytest.fixture
def encoder(monkeypatch):
    monkeypatch.setattr("setscore.ensemble.load_encoder", lambda name, purpose: words)


TEXTS = ["Oil, oil.", "A match of oil.", "A song.", "Nothing."]


def test_a_classifier_blends_with_the_cosine(encoder, tmp_path):
    plain, blend = (
        SetScoreClassifier(["oil", "match", "song"], blend=b, backbone=FakeBackbone()) for b in (None, "cosine")
    )
    model, cosine = plain.score_documents(TEXTS).log_odds, cosines(TEXTS, blend._labels(), words)
    (a, b) = blend_of("cosine").scales[1]
    np.testing.assert_allclose(blend.decision_function(TEXTS), 0.75 * model + 0.25 * (a * cosine + b))
    fitted = blend.fit(TEXTS, [["oil"], ["match"], ["song"], []])
    assert sum(fitted.fitted_.blend.weights) == 1
    assert plain.fit(TEXTS, [["oil"], ["match"], ["song"], []]).fitted_.blend is None


def test_a_fitted_blend_is_saved(encoder, tmp_path):
    model = SetScoreClassifier(["oil", "match", "song"], blend="cosine").fit(TEXTS, [["oil"], ["match"], ["song"], []])
    model.save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json")
    assert blend_of(loaded.blend) == model.fitted_.blend
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_own_cosine_needs_no_extra_and_is_the_embedded_models(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    load_encoder.cache_clear()
    labels, texts = ["oil", "music"], ["Crude oil fell by two dollars.", "The band plays its new song."]
    model = SetScoreClassifier(labels, blend="own-cosine", backbone=FakeBackbone()).fit(texts, [["oil"], ["music"]])
    assert model.fitted_.blend.names == ("model", "own-cosine")
    found = cosines(texts, model.labels_, load_encoder("setscore-mini"))
    assert found.argmax(axis=1).tolist() == [0, 1]
    with pytest.raises(SetScoreError, match="a blend mixes 'model' with one of cosine, own-cosine; got model, nli"):
        blend_of(Ensemble(("model", "nli"), (0.5, 0.5), UNIT * 2))


def test_an_unknown_blend_and_a_missing_extra_are_named(monkeypatch):
    with pytest.raises(SetScoreError, match=r"unknown blend 'cosin'. Did you mean 'cosine'\?"):
        blend_of("cosin")
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    load_encoder.cache_clear()
    with pytest.raises(MissingExtraError, match="blend='cosine' needs the extra 'sbert'"):
        SetScoreClassifier(["a"], blend="cosine", backbone=FakeBackbone()).predict(["b"])
