"""`setscore evaluate`, `headroom`, `calibrate` and `datasets` as a user runs them."""

import csv
import json
import re
import sqlite3
import subprocess

import pytest
from commands import COMMAND, ENVIRONMENT, invoke, setscore
from made_up import write_goemotions

from setscore import SetScoreClassifier
from setscore.datasets import DATASETS
from setscore.ensemble import Ensemble
from setscore.errors import SetScoreError

FEW = "fitted on few documents ({}): with fewer than 50, decisions can get worse; 200 are good."
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_goemotions(tmp_path_factory.mktemp("data"), 24)


@pytest.fixture(scope="module")
def first(data):
    """A run with everything that it can write."""
    options = ["--save", "scores", "--json", "results.json", "--pictures", "pictures", "--calibration", "platt,paper"]
    return invoke("evaluate", "goemotions", "--data-dir", data, "--seeds", "13,17", *options, folder=data)


def test_evaluate_prints_one_table(first):
    code, out, err = first
    assert code == 0
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("cosine")]  # where the sentence encoder is installed
    assert lines[0].split() == ["dataset", "decided", "by", "protocol", "micro-F1", "macro-F1", "ECE", "raw", "ECE"]
    assert re.fullmatch(r"goemotions +platt +setscore( +\d+\.\d ± \d+\.\d){2}( +0\.\d{3}){2}", lines[1])
    names = [
        "goemotions  platt",
        "paper",
        "threshold 0.5",
        "label prior",
        "every label",
        "oracle global",
        "oracle per label, micro",
    ]
    for line, name in zip(lines[1:], [*names, "oracle per label, macro"], strict=False):
        assert line.startswith(name)
    legend = lines[lines.index(next(line for line in lines if line.startswith("F1 in percent"))) :]
    assert legend[0].startswith(
        "F1 in percent, mean ± standard deviation over seeds 13, 17. ECE: how far probabilities"
    )
    assert [line.partition(":")[0] for line in legend[1:]] == ["threshold 0.5", "label prior", "every label", "oracle"]
    assert "goemotions pool: scoring; 24 documents" in err
    assert err.count("with fewer than 50, decisions") == 1  # for two seeds and two calibrations
    assert f"goemotions: {FEW.format(12)}\n" in err


def test_evaluate_writes_json_and_pictures(first, data):
    content = json.loads((data / "results.json").read_text())
    assert content["format"] == "setscore.results/1"
    found = content["datasets"]["goemotions"]
    assert found["slices"] == "development"
    assert found["documents"] == {"13": [12, 12], "17": [12, 12]}
    assert found["config"]["backbone"] == "setscore-small"
    assert len(found["config"]["identity"]) == 64
    rows = {row["name"]: row for row in found["rows"] if not row["name"].startswith("cosine")}  # of other scores
    best = rows["oracle per label, micro"]["metrics"]["micro_f1"]["mean"]
    bounded = ("paper", "oracle global", "oracle per label, macro")  # auto and the cosine have other scores
    assert all(rows[name]["metrics"]["micro_f1"]["mean"] <= best for name in bounded if name in rows)
    assert {row["kind"] for row in rows.values()} == {"model", "yardstick", "oracle"}
    labels = rows["platt"]["seeds"]["13"]["labels"]
    assert [label["label"] for label in labels] == ["joy", "anger", "fear"]
    assert {"sample_f1", "exact_match", "ece"} <= rows["platt"]["seeds"]["13"]["intervals"].keys()
    for name in ("reliability", "thresholds"):
        assert (data / "pictures" / f"goemotions-{name}.png").read_bytes().startswith(PNG)


def test_saved_scores_are_used_again_and_one_seed_has_intervals(first, data):
    options = ["--data-dir", data, "--save", "scores", "--seeds", "13", "--no-yardsticks", "--calibration", "platt"]
    code, out, err = invoke("evaluate", "goemotions", *options, folder=data)
    assert code == 0
    assert "goemotions pool: re-using the scores in scores; 24 documents" in err
    assert re.search(r"platt +setscore +\d+\.\d \(\d+\.\d to \d+\.\d\)", out)
    assert "label prior" not in out


def test_headroom_of_saved_scores(first, data):
    code, out, err = invoke("headroom", "--scores", "scores", "--seeds", "13,17", folder=data)
    assert (code, err) == (0, f"goemotions-development: {FEW.format(12)}\n")
    columns = re.split(r"  +", out.splitlines()[0].strip())
    assert columns[:4] == ["dataset", "honest global", "honest auto", "oracle global"]
    assert columns[4:] == ["oracle per label, micro", "oracle per label, macro", "headroom"]
    cells = out.splitlines()[1].split()
    assert cells[0] == "goemotions-development"
    scores = [tuple(map(float, cell.split("/"))) for cell in cells[1:6]]
    assert max(micro for micro, _ in scores) == scores[3][0]
    assert max(macro for _, macro in scores) == scores[4][1]
    assert float(cells[6]) == pytest.approx(scores[3][0] - scores[1][0], abs=0.11)


