"""Runs from configs: what is refused, what a folder holds, and what a second run does."""

import json

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("pyarrow")

from commands import invoke
from fakes import FakeBackbone
from made_up import write_ecthr, write_goemotions

from setscore import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.experiments.runs import execution
from setscore.experiments.runs.config import load_config, make_config
from setscore.experiments.runs.folder import make_run, read_run
from setscore.metrics import decision_metrics

FILES = {
    *("config.json", "environment.json", "metrics.json", "scores.npz", "predictions.npz", "predictions.parquet"),
}


@pytest.fixture
def backbone(monkeypatch):
    made = FakeBackbone()
    monkeypatch.setattr(execution, "load_backbone", lambda *_, **__: made)
    return made


@pytest.fixture
def config(tmp_path):
    write_goemotions(tmp_path / "data")
    (tmp_path / "run.toml").write_text('[dataset]\nname = "goemotions"\ndata_dir = "data"\n')
    return tmp_path / "run.toml"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "the config: dataset: Field required."),
        ({"dataset": {"name": "reuters", "file": "a.csv"}}, "dataset: give name (see `setscore datasets`) or file"),
        ({"dataset": {"file": "a.csv"}}, "dataset: a file needs labels as well"),
        ({"dataset": {"name": "reuters"}, "seed": 3}, "unknown key 'seed'. Did you mean 'seeds'?"),
        ({"dataset": {"name": "reuters"}, "method": {"scorer": "per_lable"}}, "unknown scorer 'per_lable'"),
        ({"dataset": {"name": "reuters"}, "method": {"layout": "lin"}}, "unknown layout 'lin'. Did you mean 'line'?"),
        (
            {"dataset": {"name": "reuters"}, "seeds": [13, 13]},
            "seeds are different whole numbers from 0, got [13, 13].",
        ),
        ({"dataset": {"name": "reuters"}, "method": {"baseline": "bart"}}, "unknown baseline 'bart'"),
        (
            {"dataset": {"name": "reuters"}, "method": {"baseline": "bart-mnli", "scorer": "unary"}},
            "the baseline bart-mnli has no backbone, scorer or template",
        ),
        (
            {"dataset": {"name": "reuters"}, "method": {"backbone": "hf:x?allow=remote-code"}},
            "Consent is not a file's to give: add --allow remote-code.",
        ),
    ],
)
def test_mistakes_are_named(content, message):
    with pytest.raises(SetScoreError) as raised:
        make_config(content)
    assert message in str(raised.value)


def test_changes_of_the_command_line_are_toml_or_text(config):
    changed = load_config(config, ["seeds=[5]", "method.template=article-topic", "dataset.limit=20"])
    assert (changed.drawn, changed.method.templates, changed.dataset.limit) == ((5,), ("article-topic",), 20)
    assert changed.dataset.data_dir == str(config.parent / "data")
    for bad, message in (("seeds", "--set takes KEY=VALUE"), ("seeds.a=1", "seeds is no table of the config")):
        with pytest.raises(SetScoreError, match=message):
            load_config(config, ["seeds=[5]", bad])


def test_a_key_is_of_what_results_depend_on(config):
    plain = load_config(config)
    assert plain.key() == load_config(config, ["title=other", "dataset.data_dir=elsewhere"]).key()
    for change in ("seeds=[1]", "method.template=article-about", "dataset.label_text=name", "protocol=paper"):
        assert plain.key() != load_config(config, [change]).key(), change


def test_a_folder_holds_everything_and_is_made_once(config, backbone, tmp_path):
    run, new = make_run(load_config(config, ["seeds=[13, 17]"]), tmp_path / "runs" / "a")
    assert new
    assert {path.name for path in run.folder.iterdir()} == FILES
    asked = backbone.queries
    assert asked == run.cost["asked"] == 60 * 3  # every document and label once, for both seeds
    with np.load(run.folder / "predictions.npz") as arrays:
        for end in ("", "_17"):
            found = decision_metrics(arrays[f"y_true{end}"], arrays[f"y_pred{end}"])
            assert found["micro_f1"] == pytest.approx(float(arrays[f"metric_micro_f1{end}"]))
    metrics = json.loads((run.folder / "metrics.json").read_text())
    assert (metrics["protocol"], metrics["label_text"]) == ("setscore", "description")
    assert metrics["cost"]["tokens"] > asked
    again, new = make_run(load_config(config, ["seeds=[13, 17]"]), tmp_path / "runs" / "a")
    assert (new, backbone.queries, again.spread().mean) == (False, asked, run.spread().mean)
    other, new = make_run(load_config(config, ["seeds=[13, 17]", "calibration=platt"]), tmp_path / "runs" / "b")
    assert (new, backbone.queries, other.cost["asked"]) == (True, asked, 0)  # the store knew all of it


