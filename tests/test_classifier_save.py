"""Saving and loading a classifier: the same predictions, one JSON file, whole or not at all."""

import errno
import json
import os
import stat

import numpy as np
import pytest
from fakes import FakeBackbone

from setscore import Label, SetScoreClassifier, Template, Verbalizer
from setscore.calibration import PlattCalibration
from setscore.errors import DataFileError, LabelError, SetScoreError

DOCUMENTS = [
    "Crude oil prices fell again on Monday.",
    "She won the match in straight sets.",
    "A new album after ten quiet years.",
    "The refinery will sponsor the football club.",
]
GOLD = [["oil"], ["sports"], ["music"], ["oil", "sports"]]
LABELS = {"oil": "crude oil or its price", "sports": None, "music": "a song, an album or a concert"}


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (list(LABELS), {}),
        (LABELS, {"threshold": 0.2}),
        ([Label("oil"), Label("sports", "a match"), Label("music")], {"template": "article-about"}),
        (LABELS, {"template": "Text: {document}\nDoes it deal with {label}? Say:", "attention": "exact"}),
        (LABELS, {"template": Template.of("case-about", layout="line"), "verbalizer": "true/false"}),
        (LABELS, {"verbalizer": Verbalizer("sure", "never"), "long_documents": "chunk", "pool": "mean", "overlap": 8}),
        (LABELS, {"calibration": "paper"}),
        (LABELS, {"calibration": PlattCalibration(objective="cost", cost=(1.0, 3.0), least=1, most=2)}),
        ({"oil": "Öl, 石油 und „Erdgas“", "sports": '{label} \\ "quoted"', "music": None}, {}),
    ],
    ids=[
        "names",
        "descriptions",
        "label objects",
        "whole prompt",
        "template object",
        "custom verbalizer",
        "calibration",
        "calibration object",
        "unicode",
    ],
)
@pytest.mark.parametrize("fitted", [False, True])
def test_the_loaded_classifier_predicts_the_same(tmp_path, labels, options, fitted):
    model = SetScoreClassifier(labels, **options)
    if fitted:
        model.fit(DOCUMENTS, GOLD)
    model.save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(DOCUMENTS), model.predict_proba(DOCUMENTS))
    np.testing.assert_array_equal(loaded.predict(DOCUMENTS), model.predict(DOCUMENTS))
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert hasattr(loaded, "calibration_") == hasattr(loaded, "labels_") == fitted
    loaded.save(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


def test_names_learned_in_fit_are_saved(tmp_path):
    model = SetScoreClassifier().fit(DOCUMENTS, GOLD)
    model.save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json")
    assert loaded.classes_.tolist() == ["music", "oil", "sports"]
    np.testing.assert_array_equal(loaded.predict_proba(DOCUMENTS), model.predict_proba(DOCUMENTS))


def test_a_loaded_classifier_can_be_fitted_again(tmp_path):
    SetScoreClassifier(LABELS, threshold=0.9).save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json").fit(DOCUMENTS, GOLD)
    expected = SetScoreClassifier(LABELS).fit(DOCUMENTS, GOLD)
    assert loaded.calibration_.state() == expected.calibration_.state()


def test_a_loaded_classifier_is_fitted_again_with_the_same_calibration(tmp_path):
    model = SetScoreClassifier(LABELS, calibration=PlattCalibration(objective="cost", cost=(1.0, 3.0), most=2))
    model.save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json").fit(DOCUMENTS, GOLD)
    assert loaded.calibration_.state() == model.fit(DOCUMENTS, GOLD).calibration_.state()


def test_the_file_is_plain_json_with_a_format(tmp_path):
    # A published format: a change here means a new format name.
    SetScoreClassifier({"oil": "crude oil", "sports": None}).save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text(encoding="utf-8")) == {
        "format": "setscore.classifier/1",
        "params": {
            "labels": {"oil": "crude oil", "sports": None},
            "scorer": "per_label",
            "backbone": "setscore-mini",
            "template": "Document:\n{document}\n\nQuestion: Does this document express {label}?\nAnswer:",
            "verbalizer": {"yes": "yes", "no": "no"},
            "attention": "auto",
            "long_documents": "auto",
            "pool": "logmeanexp",
            "overlap": 64,
            "calibration": {
                "name": "auto",
                "options": {"objective": "micro_f1", "cost": [1.0, 1.0], "least": 0, "most": None, "margin": 0.0},
            },
            "threshold": 0.5,
        },
        "calibration": None,
        "learned": {},
    }