def test_several_names_go_on_when_one_fails(data):
    options = ["--data-dir", data, "--limit", "8", "--seeds", "13", "--no-yardsticks", "--calibration", "temperature"]
    code, out, err = invoke("evaluate", "jigsaw", "goemotions", *options, folder=data)
    assert code == 1
    assert "jigsaw failed: jigsaw validation: the folder " in err
    assert "1 of 2 datasets failed; the others were evaluated." in err
    assert "goemotions  temperature" in out
    code, out, err = invoke("headroom", "jigsaw", "goemotions", *options[:6], folder=data)
    assert code == 1
    assert "goemotions" in out


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    rows = [(f"A note about {word} number {i}.", word) for i in range(4) for word in ("oil", "sports")]
    rows += [("Nothing happened.", ""), ("Oil and sports.", "oil|sports")]
    regions = ["north", "[south]"] * 5  # what looks like markup is shown as it is
    lines = [f"{text},{labels},{region}\n" for (text, labels), region in zip(rows, regions, strict=True)]
    (folder / "own.csv").write_text("body,tags,region\n" + "".join(lines))
    (folder / "labels.yaml").write_text("oil: crude oil\nsports:\n")
    return folder


OWN = ["--file", "own.csv", "--labels", "labels.yaml", "--text-column", "body", "--labels-column", "tags"]


def test_evaluate_your_own_file(own):
    options = ["--separator", "|", "--seeds", "13", "--calibration", "temperature", "--no-yardsticks"]
    code, out, _ = invoke("evaluate", *OWN, *options, "--json", "r.json", folder=own)
    assert code == 0
    assert "own.csv  temperature" in out
    assert json.loads((own / "r.json").read_text())["datasets"]["own.csv"]["documents"] == {"13": [5, 5]}


@pytest.fixture(scope="module")
def grouped(own):
    """Two runs that measure by group: the first asks the model, the second takes its scores."""
    options = ["--separator", "|", "--calibration", "temperature,paper", "--save", "scores", "--json", "g.json"]
    plain = invoke("evaluate", *OWN, *options, "--seeds", "13", folder=own)
    return plain, invoke("evaluate", *OWN, *options, "--seeds", "13,17", "--group-column", "region", folder=own)


def test_groups_have_a_table_of_their_own(grouped):
    plain, (code, out, err) = grouped
    assert (plain[0], code) == (0, 0)
    assert "own.csv pool: re-using the scores in scores; 10 documents" in err
    table = out[out.index("region ") :].splitlines()
    assert re.split(r"  +", table[0].strip()) == [
        *("region", "documents", "decided by"),
        *("micro-F1", "macro-F1", "macro-F1 present"),
    ]
    number = r"( +\d+\.\d ± \d+\.\d){3}"
    assert re.fullmatch(rf"\[south\] +\d(\.5)? +temperature{number}", table[1].rstrip())
    assert re.fullmatch(rf" +paper{number}", table[2].rstrip())
    assert re.fullmatch(rf" +threshold 0.5{number}", table[3].rstrip())
    assert table[4].startswith("north ")
    assert out.rstrip().endswith("macro-F1 present leaves out labels without a gold document in the group.")
    assert "region" not in plain[1]


def test_groups_are_in_the_json(grouped, own):
    content = json.loads((own / "g.json").read_text())
    assert content["group_column"] == "region"
    for row in content["datasets"]["own.csv"]["rows"]:
        assert ("groups" in row) == (row["kind"] != "oracle")
        for seed in row["seeds"].values() if "groups" in row else ():
            found = seed["groups"]
            assert set(found) == {"[south]", "north"}
            assert sum(group["documents"] for group in found.values()) == 5
            assert {"micro_f1", "macro_f1", "macro_f1_present", "exact_match"} <= set(found["north"])


@pytest.mark.parametrize("command", ["evaluate", "calibrate"])
def test_repeated_ids_are_kept_and_told(own, command):
    (own / "twice.csv").write_text("id,text,labels\na,Oil rose.,oil\nb,Rain.,\na,A goal.,sports\nc,Crude oil.,oil\n")
    options = ["--file", "twice.csv", "--labels", "labels.yaml", "--calibration", "temperature"]
    more = ["--no-yardsticks", "--seeds", "13"] if command == "evaluate" else ["--out", "twice.json"]
    code, _, err = invoke(command, *options, *more, folder=own)
    assert code == 0
    assert "1 row repeats an id, the first is 'a' in row 3; all rows are kept." in err
    assert "scoring; 4 documents" in err


