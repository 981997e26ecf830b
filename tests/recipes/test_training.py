"""The whole recipe on a toy: every stage through its command, with data in the official files' form."""

import argparse
import contextlib
import importlib
import io
import json
import lzma
import math
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import pytest
import yaml
from safetensors.numpy import load_file, save_file

from recipes import HERE, ROOT
from recipes.average import average
from recipes.store import Store

torch = pytest.importorskip("torch")

import recipes.model as mini  # noqa: E402
from recipes import encode  # noqa: E402  (needs torch)
from recipes.card import card, figures  # noqa: E402
from recipes.run import named, say, to_make, training, tutoring, up_to, waves  # noqa: E402
from recipes.train import blend, change  # noqa: E402
from recipes.validate import labelled_sets, measure  # noqa: E402
from setscore.backbones.mini import default_folder  # noqa: E402
from setscore.datasets.dataset import draw_rows  # noqa: E402

ROWS_OF_A_WRITER = 12
TEXT = "the weather report of today says that rain and wind will reach the northern coast before the evening"


def write(path, lines):
    with lzma.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    text = TEXT
    known = "task1592_yahoo_answers_topics_classfication"
    kinds = {known: "closed", "task9001_title": "title", "task9002_open": "open", "task9003_unknown": "closed"}
    write(folder / "natural_instructions_tasks.jsonl.xz", [{"task": n, "kind": k} for n, k in kinds.items()])
    records = [{"task": task, "input": f"{text} {n}", "output": [str(n % 5)]} for task in kinds for n in range(30)]
    write(folder / "natural_instructions.jsonl.xz", records)
    prompts = [{"template": "x", "prompt": f"{text} {n}?", "completion": f"answer number {n}"} for n in range(30)]
    write(folder / "t0_sample.jsonl.xz", prompts)
    groups = ("rec.autos", "sci.med")
    posts = [{"group": groups[n % 2], "text": f"Subject: the number {n}\n\n{text} {n}"} for n in range(30)]
    write(folder / "newsgroups20.jsonl.xz", posts)
    write(folder / "emotion.jsonl.xz", [{"text": f"i feel it {n}", "emotion": "fear"} for n in range(20)])
    write(folder / "imdb_sample.jsonl.xz", [{"text": f"{text} film {n}", "label": "pos"} for n in range(20)])
    write(folder / "wikitext2_train.txt.xz", [" = Coast weather = \n", *(f"{text} {text} {n}\n" for n in range(20))])
    write(folder / "books.txt.xz", [f"{text} {n} {text}\n" for n in range(400)])
    sides = ("entailment", "neutral", "contradiction")
    pairs = [{"premise": f"{text} {n // 3}", "hypothesis": f"it is {n}", "label": sides[n % 3]} for n in range(30)]
    write(folder / "snli_subset.jsonl.xz", pairs)
    asked = [{"question": f"is it {n}", "passage": f"{text} {n}", "answer": n % 2 == 0} for n in range(20)]
    write(folder / "boolq.jsonl.xz", asked)
    stanzas = [f"Package: p{n}\nDescription-en: tool number {n}\n {n} {text}\n\n" for n in range(20)]
    write(folder / "Translation-en.xz", stanzas)
    return folder


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    """One of the evaluation sets, in the official form."""
    folder = tmp_path_factory.mktemp("evaluation")
    (folder / "goemotions").mkdir()
    (folder / "goemotions" / "dev.tsv").write_text("".join(f"Thanks for {n}!\t{n % 28}\tid{n}\n" for n in range(24)))
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Some rows of every writer, with their twins: all of them would be most of what the toy reads."""
    folder = tmp_path_factory.mktemp("written")
    for path in sorted((HERE / "written").glob("*.jsonl")):
        rows = {row["id"]: row for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
        kept = list(rows)[:ROWS_OF_A_WRITER]
        kept += [rows[name]["twin"] for name in kept if rows[name].get("twin", name) not in kept]
        lines = (json.dumps(rows[name]) + "\n" for name in dict.fromkeys(kept))
        (folder / path.name).write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A small encoder with random weights, in the names of a BERT checkpoint."""
    torch.manual_seed(0)
    transformers = pytest.importorskip("transformers")
    settings = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
    bert = transformers.BertModel(transformers.BertConfig(**settings), add_pooling_layer=False)
    path = tmp_path_factory.mktemp("encoder") / "model.safetensors"
    save_file({name: value.numpy() for name, value in bert.state_dict().items() if value.is_floating_point()}, path)
    return path, bert.eval()


