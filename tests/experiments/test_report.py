import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from made_up import write_goemotions

from setscore import SetScoreClassifier
from setscore.backbones.mini import default_folder
from setscore.encoders import load_encoder
from setscore.errors import DataFileError, MissingExtraError
from setscore.experiments import prepare, prepare_file, report
from setscore.experiments.evaluation import trials
from setscore.experiments.pictures import reliability_diagram
from setscore.experiments.scored import fit
from setscore.metrics import by_group
from setscore.store import MemoryStore

PNG = b"\x89PNG\r\n\x1a\n"
SEEDS = (13, 17)


def encode(texts):
    return np.array([[0.1, *(text.count(word) for word in ("joy", "anger", "fear"))] for text in texts])


def test_model_then_yardsticks_then_oracles(ready, scored):
    made = report.report(ready, scored, SEEDS, ["platt"], yardsticks=True, encode=encode)
    assert [(summary.name, summary.kind) for summary in made.summaries] == [
        ("platt", "model"),
        ("threshold 0.5", "model"),
        ("label prior", "yardstick"),
        ("every label", "yardstick"),
        ("cosine, platt", "yardstick"),
        ("oracle global", "oracle"),
        ("oracle per label, micro", "oracle"),
        ("oracle per label, macro", "oracle"),
    ]
    assert made.remarks == (
        "fitted on few documents (30): with fewer than 50, decisions can get worse; 200 are good.",
        "the cosine yardstick reads at most the first 256 tokens of a document.",
    )
    assert [summary.name for summary in report.report(ready, scored, SEEDS, ["platt"]).summaries][2] == "oracle global"


def test_without_the_encoder_the_other_yardsticks_stay(ready, scored, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    load_encoder.cache_clear()  # another test of this process may have loaded it
    made = report.report(ready, scored, SEEDS, ["platt"], yardsticks=True)
    assert [summary.name for summary in made.summaries if summary.kind == "yardstick"] == ["label prior", "every label"]
    assert made.remarks[1].startswith("left out: the cosine yardstick needs the extra 'sbert'")


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
    labels = row["seeds"]["13"]["labels"]
    assert [label["label"] for label in labels] == ["joy", "anger", "fear"]
    assert np.mean([label["f1"] for label in labels]) == pytest.approx(row["seeds"]["13"]["metrics"]["macro_f1"])
    assert "pairs" not in content
    one = report.as_json(report.report(ready, scored, [13], ["platt"]))
    assert one["rows"][0]["metrics"]["micro_f1"]["sd"] is None


def test_groups_are_measured_in_every_row_but_the_oracles(ready, classifier):
    pool = ready.parts["pool"]
    values = ["rare" if row == 59 else "even" if row % 2 == 0 else "odd" for row in range(60)]
    plain, grouped = ready, replace(ready, parts={"pool": replace(pool, groups=tuple(values))})
    store = classifier.set_params(store=MemoryStore()).store
    report.score_parts(plain, classifier)
    asked = classifier.backbone.queries
    scored = report.score_parts(grouped, classifier)
    assert classifier.backbone.queries == asked  # the saved scores are those of any groups
    made = report.report(grouped, scored, SEEDS, ["platt"], yardsticks=True, encode=encode, store=store)
    again = report.report(grouped, scored, SEEDS, ["platt"], yardsticks=True, encode=encode, store=store)
    assert [one.rows for one in again.summaries] == [one.rows for one in made.summaries]  # cosines are saved as well
    for summary in made.summaries:
        assert list(summary.groups) == ([] if summary.kind == "oracle" else ["even", "odd", "rare"])
    platt, trial = made.summaries[0], made.trials[0]
    calibration = fit(trial.validation, trial.test, "platt")
    expected = by_group(trial.test.gold, calibration.predict(trial.test.log_odds), trial.test.groups)
    assert platt.rows[13].groups == expected
    assert sum(group["documents"] for group in expected.values()) == 30
    content = json.loads(json.dumps(report.as_json(made), allow_nan=False))["rows"]
    seeds = [content[0]["seeds"][str(seed)]["groups"]["even"]["micro_f1"] for seed in SEEDS]
    assert content[0]["groups"]["even"]["micro_f1"]["mean"] == pytest.approx(np.mean(seeds))
    assert ["rare" in content[0]["seeds"][str(seed)]["groups"] for seed in SEEDS].count(True) == 1
    assert content[0]["groups"]["rare"]["micro_f1"]["sd"] is None
    assert "groups" not in content[-1]


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


def test_oracles_may_be_left_out(ready, scored):
    made = report.report(ready, scored, SEEDS, ["platt"], with_oracles=False)
    assert [summary.name for summary in made.summaries] == ["platt", "threshold 0.5"]


def test_the_same_weights_by_name_or_by_path_decide_the_same_before_fit(ready, tmp_path):
    """Temperature and competition are those of the model's spec, wherever its files lie."""
    copy = tmp_path / "copy"
    shutil.copytree(default_folder(), copy)
    found = []
    for backbone in ("setscore-mini", str(copy)):
        scored = report.score_parts(ready, SetScoreClassifier(backbone=backbone))
        found.append(report.report(ready, scored, SEEDS, ["platt"]).summaries[1])
    assert found[0].name == found[1].name == "threshold 0.5"
    assert found[0] == found[1]
    pool = ready.parts["pool"]
    test = trials(scored, SEEDS)[0].test
    unfitted = SetScoreClassifier(pool.labels, backbone="setscore-mini").predict(
        [pool.texts[pool.ids.index(one)] for one in test.ids]
    )
    np.testing.assert_array_equal(found[1].rows[SEEDS[0]].decisions, unfitted.astype(bool))


@pytest.mark.parametrize("options", [{"head": "none"}, {"head": "none", "blend": "own-cosine"}, {}], ids=str)
def test_a_saved_classifier_is_measured_as_it_predicts(data, options):
    """Whatever stands between its scores and its decisions."""
    write_goemotions(data, 250)
    pool = prepare("goemotions", "development", SEEDS, data_dir=data).parts["pool"]
    known, new = pool.take(np.arange(150)), pool.take(np.arange(150, 250))
    fitted = SetScoreClassifier(pool.labels, **options).fit(known.texts, known.gold)
    assert fitted.regime == ("calibrated" if options else "learned")
    made = report.report_saved(prepare_file(new), fitted)
    (outcome,) = made.summaries[0].rows.values()
    np.testing.assert_array_equal(outcome.decisions, fitted.predict(new.texts).astype(bool))
    assert made.summaries[0].name == ("auto" if options else "learned")