def test_another_config_or_other_documents_are_refused(config, backbone, tmp_path):
    make_run(load_config(config, ["seeds=[13]"]), tmp_path / "a")
    with pytest.raises(SetScoreError, match="holds a finished run with another config"):
        make_run(load_config(config, ["seeds=[17]"]), tmp_path / "a")
    write_goemotions(tmp_path / "data", documents=61)
    with pytest.raises(SetScoreError, match="holds a finished run with other documents"):
        make_run(load_config(config, ["seeds=[13]"]), tmp_path / "a")


def test_the_best_of_several_templates_is_chosen_on_validation_documents(config, backbone, tmp_path):
    both = load_config(config, ['method.template=["express", "writer-feeling"]', "seeds=[13]", "protocol=paper"])
    run, _ = make_run(both, tmp_path / "a")
    assert set(run.first.sweep) == {"express", "writer-feeling"}
    assert run.first.sweep[run.first.template] == max(run.first.sweep.values())


def test_task_a_and_task_b_are_two_datasets(backbone, tmp_path):
    write_ecthr(tmp_path / "data", documents=40)
    made = {}
    for name in ("ecthr", "ecthr-b"):
        content = {"dataset": {"name": name, "data_dir": str(tmp_path / "data")}, "seeds": [13]}
        made[name], _ = make_run(make_config(content), tmp_path / name)
    assert made["ecthr"].first.test.name == "ecthr"
    assert made["ecthr-b"].first.test.gold.sum() > made["ecthr"].first.test.gold.sum()


def test_the_command_reads_what_is_finished(config, backbone, tmp_path):
    options = ("run", config, "--out", tmp_path / "runs", "--set", "seeds=[13]")
    code, shown, told = invoke(*options)
    assert (code, "180 asked in" in told) == (0, True)
    assert "goemotions" in shown
    code, again, told = invoke(*options)
    assert (code, again, "finished before; read." in told) == (0, shown, True)
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if path.name.startswith("run-")]
    assert read_run(folder).config.protocol == "setscore"


def test_a_sweep_shows_the_noise_of_its_choice(tmp_path):
    write_goemotions(tmp_path / "data")
    question = "Does the writer feel {label}?"
    options = ("sweep", "goemotions", "--data-dir", tmp_path / "data", "--seeds", "13", "--json", tmp_path / "s.json")
    code, shown, _ = invoke(*options, "--question", question, "--save", tmp_path / "scores")
    assert code == 0
    ((one,),) = json.loads((tmp_path / "s.json").read_text())["datasets"].values()
    assert [tried["template"] for tried in one["tried"]] == ["express", question]
    assert sum(tried["first"] for tried in one["tried"]) == pytest.approx(1)
    assert one["template"] == max(one["tried"], key=lambda tried: tried["micro_f1"])["template"]
    assert "chosen" in shown


@pytest.mark.parametrize("backbone", ["setscore-mini", "setscore-small"])
def test_a_run_learns_what_the_classifier_learns(tmp_path, backbone):
    """From the model's own embeddings, whoever counts and keeps its answers."""
    data = write_goemotions(tmp_path / "data", 60)
    about = {"name": "goemotions", "slices": "development", "data_dir": str(data), "label_text": "name"}
    config = make_config({"seeds": [13], "dataset": about, "method": {"backbone": backbone}})
    experiment = execution.load_experiment(config.resolved())
    (made,) = execution.execute(config, tmp_path / "store", experiment=experiment).seeds
    validation, test = execution.split(experiment, 13)
    model = SetScoreClassifier(validation.labels, backbone=backbone).fit(validation.texts, validation.gold)
    found = model.classify(test.texts)
    assert (made.outcome.name, model.regime) == ("learned", "learned")
    np.testing.assert_allclose(made.probabilities, found.probabilities, atol=1e-6)
    np.testing.assert_array_equal(made.outcome.decisions, found.decisions)
