import json
import sys

import numpy as np
import pytest

from setscore import SetScoreClassifier
from setscore.errors import DataFileError, MissingExtraError
from setscore.experiments import prepare, report
from setscore.experiments.pictures import reliability_diagram

PNG = b"\x89PNG\r\n\x1a\n"
SEEDS = (13, 17)


def encode(texts):
    return np.array([[0.1, *(text.count(word) for word in ("joy", "anger", "fear"))] for text in texts])


@pytest.fixture
def ready(data):
    return prepare("goemotions", "development", SEEDS, data_dir=data)


@pytest.fixture
def scored(ready, classifier):
    return report.score_parts(ready, classifier)


def test_model_then_yardsticks_then_oracles(ready, scored):
    made = report.report(ready, scored, SEEDS, ["platt"], yardsticks=True, encode=encode)
    assert [(summary.name, summary.kind) for summary in made.summaries] == [
        ("platt", "model"),
        ("label prior", "yardstick"),
        ("every label", "yardstick"),
        ("cosine, platt", "yardstick"),
        ("oracle global", "oracle"),
        ("oracle per label, micro", "oracle"),
        ("oracle per label, macro", "oracle"),
    ]
    assert made.remarks == ("the cosine yardstick reads at most the first 256 tokens of a document.",)
    assert [summary.name for summary in report.report(ready, scored, SEEDS, ["platt"]).summaries][1] == "oracle global"


def test_without_the_encoder_the_other_yardsticks_stay(ready, scored, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    made = report.report(ready, scored, SEEDS, ["platt"], yardsticks=True)
    assert [summary.name for summary in made.summaries if summary.kind == "yardstick"] == ["label prior", "every label"]
    assert made.remarks[0].startswith("the cosine yardstick is left out: the cosine yardstick needs the extra 'sbert'")


def test_as_json(ready, scored):
    made = report.report(ready, scored, SEEDS, ["platt"])
    content = json.loads(json.dumps(report.as_json(made)))
    assert content["documents"] == {"13": [30, 30], "17": [30, 30]}
    assert (content["slices"], content["labels"], content["config"]["backbone"]) == ("development", 3, "fake")
    row = content["rows"][0]
    seeds = [row["seeds"][str(seed)]["metrics"]["micro_f1"] for seed in SEEDS]
    assert row["metrics"]["micro_f1"]["mean"] == pytest.approx(np.mean(seeds))
    assert row["metrics"]["micro_f1"]["sd"] == pytest.approx(np.std(seeds, ddof=1))
    assert set(row["seeds"]["13"]["intervals"]["macro_f1"]) == {"value", "low", "high"}
    assert row["seeds"]["13"]["choice"].startswith("slope")
    one = report.as_json(report.report(ready, scored, [13], ["platt"]))
    assert one["rows"][0]["metrics"]["micro_f1"]["sd"] is None


def test_pictures_are_png_files(ready, scored, tmp_path):
    pytest.importorskip("matplotlib")
    paths = report.draw(report.report(ready, scored, SEEDS, ["paper"]), tmp_path / "pictures", "paper")
    assert [path.name for path in paths] == ["goemotions-reliability.png", "goemotions-thresholds.png"]
    assert all(path.read_bytes().startswith(PNG) for path in paths)


def test_pictures_say_what_is_missing(tmp_path, monkeypatch):
    gold, probabilities = np.array([[True]]), {"raw": np.array([[0.5]])}
    if "matplotlib" in sys.modules:
        (tmp_path / "file").write_text("")
        with pytest.raises(DataFileError, match=r"file/a.png cannot be written"):
            reliability_diagram(tmp_path / "file" / "a.png", gold, probabilities, "title")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="pictures needs the extra 'plots'"):
        reliability_diagram(tmp_path / "a.png", gold, probabilities, "title")


def test_a_calibrated_classifier_decides_as_a_fitted_one(ready, scored, backbone):
    dataset = ready.parts["pool"]
    model = report.calibrated(SetScoreClassifier(backbone=backbone), dataset.labels, scored["pool"], "platt")
    fitted = SetScoreClassifier(dataset.labels, backbone=backbone, calibration="platt").fit(dataset.texts, dataset.gold)
    np.testing.assert_array_equal(model.predict(dataset.texts), fitted.predict(dataset.texts))
    assert model.calibration == "platt"