def test_calibrate_saves_a_classifier_that_classify_reads(own):
    options = ["--separator", "|", "--calibration", "temperature", "--head", "readout", "--out", "model.json"]
    code, out, err = setscore("calibrate", *OWN, *options, folder=own)
    lines = out.splitlines()
    assert code == 0
    assert err.splitlines() == ["own.csv: scoring; 10 documents"]
    assert lines[0] == "learned: fitted on 10 documents, 2 labels"
    assert lines[1].startswith("Learned ")
    assert lines[3].split() == ["decided", "by", "micro-F1", "macro-F1", "ECE", "raw", "ECE"]
    interval = r" +\d+\.\d \(\d+\.\d to \d+\.\d\)"
    assert re.match(rf"threshold 0\.5{interval}{interval} +0\.\d+ +0\.\d+", lines[4])
    for line, name in zip(lines[5:7], ("calibration only", "learned"), strict=True):
        assert re.match(rf"{name}, cross-validated{interval}{interval} +0\.\d+ +0\.\d+", line)
    assert lines[-1] == "saved: model.json and model.safetensors, which belong together"
    assert (own / "model.safetensors").exists()
    model = SetScoreClassifier.load(own / "model.json")
    assert model.regime == "learned"
    assert [label.description for label in model.labels_.labels] == ["crude oil", None]
    code, out, _ = invoke("classify", "Oil!", "--classifier", "model.json", "--format", "jsonl", folder=own)
    assert (code, list(json.loads(out)["probabilities"])) == (0, ["oil", "sports"])


def test_a_reader_that_leaves_takes_no_classifier_along(own):
    """As in `setscore calibrate ... --out model.json | head -1`."""
    command = [COMMAND, "calibrate", *OWN, "--separator", "|", "--out", "left.json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=own, env=ENVIRONMENT)
    process.stdout.close()
    process.wait()
    assert SetScoreClassifier.load(own / "left.json").labels_.names == ("oil", "sports")


def nearly_alike(folder, label, labelled):
    """Ten documents, of which these numbers have the label."""
    texts = ["The price of crude oil rose", *(f"The children were playing in garden {n}" for n in range(9))]
    rows = [f"{text},{label if n in labelled else ''}\n" for n, text in enumerate(texts)]
    (folder / "f.csv").write_text("text,labels\n" + "".join(rows))


@pytest.mark.parametrize(
    ("labelled", "options", "said"),
    [
        (
            (0, 5, 8),
            (),
            r"micro-F1 is \d+\.\d cross-validated and \d+\.\d with nothing fitted\. So few documents cannot tell",
        ),
        (
            (0, 5, 8),
            ("--objective", "balanced"),
            r"micro-F1 is [\d.]+ cross-validated and [\d.]+, macro-F1 is [\d.]+ cross-validated and [\d.]+ with",
        ),
        ((0,), ("--size", "3"), "none of these documents has a gold label"),
        ((0, 5, 8), (), r"7 of 10 documents have no label and taught that none\s+applies\."),
    ],
)
def test_calibrate_tells_what_speaks_against_the_fit(tmp_path, labelled, options, said):
    """Two of nine documents like each other have the label for no reason, and so fits that see them say yes to all."""
    nearly_alike(tmp_path, "oil", labelled)
    command = ["calibrate", "--file", "f.csv", "--labels", "oil,music", "--head", "none", *options]
    code, _, err = invoke(*command, folder=tmp_path)
    assert code == 0
    assert re.search(said, err), err


@pytest.mark.parametrize(
    ("label", "options", "left_out"),
    [
        ("", (), ""),
        ("gas", ("--ignore-unknown",), " 1 gold label outside the inventory left out: 'gas', in row 1."),
    ],
)
def test_a_file_in_which_no_row_has_a_label_is_an_error(tmp_path, label, options, left_out):
    nearly_alike(tmp_path, label, (0,))
    command = ["calibrate", "--file", "f.csv", "--labels", "oil,music", "--out", "m.json", *options]
    code, out, err = invoke(*command, folder=tmp_path)
    assert (code, out) == (2, "")
    told = f"error: no row of f.csv has a label: was the column 'labels' filled in?{left_out}"
    assert " ".join(err.split()) == told
    assert not (tmp_path / "m.json").exists()


def test_tables_in_a_pipe_are_not_squeezed(own):
    options = ["--separator", "|", "--calibration", "temperature", "--head", "none"]
    code, out, _ = setscore("calibrate", *OWN, *options, folder=own, COLUMNS="")
    assert code == 0
    assert any(line.startswith("temperature, cross-validated  ") for line in out.splitlines()), out


def test_calibrate_draws_from_a_dataset_with_the_seed(data, tmp_path):
    options = ["--data-dir", data, "--size", "12", "--save", "scores", "--calibration", "platt?most=1"]
    options += ["--head", "none"]
    code, out, err = invoke("calibrate", "goemotions", *options, "--json", "c.json", "--per-label", folder=tmp_path)
    assert code == 0
    assert "goemotions: scoring; 12 documents" in err
    assert "12 of 24 documents, drawn with seed 13." in err
    assert "the classifier was not saved: --out FILE saves it." in err
    assert [line.split()[0] for line in out[out.index("\nlabel ") + 1 :].splitlines()[1:4]] == ["joy", "anger", "fear"]
    content = json.loads((tmp_path / "c.json").read_text())
    assert (content["format"], content["seed"]) == ("setscore.calibration/1", 13)
    assert (content["documents"], content["calibration"]) == (12, "platt?most=1")
    assert list(content["thresholds"]) == ["joy", "anger", "fear"]
    assert [row["name"] for row in content["rows"]] == ["threshold 0.5", "platt?most=1, cross-validated"]
    code, again, err = invoke("calibrate", "goemotions", *options, "--out", "m.json", folder=tmp_path)
    assert (code, again.splitlines()[:5]) == (0, out.splitlines()[:5])
    code, other, err = invoke("calibrate", "goemotions", *options, "--seed", "17", folder=tmp_path)
    assert (code, other != out) == (0, True)
    model = SetScoreClassifier.load(tmp_path / "m.json")
    assert model.calibration_.most == 1


def test_calibrate_asks_nothing_that_evaluate_has_asked(first, data):
    def answers():
        with sqlite3.connect(data / "scores" / "scores.sqlite") as db:
            (count,) = db.execute("SELECT count(*) FROM answers").fetchone()
        db.close()
        return count

    before = answers()
    options = ["--data-dir", data, "--size", "12", "--save", "scores", "--calibration", "temperature"]
    options += ["--head", "none"]
    code, _, err = invoke("calibrate", "goemotions", *options, folder=data)
    assert code == 0, err
    assert before == answers() == 24 * 3


def test_a_saved_classifier_is_measured_and_told_if_on_its_own_documents(own):
    saved = ["--calibration", "temperature?margin=0.2", "--out", "own.json"]
    assert invoke("calibrate", *OWN, *saved, folder=own)[0] == 0
    lines = (own / "own.csv").read_text().splitlines(keepends=True)
    (own / "permuted.csv").write_text("".join([lines[0], *reversed(lines[1:])]))
    columns = ["--text-column", "body", "--labels-column", "tags", "--classifier", "own.json"]
    code, out, err = invoke("evaluate", "--file", "permuted.csv", *columns, "--yardsticks", folder=own)
    assert code == 0
    assert "temperature is measured on the 10 documents it was fitted on; that flatters it. Measure on others." in err
    assert "of the decisions are left to you" in err
    rows = [line.strip() for line in out.splitlines()[1:4]]
    assert rows[0].startswith("permuted.csv  temperature?margin=0.2 ")
    assert rows[1].startswith("threshold 0.5 ")
    assert rows[2].startswith("every label ")
    (own / "others.csv").write_text(
        "body,tags\nPetrol is dearer.,oil\nA late goal.,sports\n" + lines[1].rpartition(",")[0]
    )
    code, _, err = invoke("evaluate", "--file", "others.csv", *columns, "--json", "s.json", folder=own)
    assert (code, "1 of the 3 documents that temperature is measured on has scores and labels" in err) == (0, True)
    assert json.loads((own / "s.json").read_text())["datasets"]["others.csv"]["documents"] == {"0": [0, 3]}
    code, out, _ = invoke("classify", "Oil!", "--classifier", "own.json", "--format", "csv", folder=own)
    assert (code, out.splitlines()[0]) == (0, "id,labels,undecided,oil,sports,error,regime")
    code, out, _ = invoke("classify", "Oil!", "--classifier", "own.json", "--format", "jsonl", folder=own)
    assert (code, "undecided" in json.loads(out)) == (0, True)


def test_a_run_is_not_tested_against_itself(own):
    """The folder that this run saves its scores in holds no others: it used to find itself there, with p = 1."""
    options = [*OWN, "--separator", "|", "--calibration", "temperature", "--seeds", "13", "--save", "alone"]
    code, out, err = invoke("compare", *options, "--against", "alone", folder=own)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "error: alone holds setscore-small, which is this run itself, and nothing to compare it with. Save a run with"
        " other settings first, or name another place."
    )


