"""One table from end to end, on small checkpoints of every shape, through the real command."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("pyarrow")

import checkpoints
from baselines import tiny
from commands import invoke
from made_up import write_aapd, write_ecthr, write_eurlex, write_goemotions, write_jigsaw, write_reuters

from setscore.experiments import paper
from setscore.experiments.reproduction import registry
from setscore.experiments.runs.counting import CountingBackbone
from setscore.experiments.runs.folder import read_run
from setscore.metrics import decision_metrics

SETS = ("goemotions", "ecthr")  # the smallest inventories
DOCUMENTS, LEARNED = 4, 8  # of each slice, and of a training split: enough to go the whole way


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Models of a few hundred numbers: handing work from thread to thread took ten times as long as the work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_two(tmp_path_factory.mktemp("data"))


def write_two(folder):
    for split, documents in (("dev", 210), ("test", 24), ("train", 260)):
        write_goemotions(folder, documents, split)
        write_ecthr(folder, documents, split)
    return folder


@pytest.fixture(scope="module")
def all_data(tmp_path_factory):
    """All six datasets in their official formats."""
    data = write_two(tmp_path_factory.mktemp("all"))
    for split, documents in (("dev", 210), ("test", 24), ("train", 40)):
        write_eurlex(data, documents, split)
        write_aapd(data, documents, "val" if split == "dev" else split)
    write_reuters(data, 260, 24)
    write_jigsaw(data)
    return data


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A small checkpoint of every shape, by the name of the weights it stands for."""
    folder = tmp_path_factory.mktemp("weights")

    def place(name):
        (folder / name).mkdir()
        return folder / name

    made = {
        "llada_base": checkpoints.make(folder / "llada", "llada"),
        "dream_base": checkpoints.make(folder / "dream", "dream"),
        "bart_mnli": tiny.nli(str(place("bart")), kind="bart"),
        "deberta_nli": tiny.nli(str(place("deberta"))),
        "qwen": tiny.causal(str(place("qwen"))),
        "bert": tiny.encoder(str(place("bert"))),
        "roberta": tiny.encoder(str(place("roberta")), "roberta"),
        "t5": tiny.t5(str(place("t5"))),
        "setfit": tiny.sentence_encoder(place("setfit")),
    }
    made |= {"llada_instruct": made["llada_base"], "dream_instruct": made["dream_base"]}
    return [f"--weights={name}={place}" for name, place in made.items()]


@pytest.fixture(scope="module")
def table(all_data, weights, tmp_path_factory):
    """The main table whole: twelve methods on six datasets."""
    out = tmp_path_factory.mktemp("out")
    options = ("reproduce", "main", *weights, "--data-dir", all_data, "--slices", "paper", "--limit", DOCUMENTS)
    options += ("--train-limit", LEARNED, "--out", out)
    code, shown, told = invoke(*options)
    assert code == 0, told
    return out, options, shown, told


def rows(out, name="main"):
    return {row["cell"]: row for row in json.loads((out / f"{name}.json").read_text())["items"][name]["rows"]}


def test_every_cell_of_the_table_is_measured_and_none_is_called_a_reproduction(table):
    out, _, shown, _ = table
    found = rows(out)
    wanted = {name for name, cell in paper.cells().items() if cell.table == "main"}
    assert len(wanted) == 144
    assert wanted < set(found)
    assert {cell: row["note"] for cell, row in found.items() if row["status"] != "measured"} == {}
    assert not any(row["reproduction"] for row in found.values())
    assert all(row["by"] and row["protocol"] == "paper" for row in found.values())
    assert f"{len(found)} of {len(found)} cells measured, 0 of them with the paper's weights" in shown


def test_fewer_documents_than_the_papers_are_no_reproduction(all_data, tmp_path):
    """Made-up files in the official form, asked for as the paper's slice: their counts give them away."""
    options = ("--data-dir", all_data, "--slices", "paper", "--cell", "datasets/reuters/test", "--out", tmp_path)
    code, shown, told = invoke("reproduce", "datasets", *options)
    assert code == 0, told
    (row,) = rows(tmp_path, "datasets").values()
    assert (row["status"], row["by"], row["reproduction"]) == ("measured", "other documents", False)
    assert "1 of 1 cells measured, 0 of them with the paper's weights and documents" in shown


def test_numbers_are_those_of_the_saved_decisions(table):
    out, *_ = table
    found, seen = rows(out), set()
    for folder in (out / "runs").iterdir():
        if not (folder / "metrics.json").is_file():
            continue
        run = read_run(folder)
        with np.load(folder / "predictions.npz") as arrays:
            metrics = decision_metrics(arrays["y_true"], arrays["y_pred"])
            assert len(arrays["y_true"]) == DOCUMENTS
            assert bool("y_prob" in arrays) == (run.config.method.baseline not in ("qwen-generate", "flan-t5"))
        for name, method in registry.methods().items():
            cell = f"main/{name}/{run.first.test.name}/micro"
            if method.title == run.config.title and cell in found:
                assert found[cell]["ours"] == pytest.approx(100 * metrics["micro_f1"])
                seen.add(name)
        assert run.config.protocol == "paper"
        assert set(json.loads((folder / "environment.json").read_text())) >= {"setscore", "python", "packages"}
    # Base and Instruct stand on one checkpoint here: one run answers for both, under the title of the first.
    assert len(seen) == 10


