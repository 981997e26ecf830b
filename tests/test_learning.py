"""The classifier that learned: what labelled documents change, one after the other, and what they cannot spoil."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from scipy.special import expit

from setscore import SetScoreClassifier
from setscore.calibration import AutoCalibration, LearnedCalibration, PaperCalibration
from setscore.errors import DataFileError, LabelError, SetScoreError
from setscore.fitting import Aim, Known, conclude
from setscore.store import MemoryStore

TEXTS = [
    "The printer on floor two jams again.", "Please order toner for the copier.", "My badge does not open the gate.",
    "The gate alarm rang all night.", "Paper jam in the big printer.", "I lost my badge on the train.",
    "Toner is empty, the prints are grey.", "Visitors need a badge from Monday.", "The door reader is dead.",
    "Printing takes minutes for one page.", "Copier shows error 52.", "Side gate stays open at night.",
]  # fmt: skip
GOLD = [["print"], ["print"], ["access"], ["access"], ["print"], ["access"], ["print"], ["access"], ["access"],
        ["print"], ["print"], ["access"]]  # fmt: skip
LABELS = {"print": "printers and copiers", "access": "doors, gates and badges"}
STORE = MemoryStore()


def classifier(**options):
    return SetScoreClassifier(LABELS, store=STORE, **options)


@pytest.fixture(scope="module")
def learned():
    return classifier().fit(TEXTS, GOLD)


def test_fit_learns_on_top_of_the_scores_unless_told_otherwise(learned):
    assert learned.regime == learned.classify(TEXTS)[0].regime == "learned"
    assert learned.predict_labels(TEXTS) == [set(names) for names in GOLD]
    with pytest.warns(UserWarning, match="few documents"):
        plain = classifier(head="none").fit(TEXTS, GOLD)
    assert plain.regime == "calibrated"
    np.testing.assert_array_equal(learned.decision_function(TEXTS), plain.decision_function(TEXTS))  # the model's own


@pytest.mark.parametrize(
    ("options", "regime"),
    [
        ({"calibration": "auto?most=1"}, "learned"),
        ({"calibration": AutoCalibration(most=1)}, "learned"),
        ({"calibration": "paper"}, "calibrated"),
        ({"calibration": PaperCalibration()}, "calibrated"),
        ({"calibration": "platt?most=1"}, "calibrated"),
        ({"calibration": "paper", "head": "readout"}, "learned"),
        ({"calibration": "auto", "head": "readout"}, "learned"),
        ({"calibration": "auto", "head": "none"}, "calibrated"),
    ],
)
def test_whoever_names_a_calibration_gets_that_one_unless_a_head_is_asked_for(options, regime):
    model = classifier(**options).fit(TEXTS, GOLD)
    assert model.regime == regime
    if regime == "calibrated":  # of the model's own scores: nothing beside them was looked at
        assert model.calibration_.fitted_on(model.decision_function(TEXTS), model.labels_.indicator(GOLD))
        assert not model.fitted_.known.embedded


def test_the_papers_calibration_is_the_papers_regime():
    """The same numbers as the calibrator alone on the model's log-odds."""
    model = classifier(calibration="paper").fit(TEXTS, GOLD)
    log_odds, gold = model.decision_function(TEXTS), model.labels_.indicator(GOLD)
    np.testing.assert_array_equal(model.predict(TEXTS), PaperCalibration().fit(log_odds, gold).predict(log_odds))


@pytest.mark.parametrize(
    "changed",
    [
        {"competition": 1.0},
        {"threshold": 0.99},
        {"head": "none"},
        {"calibration": "paper"},
        {"objective": "micro_f1"},
        {"blend": "own-cosine"},
        {"shortlist": 1},
    ],
)
def test_what_was_fitted_does_not_change_with_a_parameter(changed, learned, tmp_path):
    """What `fit` read it has read: predictions, other labels, and what is saved are of the fit as it was."""
    model = classifier().fit(TEXTS, GOLD).set_params(**changed)
    expected = learned.classify(TEXTS)
    found = model.classify(TEXTS)
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)
    np.testing.assert_array_equal(found.decisions, expected.decisions)
    assert found.regime == expected.regime
    turned = {name: LABELS[name] for name in reversed(LABELS)}
    np.testing.assert_allclose(
        model.with_labels(turned).predict_proba(TEXTS), learned.with_labels(turned).predict_proba(TEXTS), atol=1e-9
    )
    model.save(tmp_path / "model.json")
    np.testing.assert_allclose(
        SetScoreClassifier.load(tmp_path / "model.json").predict_proba(TEXTS), expected.probabilities, atol=1e-6
    )