def test_consent_is_given_on_the_command_line_here_too(own, monkeypatch):
    seen = []

    def load(path, *, allow):
        seen.append((path.name, allow))
        raise SetScoreError("not here.")

    monkeypatch.setattr(SetScoreClassifier, "load", load)
    options = ["--file", "own.csv", "--classifier", "model.json", "--allow", "remote-code"]
    assert invoke("evaluate", *options, folder=own) == (2, "", "error: not here.\n")
    assert seen == [("model.json", ["remote-code"])]
    code, _, err = invoke("evaluate", *OWN, "--allow", "pickle", folder=own)
    message = "error: --allow is for --classifier; with --backbone write hf:<id>?allow=remote-code.\n"
    assert (code, err) == (2, message)


def test_another_runs_scores_are_tested_against_and_stay_as_they_are(first, data):
    """A second template into the same folder leaves the first one's scores alone, and both are there to compare."""
    options = ["--data-dir", data, "--seeds", "13,17", "--calibration", "platt", "--save", "scores"]
    asked = ["--template", "comment-is", "--against", "scores", "--json", "p.json"]
    code, out, err = invoke("compare", "goemotions", *options, *asked, folder=data)
    assert code == 0, err
    table = out[out.index("goemotions, paired tests") :]
    cell = r" +[+-]\d+\.\d \([+-]\d+\.\d to [+-]\d+\.\d\) +[01]\.\d{3}"
    for second in ("threshold 0.5", "platt of setscore-small"):
        assert re.search(rf"platt minus {second} +13{cell}{cell} *\n +17{cell}{cell}", table), table
    pairs = json.loads((data / "p.json").read_text())["datasets"]["goemotions"]["pairs"]
    assert [pair["second"] for pair in pairs] == ["threshold 0.5", "platt of setscore-small"]
    code, again, _ = invoke("evaluate", "goemotions", *options, "--no-yardsticks", folder=data)
    assert (code, again.splitlines()[1].split()[:6]) == (0, first[1].splitlines()[1].split()[:6])
    code, out, err = invoke("headroom", "--scores", "scores", "--seeds", "13", folder=data)
    assert code == 0, err
    assert re.findall(r"^goemotions-development, (setscore-small(?:, comment-is)?) ", out, re.MULTILINE) == [
        "setscore-small",
        "setscore-small, comment-is",
    ]
    code, _, err = invoke("compare", "goemotions", *options, "--against", "pictures", folder=data)
    assert code == 2
    assert "pictures holds no scores. Make them with `setscore evaluate NAME --save pictures`." in err
    members = [
        "a=scores/goemotions-development/setscore-small",
        "b=scores/goemotions-development/setscore-small, comment-is",
    ]
    code, out, err = invoke("ensemble", *members, "--seeds", "13,17", folder=data)
    assert (code, [line.split()[0] for line in out.splitlines()[1:3]]) == (0, ["a", "b"])