def test_a_second_command_asks_nothing_and_says_the_same(table, monkeypatch):
    out, options, _, _ = table
    before = rows(out)
    monkeypatch.setattr(CountingBackbone, "log_odds", None)  # fails whoever asks
    code, _, told = invoke(*options)
    assert code == 0
    assert "main: 0 questions were asked now." in told
    assert rows(out) == before


def test_what_was_interrupted_goes_on_and_no_question_is_asked_twice(data, tmp_path, monkeypatch):
    asked, real = [], CountingBackbone.log_odds

    def counting(self, queries):
        if len(asked) == stop:
            raise KeyboardInterrupt
        asked.append(list(queries))
        return real(self, queries)

    monkeypatch.setattr(CountingBackbone, "log_odds", counting)
    options = ("reproduce", "dream-replication", *[f"--cell=*/{name}/*" for name in SETS])
    options += ("--backbone", "setscore-mini", "--data-dir", data, "--limit", 24, "--out")
    stop = -1
    assert invoke(*options, tmp_path / "straight")[0] == 0
    whole, asked = asked, []
    stop = len(whole) - 1
    code, _, told = invoke(*options, tmp_path / "broken")
    assert (code, told.splitlines()[-1]) == (130, "interrupted.")
    stop = -1
    assert invoke(*options, tmp_path / "broken")[0] == 0
    assert rows(tmp_path / "broken", "dream-replication") == rows(tmp_path / "straight", "dream-replication")
    questions = [query for queries in asked for query in queries]
    assert len(questions) == len(set(questions)) == sum(map(len, whole))


def test_list_names_every_cell_of_the_transcription(tmp_path):
    code, shown, _ = invoke("reproduce", "all", "--list", "--json", tmp_path / "list.json")
    assert code == 0
    items = json.loads((tmp_path / "list.json").read_text())["items"]
    assert list(items) == list(registry.items())
    found = {cell["cell"]: cell for item in items.values() for cell in item["cells"]}
    for name, cell in paper.cells().items():
        assert found[name]["printed"] == cell.printed, name
        assert found[name]["target"] == paper.target(name).value, name
        reachable = found[name]["runs"] or found[name]["measured_as"] in ("fact", "setting", "recall", "theory")
        assert reachable or found[name]["stated"], name
    assert all(item["budget"]["seconds"] >= 0 for item in items.values())
    assert "main" in shown


def test_missing_weights_and_documents_are_said_and_nothing_is_filled_in(data, tmp_path):
    options = ("reproduce", "main", "--cell=main/dream_base_per_label/*", "--cell=main/bart_mnli_default/ecthr/*")
    options += ("--backbone", "setscore-mini", "--weights", f"bart_mnli={tmp_path}/nothing", "--data-dir", data)
    code, shown, told = invoke(*options, "--limit", 8, "--out", tmp_path)
    assert code == 0
    found = rows(tmp_path)
    assert found["main/dream_base_per_label/goemotions/micro"]["status"] == "measured"
    assert found["main/bart_mnli_default/ecthr/micro"]["status"] == "missing"
    assert found["main/dream_base_per_label/aapd/micro"]["ours"] is None
    assert "cells missing: aapd" in told
    assert f"2 cells missing: {tmp_path}/nothing cannot be loaded" in told
    assert "4 of 14 cells measured" in shown


def test_it_fails_where_nothing_can_be_measured(tmp_path):
    options = ("--cell=main/bart_mnli_default/ecthr/*", "--weights", f"bart_mnli={tmp_path}/nothing", "--out", tmp_path)
    code, shown, told = invoke("reproduce", "main", "--data-dir", tmp_path, *options)
    assert (code, rows(tmp_path)["main/bart_mnli_default/ecthr/micro"]["status"]) == (1, "missing")
    assert "0 of 2 cells measured" in shown
    assert "2 cells missing: " in told


def test_with_a_backbone_baselines_are_made_only_where_they_are_named(data, tmp_path):
    """SetFit's weights may be at hand, and its training takes hours: nobody who asks for a look means that."""
    options = ("reproduce", "main", "--backbone", "setscore-mini", "--data-dir", data, "--limit", 8, "--out", tmp_path)
    code, _, told = invoke(*options)
    assert code == 0
    found = rows(tmp_path)
    assert {row["status"] for cell, row in found.items() if "/setfit/" in cell} == {"missing"}
    assert found["main/llada_base_per_label/goemotions/micro"]["status"] == "measured"
    assert "--cell METHOD/DATASET makes others, and so does --weights setfit=PLACE." in told
    code, _, told = invoke(*options, "--weights", f"bart_mnli={tmp_path}/nothing", "--cell", "bart_mnli_default/*")
    assert f"{tmp_path}/nothing cannot be loaded" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("mian",), "unknown table or figure 'mian'. Did you mean 'main'?"),
        (("main", "--cell", "nothing/here"), "no cell of main fits nothing/here."),
        (("main", "--weights", "bart=x"), "unknown weights 'bart'. Did you mean 'bert'?"),
        (("main", "--weights", "bert"), "--weights takes NAME=PLACE"),
        ((), "no table or figure was given"),
    ],
)
def test_mistakes_are_named_before_anything_starts(options, message):
    code, _, told = invoke("reproduce", *options, "--list")
    assert code == 2
    assert message in told


def test_an_unknown_backbone_is_told_before_anything_is_planned():
    code, _, err = invoke("reproduce", "main", "--backbone", "setscore-mni", "--list")
    assert code == 2
    assert "Did you mean 'setscore-mini'?" in err