def run(module, *arguments):
    """A stage through its command line, in this process: loading torch takes longer than most of them."""
    with (
        mock.patch.object(sys, "argv", [module, *map(str, arguments)]),
        contextlib.redirect_stdout(io.StringIO()) as said,
        contextlib.redirect_stderr(said),
    ):
        code = None
        try:
            importlib.import_module(module).main()
        except SystemExit as ended:
            code = ended.code
    assert not code, f"{said.getvalue()}{code}"
    return said.getvalue()


def run_all(*arguments):
    """The whole recipe in a process of its own, which starts one for each stage."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])  # tests change the folder
    command = [sys.executable, "-m", "recipes.run", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(data, evaluation, written, encoder, tmp_path_factory):
    out = tmp_path_factory.mktemp("small")
    return out, start(data, evaluation, written, encoder, out)


def start(data, evaluation, written, encoder, out):
    encoders = ("--base", encoder[0], "--judge", encoder[0])
    places = ("--data", data, "--evaluation", evaluation, "--written", written, *encoders, "--out", out)
    return run_all(*places, "--smoke", "--every", 1, "--keep", out / "kept")


def test_topics_and_packages_are_there_where_they_are_given(made, data, written, tmp_path):
    summary = json.loads((made[0] / "summary.json").read_text())
    assert summary["by_source"]["packages"] == 20
    assert summary["topics"] > 1000, "those of the recipe"
    (tmp_path / "topics.yaml").write_text("weather: [storms, education]\n")
    for source in data.iterdir():
        if source.name != "Translation-en.xz":
            (tmp_path / source.name).symlink_to(source)
    tokenizer, out = default_folder() / "tokenizer.json", tmp_path / "summary.json"
    said = run("recipes.prepare", "--data", tmp_path, "--tokenizer", tokenizer, "--out", tmp_path / "prepared.npz",
               "--topics", tmp_path / "topics.yaml", "--summary", out, "--written", written)  # fmt: skip
    assert "Translation-en.xz is not there: no descriptions of packages." in said
    summary = json.loads(out.read_text())
    assert "packages" not in summary["by_source"]
    assert (summary["topics"], summary["removed"]["topics"]) == (1, ["education"])


def test_the_card_of_a_toy_says_so_and_names_its_data(made):
    text = (made[0] / "package" / "README.md").read_text()
    assert "**A toy: 4 runs that were cut short, not the ones below.**" in text
    assert "- 20 descriptions of the packages of a Debian release, each under its package's licence;\n- " in text
    assert "topics written for this recipe" in text
    assert "(not checked in this run)" not in text


PREPARE_MISTAKES = {
    "no such folder": (
        {"--data": "nothing"},
        r"nothing/natural_instructions_tasks.jsonl.xz is not there",
    ),
    "no tokenizer": ({"--tokenizer": "none.json"}, r"none.json is not there"),
    "no evaluation data": ({"--evaluation": "nothing"}, r"overlap check: nothing holds none of goemotions, "),
    "topics without areas": ({"--topics": "list.yaml"}, r"list.yaml must be areas with a list of topics each"),
    "a topic for a list": ({"--topics": "word.yaml"}, r"word.yaml must be areas with a list of topics each"),
    "no xz": ({"emotion.jsonl.xz": "{}"}, r"emotion.jsonl.xz is no whole xz file of UTF-8 text"),
    "no fields": ({"emotion.jsonl.xz": ["{}", "x"]}, r"emotion.jsonl.xz, line 1: emotion and text missing"),
    "no JSON": (
        {"imdb_sample.jsonl.xz": ['{"label": "pos", "text": "t"}', "x"]},
        r"imdb_sample.jsonl.xz, line 2: ",
    ),
    "no package": ({"Translation-en.xz": ["Package: x"]}, r"Translation-en.xz holds no description"),
    "no such task": (
        {"natural_instructions.jsonl.xz": ['{"task": "task7", "input": "", "output": [""]}']},
        r"natural_instructions_tasks.jsonl.xz has no line for task7",
    ),
}


@pytest.mark.parametrize(("changes", "message"), PREPARE_MISTAKES.values(), ids=PREPARE_MISTAKES)
def test_what_is_wrong_with_the_data_is_said_in_a_line(data, tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.yaml").write_text("[storms, fog]\n")
    (tmp_path / "word.yaml").write_text("weather: storms\n")
    folder, options = tmp_path / "data", {"--tokenizer": default_folder() / "tokenizer.json", "--out": "prepared.npz"}
    folder.mkdir()
    for source in data.iterdir():
        if (lines := changes.get(source.name)) is None:
            (folder / source.name).symlink_to(source)
        elif isinstance(lines, str):
            (folder / source.name).write_text(lines)
        else:
            write(folder / source.name, [f"{line}\n" for line in lines])
    options |= {"--data": folder} | {name: value for name, value in changes.items() if name.startswith("--")}
    with pytest.raises(AssertionError, match=message) as error:
        run("recipes.prepare", *(part for pair in options.items() for part in pair))
    assert "Traceback" not in str(error.value)


def test_every_stage_leaves_its_result(made):
    out, _ = made
    for name in ("prepared.npz", "encoded/cosines.npy", "run-first-13/weights.safetensors", "run-second-13/log.jsonl"):
        assert (out / name).exists(), name
    for name in ("weights.safetensors", "package/manifest.json", "sanity.json", "package/README.md", "parity.json"):
        assert (out / name).exists(), name
    for run_name in ("first-13", "second-13", "third-13"):
        measured = json.loads((out / f"run-{run_name}" / "validation.json").read_text())
        assert set(measured) == {"goemotions", "written"}, "the other sets are not in the folder"
        assert all(0 <= measured["written"][name] <= 100 for name in ("accuracy", "twins_ranked", "twins_decided"))
        assert all(0 < measured["goemotions"][name] <= 100 for name in ("map", "lists_map"))


def test_validation_documents_are_those_that_evaluate_draws(evaluation):
    drawn, _ = draw_rows(24, 12, 13)  # of a pool of less than 400 documents half, as in setscore evaluate
    found = labelled_sets(evaluation, 200)["goemotions"]
    assert found["documents"] == [f"Thanks for {n}!" for n in drawn]
    assert found["gold"] == [[n] for n in drawn]


def test_without_a_gpu_only_a_toy_is_made(data, encoder, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(AssertionError, match="no GPU was found"):
        run_all("--data", data, "--base", encoder[0], "--judge", encoder[0], "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_nth_row_of_each_file(data, written, tmp_path):
    tokenizer = ROOT / "src" / "setscore" / "models" / "setscore-mini" / "tokenizer.json"
    rows = []
    for every in (1, 10):
        out = tmp_path / f"{every}.npz"
        run("recipes.prepare", "--data", data, "--tokenizer", tokenizer, "--out", out, "--every", every,
            "--written", written)  # fmt: skip
        rows.append(Counter(np.array(Store.load(out).sources)[Store.load(out).row_source].tolist()))
    assert rows[1].keys() == rows[0].keys()
    assert rows[1].pop("snli") == 3  # a caption each record that was read
    fewer = {source: count for source, count in rows[0].items() if not source.startswith(("written-", "snli"))}
    assert all(rows[1][source] <= -(-count // 10) for source, count in fewer.items())
    assert all(rows[1][source] == count for source, count in rows[0].items() if source.startswith("written-"))


def test_a_second_start_does_nothing_again(made, data, evaluation, written, encoder):
    said = start(data, evaluation, written, encoder, made[0])
    assert said.count("is there") == 16
    assert "recipes.export" not in said


def test_what_was_kept_is_not_made_again(made, data, evaluation, encoder, tmp_path):
    """On another machine, with the kept folder alone: everything is copied back, runs with their logs and figures."""
    kept = made[0] / "kept"
    encoders = ("--base", encoder[0], "--judge", encoder[0])
    said = run_all("--data", data, "--evaluation", evaluation, *encoders, "--out", tmp_path, "--smoke",
               "--every", 1, "--keep", kept)  # fmt: skip
    assert "-m recipes." not in said
    for name in ("weights.safetensors", "run-third-13/log.jsonl", "run-third-13/validation.json", "package/README.md"):
        assert (tmp_path / name).read_bytes() == (made[0] / name).read_bytes(), name


def test_mini_needs_the_weights_of_small(data, encoder, tmp_path):
    with pytest.raises(AssertionError, match="make small first"):
        run_all("--data", data, "--base", encoder[0], "--judge", encoder[0], "--out", tmp_path / "mini",
            "--model", "mini", "--smoke")  # fmt: skip


def test_the_card_says_what_was_done(made):
    text = (made[0] / "package" / "README.md").read_text()
    assert "4 in all" in text
    assert "(not checked in this run)" not in text
    assert "<<" not in text


def test_the_packaged_toy_scores(made):
    from setscore import SetScoreClassifier
    from setscore.backbones.mini import MiniBackbone
    from setscore.prompts import Verbalizer

    backbone = MiniBackbone(attention="shared", verbalizer=Verbalizer("yes", "no"), folder=made[0] / "package")
    scores = SetScoreClassifier(["rain", "cars"], backbone=backbone).decision_function(["It rains.", "A car."])
    assert scores.shape == (2, 2)
    assert np.isfinite(scores).all()


def test_float_weights_are_a_backbone_that_answers_as_the_package_does(made):
    from recipes.floats import FloatBackbone
    from setscore import SetScoreClassifier

    def asked(backbone):
        classifier = SetScoreClassifier({"rain": "bad weather", "sport": "a match"}, backbone=backbone)
        scores = classifier.classify([TEXT, f"{TEXT} {TEXT} " * 30], embed=True).scores
        return scores.log_odds, scores.vectors

    package, weights = made[0] / "package", made[0] / "weights.safetensors"
    floats = FloatBackbone(weights)
    assert floats.identity != FloatBackbone(made[0] / "first.safetensors").identity
    for ours, theirs, off in zip(asked(floats), asked(str(package)), (0.5, 0.1), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=off)


def test_the_torch_model_and_the_exported_graph_agree(made, tmp_path):
    """fp32: the same log-odds from the training code and from the graph that ships."""
    from tokenizers import Tokenizer

    from recipes.export import load, write
    from recipes.graph import export
    from recipes.validate import score
    from setscore import SetScoreClassifier

    weights = {name: value.astype(np.float32) for name, value in load_file(made[0] / "weights.safetensors").items()}
    tokenizer = made[0] / "package" / "tokenizer.json"
    (tmp_path / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    write(tmp_path, export(weights).SerializeToString())
    documents, labels = ["It rains in the north.", "A car for sale, hardly used."], ["rain", "something for sale"]
    graph = SetScoreClassifier(labels, backbone=load(tmp_path)).decision_function(documents)
    model = mini.build({name: torch.from_numpy(value) for name, value in weights.items()}).eval()
    assert np.abs(score(model, Tokenizer.from_file(str(tokenizer)), documents, labels) - graph).max() < 1e-4


def test_training_goes_on_where_it_was_stopped(made, data, encoder, tmp_path):
    out, _ = made
    tokenizer = ROOT / "src" / "setscore" / "models" / "setscore-mini" / "tokenizer.json"
    common = ["--store", out / "prepared.npz", "--encoded", out / "encoded", "--base", encoder[0], "--device", "cpu"]
    common += ["--tokenizer", tokenizer, "--workers", 0, "--steps", 5, "--set", "rows=2"]
    for stop in (["--stop-after", 0.001], []):  # minutes; wherever that falls, nothing is lost or learned twice
        said = run("recipes.train", "--out", tmp_path / "stopped", *stop, *common)
    assert 1 <= int(re.search(r"going on after step (\d+)", said).group(1)) < 5
    run("recipes.train", "--out", tmp_path / "whole", *common)
    stopped, whole = (load_file(tmp_path / name / "weights.safetensors") for name in ("stopped", "whole"))
    for name, value in whole.items():
        assert np.abs(stopped[name].astype(float) - value).max() < 1e-3, name


def test_a_batch_without_questions_teaches_the_language_alone(made, encoder, tmp_path):
    """Running text only: nothing is asked, no embedding is compared, and every loss is still a number."""
    out, _ = made
    tokenizer = ROOT / "src" / "setscore" / "models" / "setscore-mini" / "tokenizer.json"
    common = ["--store", out / "prepared.npz", "--encoded", out / "encoded", "--base", encoder[0], "--device", "cpu"]
    kinds = "kinds={labels: 0, asks: 0, titles: 0, phrases: 0, told: 0, answers: 0, running: 1, lists: 0}"
    run("recipes.train", "--out", tmp_path, "--tokenizer", tokenizer, *common, "--workers", 0, "--steps", 2,
        "--set", "rows=2", kinds)  # fmt: skip
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert all(np.isfinite(value) for entry in entries for value in entry.values())


def test_a_teacher_answers_what_nobody_knows():
    yes = torch.tensor([1.0, 0.0, 0.5, 0.5, math.nan, math.nan])
    odds = torch.tensor([-9.0, 9.0, 2.0, -2.0, 3.0, -3.0])
    found = blend(yes, odds, share=0.5)
    assert found[:2].tolist() == [1.0, 0.0]
    assert torch.allclose(found[2:].logit(), torch.tensor([1.0, -1.0, 3.0, -3.0]), atol=1e-4)
    assert torch.equal(blend(yes[:4], odds[:4], share=0.0), yes[:4])
    softened = blend(yes, odds, share=0.5, known=0.25)
    assert torch.allclose(softened[:2], torch.tensor([0.75, 0.25]), atol=1e-3)
    assert torch.equal(softened[2:], found[2:])


def test_stages_that_run_at_once_write_whole_lines(capfd):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(say, (f"{'train ' * 50}{number}" for number in range(2000))))
    assert sorted(len(line.split()) for line in capfd.readouterr().out.splitlines()) == [51] * 2000


def test_the_second_round_learns_from_the_mean_of_the_first(made, encoder, tmp_path):
    out, said = made
    taught = [line for line in said.splitlines() if line.startswith("train second-")]
    assert len(taught) == 1
    assert all(f"--teacher {out / 'first.safetensors'}" in line for line in taught)
    assert not any("--teacher" in line for line in said.splitlines() if line.startswith("train first-"))
    teacher, other = out / "first.safetensors", encoder[0]
    learned = [train_few(out, encoder, tmp_path / path.stem, "--teacher", path) for path in (teacher, other)]
    assert any(not np.array_equal(learned[0][name], value) for name, value in learned[1].items())
    both = [train_few(out, encoder, tmp_path / name, "--teacher", *paths) for name, paths in
            {"twice": (teacher, teacher), "two": (teacher, other)}.items()]  # fmt: skip
    assert all(np.array_equal(learned[0][name], value) for name, value in both[0].items())
    assert any(not np.array_equal(learned[0][name], value) for name, value in both[1].items())


def planned(**changes):
    """The commands of the training stages by what they make, in order."""
    given = {
        "out": Path("out"),
        "start": None,
        "teacher": None,
        "gguf": None,
        "model": "small",
        "smoke": False,
        "validation": None,
        "device": "cuda",
    }
    common = {"--base": Path("base")} | changes.pop("common", {})
    config, arguments = yaml.safe_load((HERE / "config.yaml").read_text()), argparse.Namespace(**given | changes)
    rounds = to_make(config["models"][arguments.model]["rounds"], arguments.start)
    found = training(arguments, config, rounds, common)
    return {wanted: " ".join(command) for together in found for _, wanted, command in together}


class TestPlan:
    def test_given_weights_stand_in_for_the_first_round(self):
        whole, short = planned(), planned(start=named("first=given"))
        assert set(short) < set(whole)
        assert not any("first" in str(path) for path in short)
        first = next(iter(short))
        assert "--base given --teacher given " in short[first]
        assert "--base out/first.safetensors --teacher out/first.safetensors " in whole[first]
        assert list(short)[-1] == list(whole)[-1] == Path("out/weights.safetensors")

    def test_the_smaller_model_is_taught_by_the_larger_one(self):
        commands = planned(model="mini", teacher=Path("larger")).values()
        runs = [command for command in commands if "recipes.train" in command]
        assert len(runs) == 9
        assert all("--teacher larger " in command for command in runs)

    def test_with_a_tutor_every_round_is_told_what_it_said(self):
        said = {"--tutored": Path("out/tutored.npz")}
        without, taught = planned(), planned(gguf=Path("model.gguf"), common=said)
        runs = [command for command in taught.values() if "recipes.train" in command]
        assert len(runs) == 10
        assert all("--tutored out/tutored.npz" in run and "kinds.tutored=" in run for run in runs)
        assert not any("kinds.tutored=" in command for command in without.values())

    def test_a_tutor_learns_before_the_rounds(self):
        given = {"out": Path("out"), "gguf": Path("model.gguf"), "smoke": False, "device": "cuda"}
        arguments = argparse.Namespace(**given, validation=Path("validation.json"))
        tutor = yaml.safe_load((HERE / "config.yaml").read_text())["models"]["small"]["tutor"]
        found = tutoring(arguments, tutor, Path("store.npz"), Path("encoder"))
        assert [name for name, _, _ in found] == ["tutor.tokens", "tutor.weights", "tutor.near", "tutor.learn"]
        assert found[-1][1] == Path("out/tutored.npz")
        for _, wanted, command in found:  # options that the stages know
            module, options = command[1], command[2:]
            said = importlib.import_module(module).__file__
            assert all(f'"{option}"' in Path(said).read_text() for option in options if option.startswith("--"))
            assert str(wanted) in options or wanted.parent == Path("out/tutor")

    def test_rounds_that_need_nothing_of_each_other_are_made_together(self):
        rounds = {
            "first": {"from": "base"},
            "second": {"from": "first"},
            "twins": {"from": "first", "teacher": "first"},
        }
        rounds |= {"both": {"mean": {"second": 1, "twins": 1}}, "third": {"from": "both"}}
        assert [list(together) for together in waves(rounds)] == [["first"], ["second", "twins"], ["both"], ["third"]]

    def test_a_piece_ends_with_the_stage_or_round_that_is_named(self):
        made = [[("prepare", Path("out/prepared.npz"), [])], [("train first-13", Path("out/run-first-13/weights"), [])]]
        made += [[("average", Path("out/first.safetensors"), [])], [("average", Path("out/second.safetensors"), [])]]
        assert up_to(made, None) == made
        assert up_to(made, "prepare") == made[:1]
        assert up_to(made, "first") == made[:3]
        with pytest.raises(SystemExit, match="--until fourth: there is no such stage; there are average, first, "):
            up_to(made, "fourth")

    def test_every_run_of_a_round_counts_the_same_in_its_mean(self):
        command = planned()[Path("out/first.safetensors")]
        assert " --share 1.0 1.0 1.0 --shift" in command

    def test_a_round_starts_from_the_mean_of_the_one_before(self):
        runs = [command for path, command in planned().items() if "run-third" in str(path)]
        assert len(runs) == 3
        assert all("--base out/both.safetensors --teacher out/both.safetensors " in command for command in runs)

    def test_two_rounds_from_one_start_are_averaged(self):
        commands = planned(start=named("first=given"))
        runs = [command for path, command in commands.items() if "run-second" in str(path) or "run-twins" in str(path)]
        assert len(runs) == 4
        assert all("--base given --teacher given " in command for command in runs)
        assert "out/second.safetensors out/twins.safetensors --share 1 1 " in commands[Path("out/both.safetensors")]

    def test_the_model_is_the_mean_of_its_rounds(self):
        command = planned(start=named("first=given"))[Path("out/weights.safetensors")]
        assert "out/both.safetensors out/third.safetensors --share 1 2 --shift" in command
        command = planned(model="mini", teacher=Path("larger"), start=named("first=given"))[
            Path("out/weights.safetensors")
        ]
        assert "given out/second.safetensors out/third.safetensors --share 0.2 0.4 0.4 --shift" in command

    def test_weights_that_were_not_made_are_named(self):
        with pytest.raises(SystemExit, match="round twins needs first, which --start left out"):
            planned(start=named("second=given"))
        with pytest.raises(SystemExit, match="--start fifth: there is no such round; there are first, second"):
            planned(start=named("fifth=given"))
        with pytest.raises(argparse.ArgumentTypeError, match="given: ROUND=WEIGHTS was expected"):
            named("given")


def test_an_encoder_is_read_from_its_export(encoder, tmp_path):
    """Matrices without a name of their own, as exporters leave them: known by the bias that is added behind."""
    state, nodes = load_file(encoder[0]), []
    constants = dict(state)
    for name in [name for name, value in state.items() if value.ndim == 2 and name.startswith("encoder")]:
        bias, number = name.removesuffix("weight") + "bias", len(nodes)
        constants[f"onnx::MatMul_{number}"] = constants.pop(name).T.copy()
        nodes.append(onnx.helper.make_node("MatMul", [f"x{number}", f"onnx::MatMul_{number}"], [f"y{number}"]))
        nodes.append(onnx.helper.make_node("Add", [bias, f"y{number}"], [f"z{number}"]))
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "encoder", [], [], tensors)), tmp_path / "m.onnx")
    said = run("recipes.bases", "gte-small", "--onnx", tmp_path / "m.onnx", "--out", tmp_path / "m.safetensors")
    assert said.startswith("gte-small: 2 layers of 64 in ")
    found = load_file(tmp_path / "m.safetensors")
    assert found.keys() == state.keys()
    assert all(np.array_equal(found[name], value) for name, value in state.items())


@pytest.mark.parametrize("settings", [["unknown=1.0"], ["unknown=0.0", "kinds.told=0.5"]])
def test_open_questions_need_a_teacher(made, encoder, tmp_path, settings):
    with pytest.raises(AssertionError, match="need --teacher"):
        train_few(made[0], encoder, tmp_path, settings=settings)


def train_few(out, encoder, folder, *options, settings=("unknown=1.0",)):
    """The weights after two steps on phrases, with questions that only a teacher can answer."""
    tokenizer = ROOT / "src" / "setscore" / "models" / "setscore-mini" / "tokenizer.json"
    kinds = "kinds={labels: 0, asks: 0, titles: 0, phrases: 1, told: 0, answers: 0, running: 0, lists: 0}"
    run("recipes.train", "--store", out / "prepared.npz", "--encoded", out / "encoded", "--base", encoder[0],
        "--tokenizer", tokenizer, "--out", folder, "--device", "cpu", "--workers", 0, "--steps", 2, *options,
        "--set", "rows=2", kinds, *settings)  # fmt: skip
    return load_file(folder / "weights.safetensors")


def test_the_encoder_is_loaded_as_it_is(encoder):
    """With everything in segment 1 the model is the encoder: the same hidden states, hence the same embedding."""
    path, bert = encoder
    state = {name: torch.from_numpy(value) for name, value in load_file(path).items()}
    model = mini.build(state).eval()
    tokens = torch.tensor([[101, 2023, 2003, 102, 0, 0]])
    parts = (tokens > 0).long()
    with torch.no_grad():
        ours = model(tokens, torch.arange(6)[None], parts, parts)
        theirs = bert(tokens, attention_mask=parts).last_hidden_state
        found = mini.pooled(ours, parts, parts, 1)[0, 0]
    assert torch.allclose(ours[0, :4], theirs[0, :4], atol=1e-5)
    mean = theirs[0, :4].mean(dim=0)
    assert torch.allclose(found, mean / mean.norm(), atol=1e-5)


def test_a_missing_tensor_is_named(encoder):
    state = {name: torch.from_numpy(value) for name, value in load_file(encoder[0]).items()}
    ours = mini.from_bert(state)
    del ours["l.0.o.bias"]
    with pytest.raises(ValueError, match=r"l\.0\.o\.bias"):
        mini.build(ours)


def test_dropout_is_for_training_alone(encoder):
    state = {name: torch.from_numpy(value) for name, value in load_file(encoder[0]).items()}
    ones = torch.ones(1, 3, dtype=torch.long)
    model, prompt = mini.build(state), (torch.tensor([[101, 2023, 102]]), torch.arange(3)[None], ones, ones)
    plain = model(*prompt)
    model.dropout = 0.5
    assert not torch.equal(model(*prompt), plain)
    assert torch.equal(model.eval()(*prompt), plain)


def test_an_example_sees_nothing_of_its_neighbour_in_the_row(encoder):
    state = {name: torch.from_numpy(value) for name, value in load_file(encoder[0]).items()}
    model = mini.build(state).eval()
    tokens = torch.tensor([[101, 2023, 102, 2054, 103, 101, 2009, 102]])
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2]])
    parts, segments = torch.tensor([[1, 1, 1, 1, 1, 2, 2, 2]]), torch.tensor([[1, 1, 1, 2, 2, 1, 1, 1]])
    with torch.no_grad():
        together = model(tokens, positions, parts, segments)[0]
        changed = tokens.clone()
        changed[0, 6] = 4444
        assert torch.allclose(model(changed, positions, parts, segments)[0, :5], together[:5], atol=1e-6)
        alone = model(tokens[:, :3], positions[:, :3], parts[:, :3], segments[:, :3])[0]
    assert torch.allclose(alone, together[:3], atol=1e-5)  # the document does not see its question


def test_average():
    runs = [{"a": np.array([1.0, 2.0])}, {"a": np.array([3.0, 6.0])}]
    assert average(runs, [1, 1])["a"].tolist() == [2.0, 4.0]
    assert average(runs, [3, 1])["a"].tolist() == [1.5, 3.0]
    with pytest.raises(ValueError, match="2 shares; got 1"):
        average(runs, [1])
    with pytest.raises(ValueError, match="different tensors"):
        average([*runs, {"b": np.zeros(2)}], [1, 1, 1])


def test_a_setting_that_is_not_there_is_an_error():
    config = yaml.safe_load((HERE / "config.yaml").read_text())["train"]
    change(config, "kinds.phrases", "0.5")
    assert config["kinds"]["phrases"] == 0.5
    with pytest.raises(KeyError, match=r"kinds\.words is no setting"):
        change(config, "kinds.words", "1")


def test_measure():
    scores = np.array([[2.0, -1.0], [1.0, -2.0]])
    gold = np.array([[True, False], [False, True]])
    found = measure(scores, gold)
    assert found["map"] == pytest.approx(75)  # label 1: best first; label 2: its document comes second
    assert found["micro_at_half"] == pytest.approx(50)
    assert found["best_micro"] == pytest.approx(100 * 2 / 3)


def test_the_card_says_what_was_measured_and_nothing_else():
    def share(value):
        return {"value": value, "low": value - 0.1, "high": value + 0.1}

    domains = {"news": {"micro_f1": share(0.9)}, "mean": {"micro_f1": share(0.8)}}
    domains |= {"worst by micro-F1: reviews": {"micro_f1": share(0.7)}}
    pairs = {"all": {"pairs": 100, "ranked": share(0.88), "decided": share(0.43)}}
    everyday = {"domains": {"with bare names": domains}, "pairs": {"with descriptions": pairs}}
    words = " ".join(figures(None, everyday).split())
    assert "micro-F1 is 80.0 as a mean of the domains (worst 70.0, reviews) with bare names; of 100 pairs" in words
    assert "88% are ranked right and 43% decided right" in words
    assert figures(None, None) == "These weights have not been measured yet."


def test_a_place_in_the_card_that_nothing_fills_is_an_error(monkeypatch):
    summary = {"removed": {"documents": {}, "wordings": {}}, "rows": 1, "documents": 1, "by_source": {}, "phrases": 1}
    summary |= {"evaluation_documents_checked": ["goemotions development"], "topics": 0}
    sanity = {
        "slot_log_odds": {"paper": [0.0]},
        "unigram_entropy": 1.0,
        "unigram_model": 2.0,
        "masked_loss": {},
        "passages": 1,
    }
    given = ("small", summary, sanity, {"flips": 0.0, "rms_error": 0.0}, [{"step": 1200}])
    monkeypatch.setattr("recipes.card.TEXT", "<<rows>> and<<note>>")
    assert card(*given) == "1 and"
    assert card(*given, note="then a rest") == "1 and\nthen a rest\n"
    monkeypatch.setattr("recipes.card.TEXT", "<<rows>> and <<nothing>>")
    with pytest.raises(ValueError, match="nothing"):
        card(*given)


def test_half_of_the_drawn_phrases_are_topics(monkeypatch):
    """Three documents, 100 phrases that lie on them, 10 topics that lie a little off: some topics are kept."""
    monkeypatch.setattr(encode, "DRAWN", 12)
    unit = torch.nn.functional.normalize
    documents = unit(torch.eye(3, 4), dim=1)
    phrases = unit(documents.repeat(34, 1)[:100] + 0.01 * torch.randn(100, 4, generator=torch.Generator()), dim=1)
    topics = unit(documents.repeat(4, 1)[:10] + 0.3, dim=1)
    numbers, cosines = encode.candidates(torch.cat([documents, phrases, topics]), 3, 10, seed=1)
    assert numbers.shape == cosines.shape
    assert (numbers >= 100).any(axis=1).all()
    assert (numbers < 100).any(axis=1).all()
    assert all(len({n for n in numbers.ravel().tolist() if (n >= 100) == topic}) <= 6 for topic in (True, False))
    expected = documents @ torch.cat([phrases, topics]).T
    assert np.allclose(cosines, np.take_along_axis(expected.numpy(), numbers, axis=1), atol=1e-2)