def test_two_evaluations_on_one_folder_at_the_same_time(data, tmp_path, first):
    options = [
        "--data-dir",
        data,
        "--seeds",
        "13,17",
        "--no-yardsticks",
        "--calibration",
        "platt,paper",
        "--save",
        "two",
    ]
    command = [COMMAND, "evaluate", "goemotions", *options]
    pair = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=ENVIRONMENT)
        for _ in range(2)
    ]
    outs = [(*process.communicate(), process.returncode) for process in pair]
    assert [code for _, _, code in outs] == [0, 0], outs
    one, other = (out.decode().splitlines() for out, _, _ in outs)
    assert one == other
    alone = first[1].splitlines()
    assert [line.split() for line in one[1:4]] == [line.split() for line in alone[1:4]]
    with sqlite3.connect(tmp_path / "two" / "scores.sqlite") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (24 * 3,)
        assert db.execute("SELECT count(*) FROM claims").fetchone() == (0,)
    db.close()


def test_scores_of_version_0_1_are_refused(data, tmp_path):
    (tmp_path / "old" / "goemotions-development" / "pool").mkdir(parents=True)
    (tmp_path / "old" / "goemotions-development" / "pool" / "scores.json").write_text('{"format": "setscore.scored/1"}')
    said = "error: old holds scores of SetScore 0.1, which this version does not read. Score again into a new folder.\n"
    for command in (
        ["evaluate", "goemotions", "--data-dir", data, "--save", "old"],
        ["calibrate", "goemotions", "--data-dir", data, "--save", "old"],
        ["baseline", "cosine", "goemotions", "--data-dir", data, "--save", "old"],
        ["headroom", "--scores", "old"],
        ["ensemble", "a=old", "b=old"],
    ):
        assert invoke(*command, folder=tmp_path) == (2, "", said)


def test_everything_about_a_file_begins_with_one_plain_table(own):
    options = ["--separator", "|", "--seeds", "13,17", "--calibration", "temperature,paper"]
    code, plain, _ = invoke("evaluate", *OWN, *options, folder=own)
    rows = [line.split("  ")[-5 if number else 0].strip() for number, line in enumerate(plain.splitlines()[:4])]
    assert code == 0
    assert not re.search("oracle|label prior|paired", plain)
    code, out, _ = invoke("evaluate", *OWN, *options, "--all", folder=own)
    assert code == 0, rows
    head, *lines = out.splitlines()
    assert re.split("  +", head.strip()) == ["dataset", "decided by", "micro-F1", "macro-F1"]
    names = ["own.csv  temperature", "paper", "threshold 0.5"]
    assert [line.strip().startswith(name) for line, name in zip(lines, names, strict=False)] == [True] * 3
    assert lines[3] == ""
    places = [
        out.index(title) for title in ("ECE raw", "label prior", "oracle global", "own.csv, temperature", "paired")
    ]
    assert places == sorted(places)


def test_each_label_has_a_row_as_fitted_and_as_before(own):
    """The second table is what the model alone decides: with --competition 0 at log-odds above 0."""
    options = ["--separator", "|", "--seeds", "13", "--calibration", "paper,temperature", "--competition", "0"]
    code, out, _ = invoke("evaluate", *OWN, *options, "--per-label", "--json", "rows.json", folder=own)
    assert code == 0
    rows = {row["name"]: row for row in json.loads((own / "rows.json").read_text())["datasets"]["own.csv"]["rows"]}
    expected = []
    for name in ("paper", "threshold 0.5"):
        labels = rows[name]["seeds"]["13"]["labels"]
        cells = [
            [one["label"], *(str(one[key]) for key in ("gold", "predicted"))]
            + [f"{100 * one[key]:.1f}" for key in ("precision", "recall", "f1")]
            for one in labels
        ]
        head = ["label", "gold", "predicted", "precision", "recall", "F1"]
        expected += [["own.csv,", *name.split()], head, *cells, []]
    lines = out[out.index("own.csv, paper") :].splitlines()
    assert [line.split() for line in lines[:-1]] == expected
    assert lines[-1] == "Documents with the label, and precision, recall and F1 in percent."