def test_what_a_scorer_learnt_is_saved(tmp_path):
    texts = ["Crude prices fell again.", "The match ended two to one.", "Rain fell."] * 4
    gold = np.array([[1, 0], [0, 1], [0, 0]] * 4)
    model = SetScoreClassifier(["oil", "sports"], scorer="milp?support=2", calibration="temperature").fit(texts, gold)
    model.save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json")
    assert loaded.fitted_.learned == model.fitted_.learned
    assert loaded.fitted_.learned["seen"]["documents"] == 12
    assert (loaded.decision_function(texts) == model.decision_function(texts)).all()
    assert SetScoreClassifier.load(tmp_path / "model.json").fit(texts, gold).fitted_.learned == model.fitted_.learned


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path):
    # A parameter search sets parameters to values such as np.int64(32).
    SetScoreClassifier(["oil"], overlap=np.int64(32), threshold=np.float32(0.25)).save(tmp_path / "model.json")
    loaded = SetScoreClassifier.load(tmp_path / "model.json")
    assert (loaded.overlap, loaded.threshold) == (32, 0.25)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_the_file_is_as_readable_as_any_other(tmp_path):
    (tmp_path / "other").touch()
    SetScoreClassifier(["oil"]).save(tmp_path / "model.json")
    assert stat.S_IMODE((tmp_path / "model.json").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_a_backbone_object_cannot_be_saved(tmp_path):
    with pytest.raises(SetScoreError, match="only a classifier whose backbone is given by name can be saved"):
        SetScoreClassifier(["oil"], backbone=FakeBackbone()).save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_without_labels_there_is_nothing_to_save(tmp_path):
    with pytest.raises(LabelError, match="no labels were given"):
        SetScoreClassifier().save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


# Tests often run as root, for whom every folder is writable; so the system's refusals are played.
@pytest.mark.parametrize(
    ("function", "number", "reason"),
    [("pathlib.Path.open", errno.EACCES, "Permission denied"), ("os.replace", errno.ENOSPC, "No space left on device")],
    ids=["unwritable folder", "full disk"],
)
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, function, number, reason):
    path = tmp_path / "model.json"
    SetScoreClassifier(["oil"]).save(path)
    before = path.read_bytes()

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(function, refuse)
        with pytest.raises(DataFileError, match=rf"model\.json cannot be written: {reason}\."):
            SetScoreClassifier(["sports"]).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["missing/model.json", "file/model.json", "folder"])
def test_a_place_that_cannot_hold_a_file(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataFileError, match="cannot be written"):
        SetScoreClassifier(["oil"]).save(tmp_path / place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as JSON"),
        (b'{"format": "setscore.cl', "cannot be read as JSON"),
        (b"\x80\x04\x95", "cannot be read as JSON"),  # a pickle is refused, not loaded
        (b"[]", "has the format None; this version of SetScore reads 'setscore.classifier/1'"),
        (b'{"format": "setscore.classifier/2"}', "has the format 'setscore.classifier/2'; this version"),
        (b'{"format": "setscore.classifier/1"}', "is damaged: KeyError: 'params'"),
    ],
)
def test_files_that_are_no_classifier(tmp_path, content, message):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=rf"model\.json {message}"):
        SetScoreClassifier.load(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(DataFileError, match=r"model\.json cannot be read: No such file"):
        SetScoreClassifier.load(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("params",), None, "TypeError"),
        (("params", "verbalizer"), {"yes": "yes"}, "TypeError.*'no'"),
        (("params", "colour"), "blue", "TypeError.*'colour'"),
        (("params", "labels"), {}, "LabelError: there are no labels"),
        (("calibration",), {"temperature": 1.0}, "KeyError: 'name'"),
        (("calibration", "name"), "autto", "SetScoreError: unknown calibration 'autto'. Did you mean 'auto'"),
        (("calibration", "fitted", "thresholds_"), [0.5], r"SetScoreError: 3 thresholds in \[0, 1\] are needed, got"),
        (("calibration", "chosen", "fitted"), {}, "KeyError: 'thresholds_'"),
        (("calibration",), [1], "TypeError"),
    ],
)
def test_a_damaged_file_says_where(tmp_path, keys, value, message):
    path = tmp_path / "model.json"
    SetScoreClassifier(LABELS).fit(DOCUMENTS, GOLD).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataFileError, match=rf"model\.json is damaged: {message}"):
        SetScoreClassifier.load(path)