@pytest.mark.parametrize(("first", "then"), [("none", "readout"), ("readout", "none")])
def test_more_documents_are_learned_from_as_the_first_ones_were(first, then):
    model = classifier(head=first).fit(TEXTS[:8], GOLD[:8]).set_params(head=then).partial_fit(TEXTS[8:], GOLD[8:])
    whole = classifier(head=first).fit(TEXTS, GOLD)
    assert model.regime == whole.regime
    np.testing.assert_allclose(model.predict_proba(TEXTS), whole.predict_proba(TEXTS), atol=1e-6)


def test_scores_of_two_models_do_not_mix(learned):
    other = copy.copy(learned)
    other.fitted_ = replace(learned.fitted_, identity="another")
    with pytest.raises(SetScoreError, match="the model has changed since `fit`"):
        other.partial_fit(TEXTS[:2], GOLD[:2])


def test_without_a_store_and_in_one_pass_it_is_the_same(learned):
    alone = SetScoreClassifier(LABELS).fit(TEXTS, GOLD)
    np.testing.assert_allclose(alone.predict_proba(TEXTS), learned.predict_proba(TEXTS), atol=1e-6)


@pytest.mark.parametrize("options", [{"scorer": "unary"}, {"attention": "exact"}, {"shortlist": 1}])
def test_other_ways_of_asking_learn_too(options):
    found = classifier(**options).fit(TEXTS, GOLD)
    assert found.regime == "learned"
    assert found.predict(TEXTS).shape == (len(TEXTS), 2)


# Bad input: what comes of it, as a line or as a sensible result. None warns or fails later on.
MANY = [f"topic number {number}" for number in range(30)]  # more labels than documents, beside the usual two
BAD = {
    "one document": (TEXTS[:1], GOLD[:1], "zero-shot"),
    "no gold label at all": (TEXTS, [[]] * len(TEXTS), "learned"),
    "one class only": ([text for text, gold in zip(TEXTS, GOLD, strict=True) if gold == ["print"]], None, "learned"),
    "a label never positive": (TEXTS, [gold if gold == ["print"] else [] for gold in GOLD], "learned"),
    "a label always positive": (TEXTS, [["print", *gold] if gold == ["access"] else gold for gold in GOLD], "learned"),
    "all positive": (TEXTS, [["print", "access"]] * len(TEXTS), "learned"),
    "duplicates with conflicting labels": (
        [TEXTS[0]] * 6 + TEXTS[1:7],
        [["print"], ["access"]] * 3 + GOLD[1:7],
        "learned",
    ),
    "more labels than documents": (TEXTS[:4], [["print"], ["print"], [], []], "learned"),
    "two documents": (TEXTS[1:3], GOLD[1:3], "learned"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_a_sensible_result(case):
    texts, gold, regime = BAD[case]
    model = classifier()
    if case == "more labels than documents":
        model.set_params(labels={**LABELS, **dict.fromkeys(MANY)})
    found = model.fit(texts, [["print"]] * len(texts) if gold is None else gold)
    assert found.regime == regime
    probabilities = found.predict_proba(TEXTS)
    assert np.isfinite(probabilities).all()
    if case == "more labels than documents":
        assert probabilities[:, 2:].mean() < 0.5  # none of them has an example
    if case == "duplicates with conflicting labels":
        assert (abs(found.predict_proba(TEXTS[:1]) - 0.5) < 0.45).all()  # as unsure as its gold is
    if case == "all positive":
        assert (probabilities > 0.5).all()
    if regime == "zero-shot":
        np.testing.assert_array_equal(probabilities, classifier().predict_proba(TEXTS))


@pytest.mark.parametrize(
    ("texts", "gold", "message"),
    [
        ([], [], "there are no documents"),
        (TEXTS[:2], GOLD[:1], r"gold labels have the shape \(1, 2\), there are 2 documents"),
        (TEXTS[:1], [["prnt"]], "did you mean 'print'"),
        (["", "x"], GOLD[:2], "is empty"),
    ],
)
def test_what_is_no_labelled_document_is_named(texts, gold, message):
    for ask in (classifier().fit, classifier().fit(TEXTS, GOLD).partial_fit):
        with pytest.raises((SetScoreError, LabelError), match=message):
            ask(texts, gold)


def test_partial_fit_is_fit_with_all(learned):
    parts = classifier().partial_fit(TEXTS[:7], GOLD[:7]).partial_fit(TEXTS[7:], GOLD[7:])
    np.testing.assert_allclose(parts.predict_proba(TEXTS), learned.predict_proba(TEXTS), atol=1e-6)
    assert len(parts.fitted_.known) == len(TEXTS)


def test_labels_change_after_fit(learned, tmp_path):
    again = learned.with_labels(LABELS)
    np.testing.assert_allclose(again.predict_proba(TEXTS), learned.predict_proba(TEXTS), atol=1e-6)
    other = learned.with_labels({"access": "gates", "heating": "heating and air conditioning"})
    assert list(other.classes_) == ["access", "heating"]
    assert other.regime == "learned"
    readout, before = other.fitted_.readout, learned.fitted_.readout
    np.testing.assert_array_equal(readout.weights[:, 0], before.weights[:, 1])
    assert not readout.weights[:, 1].any()
    assert list(learned.classes_) == ["print", "access"]  # a copy was made
    assert other.predict_labels(["The heating is broken, it is cold."]) == [{"heating"}]
    other.partial_fit(["It is far too cold in here.", "The radiator leaks."], [["heating"], ["heating"]])
    other.save(tmp_path / "other.json")
    loaded = SetScoreClassifier.load(tmp_path / "other.json")
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), other.predict_proba(TEXTS), atol=1e-4)