def test_each_label_has_a_row_as_learned(own):
    """What `fit` learns has a table of its own, between that of the calibration and the one before fit."""
    options = ["--separator", "|", "--seeds", "13", "--per-label", "--json", "rows.json"]
    code, out, _ = invoke("evaluate", *OWN, *options, folder=own)
    assert code == 0
    places = [out.index(f"own.csv, {name}") for name in ("auto", "learned", "threshold 0.5")]
    assert places == sorted(places)
    rows = {row["name"]: row for row in json.loads((own / "rows.json").read_text())["datasets"]["own.csv"]["rows"]}
    shown = out[places[1] : places[2]].splitlines()[2:]
    for line, one in zip(shown, rows["learned"]["seeds"]["13"]["labels"], strict=False):
        assert line.split()[:3] == [one["label"], str(one["gold"]), str(one["predicted"])]


def test_datasets_as_a_table_and_as_a_card():
    code, out, _ = invoke("datasets")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(DATASETS)
    assert "goemotions      28   43,410       5,426   5,427        1,500  CC BY 4.0" in out
    code, out, _ = invoke("datasets", "reuters")
    assert (code, out.splitlines()[0]) == (0, "## Reuters-21578 (`reuters`)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "--limit", "9"], "error: no dataset was given. Give names (see `setscore datasets`), all, or"),
        (["evaluate", "goemotion"], "error: unknown dataset 'goemotion'. Did you mean 'goemotions'? Known: aapd, "),
        (["evaluate", "aapd", "--calibration", "plat"], "error: unknown calibration 'plat'. Did you mean 'platt'?"),
        (["evaluate", "aapd", "--seeds", "13,x"], "error: seeds are different whole numbers from 0, separated by comm"),
        (["evaluate", "aapd", "--seeds", "13,13"], "separated by commas; got '13,13'."),
        (["evaluate", "aapd", "--slices", "dev"], "error: --slices is development or paper, got 'dev'."),
        (["evaluate", "aapd", "--data-dir", "no"], "error: aapd validation: the folder no/aapd does not exist"),
        (["evaluate", "aapd", "--json", "no/r.json"], "no/r.json cannot be written: the folder no does not exist."),
        (["evaluate", "aapd", "--template", "expres"], "error: unknown template 'expres'. Did you mean 'express'?"),
        (["evaluate", "aapd", "--file", "x.csv"], "error: --file stands alone: remove the names of datasets, --slices"),
        (["evaluate", "--file", "x.csv"], "error: --file needs the inventory of labels as well. Add --labels FILE."),
        (["evaluate", "--file", "x.csv", "--labels", "a,b"], "error: the file x.csv does not exist."),
        (["evaluate", "--file", "x.csv", "--labels", "l.txt"], "error: the label file l.txt cannot be read"),
        (["evaluate", "aapd", "--group-column", "a"], "error: --group-column is about your own documents. Give them"),
        (
            ["calibrate", "--seed", "3"],
            "error: labelled documents are needed: --file FILE, or a dataset (see `setscore",
        ),
        (["calibrate", "--file", "x.csv"], "error: --file needs the inventory of labels as well. Add --labels FILE."),
        (["calibrate", "aapd", "--file", "x.csv"], "error: --file stands alone: remove 'aapd'."),
        (["calibrate", "-f", "x.csv", "--data-dir", "d"], "error: --file stands alone: remove --data-dir."),
        (["calibrate", "goemotion"], "error: unknown dataset 'goemotion'. Did you mean 'goemotions'?"),
        (["calibrate", "aapd", "--json", "no/c.json"], "no/c.json cannot be written: the folder no does not exist."),
        (
            ["calibrate", "aapd", "--calibration", "platt?mots=2"],
            "option of the calibration platt 'mots'. Did you mean",
        ),
        (["evaluate", "aapd", "--calibration", "auto,platt?most=x"], "platt is a whole number, got 'x'."),
        (["baseline", "cosine", "aapd", "--calibration", "auto?objective=f1"], "error: unknown objective 'f1'."),
        (
            ["evaluate", "aapd", "--classifier", "c.json", "--template", "x"],
            "has its own settings; remove --template or",
        ),
        (["evaluate", "aapd", "--classifier", "none.json"], "error: the file none.json cannot be read"),
        (["calibrate", "-f", "x.csv", "-o", "no/m.json"], "no/m.json cannot be written: the folder no does not exist."),
        (["headroom", "--scores", "none"], "error: none holds no scores. Make them with `setscore evaluate NAME"),
        (["headroom", "--limit", "9"], "Give names (see `setscore datasets`), all, or --scores DIR."),
        (["headroom", "aapd", "--scores", "none"], "error: give names of datasets or --scores, not both."),
        (["datasets", "reuter"], "error: unknown dataset 'reuter'. Did you mean 'reuters'?"),
    ],
)
def test_mistakes_of_a_user(tmp_path, arguments, message):
    code, out, err = invoke(*arguments, folder=tmp_path)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("column", ["--group-column", "--id-column"])
