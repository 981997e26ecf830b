"""Saving and loading a classifier: the same predictions, one JSON file, whole or not at all."""

import errno
import json
import os
import stat

import numpy as np
import pytest
from fakes import FakeBackbone

from setscore import Label, SetScoreClassifier, Template, Verbalizer, load_backbone
from setscore.calibration import PlattCalibration
from setscore.errors import DataFileError, IdentityWarning, LabelError, SetScoreError

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
        "format": "setscore.classifier/2",
        "params": {
            "labels": {"oil": "crude oil", "sports": None},
            "label_text": "both",
            "scorer": "per_label",
            "backbone": "setscore-small",
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
            "head": "auto",
        },
        "calibration": None,
        "learned": {},
        "identity": None,
        "readout": None,
        "arrays": None,
    }


def test_what_a_scorer_learned_is_saved(tmp_path):
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
        (b"[]", "has the format None; this version of SetScore reads 'setscore.classifier/2'"),
        (b'{"format": "setscore.classifier/3"}', "has the format 'setscore.classifier/3'; this version"),
        (b'{"format": "setscore.classifier/2"}', "is damaged: the field params is missing."),
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
    ("field", "value", "message"),
    [
        ("params", None, ": the field params must be an object, got None."),
        (
            "colour",
            1,
            " is damaged: the field unknown field 'colour'. Known: arrays, calibration, format, identity",
        ),
        ("params.colour", "blue", " is damaged: the field params.unknown field 'colour'. Known: attention, backbone,"),
        ("params.labels", {}, " is damaged: there are no labels. Give at least one"),
        (
            "params.labels",
            ["oil"],
            ": the field params.labels must be an object of names and descriptions, got ['oil'].",
        ),
        ("params.labels.oil", 7, " is damaged: the description of label 0 is 7 of type int, not a text."),
        ("params.overlap", -5, ": the field params.overlap must be a whole number from 0, got -5."),
        ("params.overlap", 2.5, ": the field params.overlap must be a whole number from 0, got 2.5."),
        ("params.overlap", True, ": the field params.overlap must be a whole number from 0, got True."),
        ("params.pool", "meen", " is damaged: unknown pool 'meen'. Did you mean 'mean'?"),
        ("params.long_documents", "all", " is damaged: unknown long_documents mode 'all'."),
        (
            "params.attention",
            "exakt",
            " is damaged: unknown attention mode of setscore-small 'exakt'. Did you mean 'exact'?",
        ),
        ("params.scorer", "jrs", " is damaged: unknown scorer 'jrs'. Did you mean 'jsr'?"),
        ("params.scorer", None, ": the field params.scorer must be a text, got None."),
        (
            "params.backbone",
            "setscore-mimi",
            " is damaged: unknown backbone 'setscore-mimi'. Did you mean 'setscore-mini'?",
        ),
        ("params.template", "{document}", " is damaged: the template has no {label}"),
        (
            "params.verbalizer",
            {"yes": "yes"},
            ': the field params.verbalizer must be an object of two texts, "yes" and "no", got',
        ),
        ("params.threshold", 1.5, ": the field params.threshold must be a number from 0 to 1, got 1.5."),
        ("params.threshold", "0.5", ": the field params.threshold must be a number from 0 to 1, got '0.5'."),
        ("params.competition", 3, ": the field params.competition must be a number from 0 to 1, got 3."),
        ("params.shortlist", 0, " is damaged: an empty shortlist asks nothing: k is a whole number from 1, got 0."),
        (
            "params.shortlist",
            {"k": 3, "cache": "/tmp/x"},
            ": the field params.shortlist.cache must be null: a file does not",
        ),
        ("params.blend", "cosin", " is damaged: unknown blend 'cosin'. Did you mean 'cosine'?"),
        ("params.calibration.name", "autto", " is damaged: unknown calibration 'autto'. Did you mean 'auto'?"),
        (
            "params.calibration.options.most",
            -5,
            " is damaged: 0 <= least <= most and most >= 1 are needed, got 0 and -5.",
        ),
        (
            "params.calibration.options.most",
            "3",
            ": the field params.calibration.options.most must be a whole number or null, got '3'.",
        ),
        (
            "params.calibration.options.colour",
            1,
            " is damaged: the field params.calibration.options: unknown option 'colour'.",
        ),
        ("calibration", [1], ": the field calibration must be an object or null, got [1]."),
        ("calibration", {"temperature": 1.0}, " is damaged: unknown calibration 'None'."),
        ("calibration.name", "autto", " is damaged: unknown calibration 'autto'. Did you mean 'auto'?"),
        ("calibration.options.most", -5, " is damaged: 0 <= least <= most and most >= 1 are needed, got 0 and -5."),
        (
            "calibration.options.margin",
            float("nan"),
            ": the field calibration.options.margin must be a finite number, got nan.",
        ),
        ("calibration.fitted.thresholds_", [0.5], " is damaged: 3 thresholds in [0, 1] are needed, got [0.5]."),
        (
            "calibration.fitted.thresholds_",
            [0.5, 0.5, "x"],
            ": the field calibration.fitted.thresholds_ must be text, a finite",
        ),
        (
            "calibration.fitted.__class__",
            "x",
            " is damaged: the field calibration.fitted.__class__ is unknown; auto has scores_.",
        ),
        ("calibration.chosen.fitted", {}, " is damaged: KeyError: 'thresholds_'"),
        (
            "calibration.chosen.fitted.slope_",
            float("inf"),
            ": the field calibration.chosen.fitted.slope_ must be text, a finite",
        ),
        ("learned", [], ": the field learned must be an object, got []."),
        ("identity", 3, ": the field identity must be a text or null, got 3."),
    ],
)
def test_every_field_is_checked_when_a_file_is_loaded(tmp_path, field, value, message):
    path = tmp_path / "model.json"
    SetScoreClassifier(LABELS, head="none").fit(DOCUMENTS, GOLD).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    *keys, last = field.split(".")
    inner = content
    for key in keys:
        inner = inner[key]
    inner[last] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataFileError) as caught:
        SetScoreClassifier.load(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_a_file_cannot_consent_to_code_but_its_reader_can(tmp_path):
    path = tmp_path / "model.json"
    SetScoreClassifier(["oil"], backbone="setscore-mini").save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["params"]["backbone"] = "hf:/folder?allow=remote-code&dtype=fp32"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataFileError, match=r"the field params\.backbone must be a model without allow=remote-code"):
        SetScoreClassifier.load(path)
    content["params"]["backbone"] = "hf:/folder?dtype=fp32"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert SetScoreClassifier.load(path).backbone == "hf:/folder?dtype=fp32"
    loaded = SetScoreClassifier.load(path, allow=["remote-code"])
    assert loaded.backbone == "hf:/folder?dtype=fp32&allow=remote-code"
    loaded.save(tmp_path / "again.json")  # consent is not saved
    assert SetScoreClassifier.load(tmp_path / "again.json").backbone == "hf:/folder?dtype=fp32"


def test_a_classifier_whose_model_has_changed_says_so(tmp_path):
    path = tmp_path / "model.json"
    SetScoreClassifier(LABELS, head="none").fit(DOCUMENTS, GOLD).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["identity"] == load_backbone("setscore-small").identity
    content["identity"] = "0" * 64
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.warns(IdentityWarning, match="was fitted on other weights or settings than setscore-small has now"):
        SetScoreClassifier.load(path).predict(DOCUMENTS)