def test_labels_that_a_shortlist_remembers_do_not_change():
    with pytest.raises(SetScoreError, match="no shortlist and no seeded scorer"):
        classifier(shortlist=1).fit(TEXTS, GOLD).with_labels(["print"])


def test_before_fit_labels_are_simply_others():
    assert classifier().with_labels(["oil"]).predict_labels(["Crude oil fell."]) == [{"oil"}]


def test_saved_whole_and_gone_on_with(learned, tmp_path):
    path = tmp_path / "model.json"
    learned.save(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.json", "model.safetensors"]
    loaded = SetScoreClassifier.load(path).set_params(store=STORE)
    assert loaded.regime == "learned"
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), learned.predict_proba(TEXTS), atol=1e-4)
    loaded.partial_fit(["Toner please."], [["print"]])
    assert len(loaded.fitted_.known) == len(TEXTS) + 1
    assert not any(word in (tmp_path / "model.safetensors").read_bytes() for word in (b"printer", b"badge"))


def arrays_of(path):
    return safetensors.numpy.load((path.parent / "model.safetensors").read_bytes())


def put(path, arrays, **said):
    """The arrays, and a JSON that knows them by their digest."""
    import hashlib

    data = safetensors.numpy.save(arrays)
    (path.parent / "model.safetensors").write_bytes(data)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["arrays"] = {"sha256": hashlib.sha256(data).hexdigest()} | said
    path.write_text(json.dumps(content), encoding="utf-8")


def without(name):
    return lambda arrays: arrays.pop(name)