def test_a_column_that_is_not_there_is_answered_with_those_that_are(own, column):
    code, out, err = invoke("evaluate", *OWN, column, "area", folder=own)
    assert (code, out) == (2, "")
    assert err == "error: own.csv has no column area; its first line has ['body', 'tags', 'region'].\n"


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("evaluate", "setscore evaluate all --data-dir DATA --save scores --json results.json"),
        ("evaluate", "setscore evaluate --file tickets.csv --labels labels.yaml --group-column region"),
        ("calibrate", "setscore calibrate --file tickets.csv --labels labels.yaml --out classifier.json"),
        ("headroom", "setscore headroom --scores scores"),
        ("datasets", "setscore datasets reuters"),
    ],
)
def test_help_shows_examples(command, example):
    code, out, _ = invoke(command, "--help")
    assert code == 0
    assert example in out


def test_help_says_what_all_is():
    assert "all for goemotions, reuters, eurlex, ecthr-b, jigsaw, aapd." in invoke("evaluate", "--help")[1]


def test_a_blend_is_weighed_and_saved(own):
    options = ["--separator", "|", "--blend", "own-cosine", "--calibration", "platt"]
    code, out, err = invoke("calibrate", *OWN, *options, "--out", "blended.json", folder=own)
    assert (code, out.splitlines()[-1]) == (0, "saved: blended.json and blended.safetensors, which belong together")
    (said,) = re.findall(r"blend: (.*), chosen on all of these documents, which", err)
    model = SetScoreClassifier.load(own / "blended.json")
    assert Ensemble.of(model.blend).sentence() == said
    assert "own-cosine" in Ensemble.of(model.blend).names
    code, out, err = invoke(
        "evaluate", *OWN[:2], *OWN[4:], "--separator", "|", "--classifier", "blended.json", folder=own
    )
    assert (code, "threshold 0.5" in out) == (0, False)
    assert "no row threshold 0.5: the scores are a blend, whose weights are fitted too." in err
    code, out, err = invoke("evaluate", *OWN, *options, "--no-yardsticks", "--seeds", "13", folder=own)
    assert (code, "own.csv: blend: seed 13 " in err) == (0, True)


def test_what_a_blend_would_give_is_shown_beside_auto(own):
    options = ["--separator", "|", "--seeds", "13", "--backbone", "setscore-mini"]
    beside = [*options, "--calibration", "auto", "--yardsticks", "--json", "both.json"]
    code, out, err = invoke("evaluate", *OWN, *beside, folder=own)
    assert code == 0
    assert "own.csv blend='own-cosine': embedding; 10 documents" in err
    assert "auto + own-cosine: the model's own sentence embedding has a say too" in out
    rows = [row["name"] for row in json.loads((own / "both.json").read_text())["datasets"]["own.csv"]["rows"]]
    assert rows[:5] == ["auto", "learned", "threshold 0.5", "auto + own-cosine", "label prior"]
    code, out, _ = invoke("evaluate", *OWN, *options, "--calibration", "auto", "--no-yardsticks", folder=own)
    assert (code, "own-cosine" in out) == (0, False)


def test_one_document_is_no_documents(tmp_path):
    (tmp_path / "one.csv").write_text("text,labels\nOil rose.,oil\n")
    code, out, err = setscore("calibrate", "--file", "one.csv", "--labels", "oil", folder=tmp_path)
    assert (code, out.splitlines()[0]) == (0, "zero-shot: fitted on 1 document, 1 label")
    assert "one.csv: scoring; 1 document\n" in err
    code, _, err = invoke("evaluate", "--file", "one.csv", "--labels", "oil", folder=tmp_path)
    assert (code, "one.csv has 1 document; at least 2 are needed" in err) == (2, True)


@pytest.mark.parametrize("command", ["evaluate", "calibrate", "diagnose"])
def test_blank_rows_and_other_gold_labels_stop_nothing_else(tmp_path, command):
    """The same words in every command that reads labelled documents: the row, and how to go on."""
    rows = ["Oil rose.,oil", ",oil", "A late goal.,sports", "It rained.,weather", " ,", "Crude oil.,oil"]
    (tmp_path / "own.csv").write_text("\n".join(["text,labels", *rows, ""]))
    options = ["--file", "own.csv", "--labels", "oil,sports"]
    more = {"evaluate": ["--seeds", "13", "--no-yardsticks", "--calibration", "temperature"]}.get(command, [])
    code, out, err = invoke(command, *options, *more, folder=tmp_path)
    assert (code, out) == (2, "")
    assert "own.csv: 1 gold label is not in the inventory: 'weather' (1 time)." in err
    assert "See row 4. Add what is missing to the labels, mend the rows, or leave such gold labels out" in err
    code, _, err = invoke(command, *options, *more, "--ignore-unknown", folder=tmp_path)
    assert code == 0, err
    blank = "2 of 6 rows cannot be used and were left out: row 2 is empty or blank; row 5 is empty or blank."
    assert blank in err
    assert "1 gold label outside the inventory left out: 'weather', in row 4." in err


def test_a_saved_classifier_takes_its_labels_in_any_order_and_no_others(own):
    saved = ["--calibration", "platt", "--out", "order.json"]
    assert invoke("calibrate", *OWN, *saved, folder=own)[0] == 0
    measure = ["evaluate", *OWN[:2], *OWN[4:], "--classifier", "order.json"]
    tables = {}
    for labels in (None, "sports,oil", "oil,sports"):
        code, tables[labels], err = invoke(*measure, *([] if labels is None else ["--labels", labels]), folder=own)
        assert code == 0, err
    assert tables[None] == tables["sports,oil"] == tables["oil,sports"]
    (own / "worded.yaml").write_text("sports:\noil: petrol\n")
    code, out, err = invoke(*measure, "--labels", "worded.yaml", folder=own)
    assert (code, out) == (0, tables[None])
    assert "descriptions are those of the saved classifier; given were others, of oil." in err
    code, _, err = invoke(*measure, "--labels", "oil,sports,tea", folder=own)
    assert code == 2
    assert "made for other labels than these: only own.csv has tea. Use it with its own labels, fit" in err


def test_calibrate_remembers_the_slice_for_a_shortlist_as_fit_does(tmp_path):
    for extra in ("faiss", "bm25s"):
        pytest.importorskip(extra)
    labels = ["oil", "sports", "music", "weather"]
    rows = [(f"A note about {name} number {i}.", name) for i in range(3) for name in labels]
    (tmp_path / "own.csv").write_text("text,labels\n" + "".join(f"{text},{name}\n" for text, name in rows))
    options = ["--file", "own.csv", "--labels", ",".join(labels), "--shortlist", "2", "--calibration", "temperature"]
    code, _, err = invoke("calibrate", *options, "--save", "scores", "--out", "m.json", folder=tmp_path)
    assert code == 0, err
    saved = json.loads((tmp_path / "m.json").read_text())
    fitted = SetScoreClassifier(labels, shortlist=2, calibration="temperature")
    fitted.fit([text for text, _ in rows], [[name] for _, name in rows]).save(tmp_path / "fitted.json")
    expected = json.loads((tmp_path / "fitted.json").read_text())
    assert saved["params"]["shortlist"] == expected["params"]["shortlist"]
    assert saved["params"]["shortlist"]["memory"]["rows"]["shape"] == [12]
    texts = ["The band plays on.", "Rain is coming."]
    loaded = SetScoreClassifier.load(tmp_path / "m.json")
    assert (loaded.decision_function(texts) == fitted.decision_function(texts)).all()
    code, _, err = invoke("evaluate", *options, "--save", "scores", "--no-yardsticks", "--seeds", "13", folder=tmp_path)
    assert (code, "own.csv pool: scoring; 12 documents" in err) == (0, True)  # those scores had another shortlist


def test_the_documents_that_were_decided_wrongly_are_listed(own, tmp_path):
    """By `evaluate` as the saved classifier decides, by `calibrate` as it decides documents that were not fitted on."""
    saved = ["--separator", "|", "--out", str(tmp_path / "c.json"), "--mistakes", str(tmp_path / "cross.csv")]
    assert invoke("calibrate", *OWN, *saved, folder=own)[0] == 0
    gold = {"The price of crude oil fell.": {"oil"}, "We, the jury, met.": {"oil", "sports"}, "Sports day!": {"oil"}}
    lines = [f'"{text}",{"|".join(sorted(labels))}\n' for text, labels in gold.items()]
    (tmp_path / "new.csv").write_text("text,labels\n" + "".join(lines))
    measure = ["evaluate", "--file", "new.csv", "--separator", "|", "--classifier", "c.json", "--mistakes", "m.csv"]
    code, _, err = invoke(*measure, folder=tmp_path)
    assert code == 0, err
    decided = SetScoreClassifier.load(tmp_path / "c.json").predict_labels(list(gold))
    said = {text: set(found) for text, found in zip(gold, decided, strict=True)}
    with (tmp_path / "m.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {row["text"]: [set(filter(None, row[c].split("|"))) for c in ("missed", "wrongly said")] for row in rows}
    assert found == {
        text: [labels - said[text], said[text] - labels] for text, labels in gold.items() if labels != said[text]
    }
    assert "We, the jury, met." in found
    assert f"{len(found)} documents of 3 decided wrongly: m.csv" in err
    assert (tmp_path / "cross.csv").read_text().startswith("id,text,missed,wrongly said,probabilities")
    model = SetScoreClassifier.load(tmp_path / "c.json")
    for row in rows:
        sure = dict(part.rsplit(" ", 1) for part in row["probabilities"].split("|"))
        assert set(sure) == gold[row["text"]] ^ said[row["text"]]
        (answer,) = model.classify([row["text"]])
        assert {name: float(value) for name, value in sure.items()} == {
            name: pytest.approx(answer.probabilities[name], abs=0.006) for name in sure
        }


def test_mistakes_want_one_decision_for_each_document(own):
    code, _, err = invoke("evaluate", *OWN, "--mistakes", "m.csv", folder=own)
    assert code == 2
    assert "--mistakes is for --classifier" in err