def set_to(name, value):
    return lambda arrays: arrays.update({name: value(arrays[name])})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("readout.weights"), "it lacks weights"),
        (without("known:gold"), "known:gold, known:vectors and known.model are needed"),
        (set_to("readout.biases", lambda a: a[:1]), "its arrays do not fit 2 labels"),
        (set_to("readout.biases", lambda a: a * np.nan), "numbers that are not finite"),
        (set_to("readout.biases", lambda a: a.astype(np.float32)), "does not hold 64-bit floats"),
        (set_to("known:gold", lambda a: a + 2), "gold is 0 or 1"),
        (set_to("known:gold", lambda a: a[:3]), "their arrays do not fit 2 labels"),
        (set_to("known.model", lambda a: a * np.nan), "log-odds are finite, or -inf"),
        (set_to("known:vectors", lambda a: a[:, :0] * 1 if a.ndim == 1 else a[0]), "do not fit 2 labels"),
    ],
)
def test_damaged_arrays_are_refused(learned, tmp_path, change, message):
    path = tmp_path / "model.json"
    learned.save(path)
    arrays = arrays_of(path)
    change(arrays)
    put(path, arrays)
    with pytest.raises(DataFileError, match=message):
        SetScoreClassifier.load(path)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"sha256": "00"}, "its SHA-256 is another one"),
        ({"sha256": 3}, "arrays.sha256 must be a text"),
        ({"more": "x"}, "unknown field 'more'"),
    ],
)
def test_the_file_of_arrays_is_the_very_one(learned, tmp_path, said, message):
    path = tmp_path / "model.json"
    learned.save(path)
    put(path, arrays_of(path), **said)
    with pytest.raises(DataFileError, match=message):
        SetScoreClassifier.load(path)


def test_both_files_belong_together(learned, tmp_path):
    learned.save(tmp_path / "model.json")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(DataFileError, match=r"model\.safetensors cannot be read: No such file .*keep both"):
        SetScoreClassifier.load(tmp_path / "model.json")


def test_a_name_that_the_arrays_need_is_refused(learned, tmp_path):
    with pytest.raises(SetScoreError, match="name the classifier's file otherwise"):
        learned.save(tmp_path / "model.safetensors")


# Objectives


def made(n, seed=0, m=12):
    """Probabilities that are right, of a few frequent labels and many rare ones."""
    random = np.random.default_rng(seed)
    base = np.linspace(0, -4, m)
    log_odds = base + 1.5 * random.normal(size=(n, m))
    return log_odds, random.random((n, m)) < expit(log_odds)


def test_each_objective_reaches_most_of_what_it_aims_at():
    from setscore.metrics import decision_metrics

    log_odds, gold = made(400)
    test = made(4000, seed=1)
    found = {}
    for objective in ("micro_f1", "macro_f1", "balanced"):
        calibration = LearnedCalibration(objective=objective).fit(log_odds, gold)
        metrics = decision_metrics(test[1], calibration.predict(test[0]))
        found[objective] = (metrics["micro_f1"], metrics["macro_f1"])
    assert max(found, key=lambda one: found[one][0]) == "micro_f1"
    assert found["macro_f1"][1] > found["micro_f1"][1] + 0.01
    assert found["balanced"][0] > found["macro_f1"][0]
    assert found["balanced"][1] > found["micro_f1"][1]
    assert sum(found["balanced"]) > max(sum(found[one]) for one in found) - 0.005


def test_an_objective_can_be_chosen_and_what_has_none_says_so(learned):
    assert learned.calibration_.objective == "balanced"
    assert classifier(objective="micro_f1").fit(TEXTS, GOLD).calibration_.objective == "micro_f1"
    assert classifier(calibration="auto?objective=micro_f1").fit(TEXTS, GOLD).calibration_.objective == "micro_f1"
    with pytest.raises(SetScoreError, match="unknown objective 'f1'"):
        classifier(objective="f1").check()
    with pytest.raises(SetScoreError, match="the calibration conformal has no objective"):
        classifier(objective="micro_f1", calibration="conformal").fit(TEXTS, GOLD)


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_conformal_recall_holds_with_the_head(level):
    """The mean recall of new documents over draws of the slice; 0.02 for the noise of ten draws."""
    pytest.importorskip("mapie")
    found = []
    for seed in range(10):
        log_odds, gold = made(900, seed=seed, m=6)
        vectors = np.random.default_rng(seed).normal(size=(900, 8))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        known = Known({"model": 0.6 * log_odds[:200] - 1}, gold[:200], vectors[:200])
        labels = vectors[:6]
        calibration, _, readout = conclude(known, labels, Aim(f"conformal?level={level}"))
        assert readout is not None
        decisions = calibration.predict(readout.log_odds(0.6 * log_odds[200:] - 1, vectors[200:]))
        new = gold[200:]
        some = new.any(axis=1)
        found.append(((decisions & new).sum(axis=1)[some] / new.sum(axis=1)[some]).mean())
    assert np.mean(found) >= level - 0.02
