"""`setscore diagnose`, `compare` and `--scorer` as a user runs them."""

import json
import re

import pytest
from commands import invoke

ROWS = [
    ("Crude prices fell after OPEC raised its output.", "oil", "oil,sports"),
    ("The striker scored twice in the final.", "sports", "music,sports"),
    ("The band released a new album.", "music", "oil,sports"),
    ("Oil firms paid for the new stadium.", "oil,sports", "oil,music"),
]


@pytest.fixture
def folder(tmp_path):
    lines = [json.dumps({"text": t, "labels": g.split(","), "shortlist": c.split(",")}) for t, g, c in ROWS]
    (tmp_path / "own.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "labels.txt").write_text("oil\nsports\nmusic\n")
    return tmp_path


OWN = ("--file", "own.jsonl", "--labels", "labels.txt")


def test_diagnose_says_what_was_found_prints_every_table_and_draws(folder):
    pytest.importorskip("matplotlib")
    options = ("--orders", "3", "--pictures", "pictures", "--against", "setscore-small?prior=true")
    code, out, err = invoke("diagnose", *OWN, *options, folder=folder)
    assert code == 0, err
    first, summary, competition = out.splitlines()[:3]
    assert first == "own.jsonl, 4 documents, 3 labels, setscore-small"
    assert summary.startswith("With nothing calibrated, log-odds above 0, setscore-small says yes to ")
    assert "On the same prompts setscore-small" in summary
    assert competition == (
        "Numbers here are without competition between labels, which `classify` adds before `fit`"
        " (0.8 with setscore-small; `classify --competition 0` leaves it out)."
    )
    titles = ("Slot bias of the all-masked prompt", "Labels, asked one by one", "Wording", "The same prompts")
    places = [out.index(title) for title in titles]
    assert places == sorted(places)
    assert "Mean absolute difference from gold" in out
    assert "p(yes) + p(no): " in out
    assert "setscore-small: all labels in one prompt, 3 orders; 12 documents" in err  # progress
    assert {path.name for path in (folder / "pictures").iterdir()} == {
        "own.jsonl-slots.png",
        "own.jsonl-rates.png",
        "own.jsonl-labels.png",
    }


@pytest.mark.parametrize("name", ["texts.txt", "texts.csv", "texts.jsonl"])
def test_diagnose_works_without_gold_labels_and_says_what_is_left_out(folder, name):
    texts = [text for text, _, _ in ROWS]
    lines = {
        "texts.txt": texts,
        "texts.csv": ["text", *(f'"{text}"' for text in texts)],
        "texts.jsonl": [json.dumps({"text": text}) for text in texts],
    }[name]
    (folder / name).write_text("\n".join(lines) + "\n")
    code, out, err = invoke("diagnose", "--file", name, "--labels", "oil,sports,music", folder=folder)
    assert code == 0, err
    assert "without gold labels it is not known whether that is right" in out.splitlines()[1]
    assert "Slot bias of the all-masked prompt" in out
    assert "gold" not in out.partition("Labels, asked one by one")[2]
    assert "F1" not in out.partition("\n")[2].partition("\n")[2]
    assert "without gold labels: rates beside gold, F1 of wordings and the separation of backbones are left out" in err


def test_diagnose_takes_a_column_of_labels_by_its_name(folder):
    code, out, err = invoke("diagnose", *OWN, "--labels-column", "shortlist", folder=folder)
    assert code == 0, err
    assert "are gold" in out
    code, _, err = invoke("diagnose", "--file", "own.jsonl", folder=folder)
    assert code == 2
    assert "Add --labels FILE" in err
    code, _, err = invoke("diagnose", *OWN, "--against", "setscore-small", folder=folder)
    assert code == 2
    assert "the backbone itself" in err


def test_diagnose_compares_two_checkpoints(folder):
    """Base against instruct, on random ones: the same prompts, each with its own tokenizer and mask."""
    pytest.importorskip("torch")
    import checkpoints

    base, instruct = (checkpoints.make(folder / family, family) for family in ("llada", "dream"))
    options = ("--backbone", base, "--against", instruct, "--templates", "", "--orders", "2")
    code, out, err = invoke("diagnose", *OWN, *options, folder=folder)
    assert code == 0, err
    rows = [line.split() for line in out.partition("The same prompts")[2].splitlines() if line.startswith(str(folder))]
    assert [row[0] for row in rows] == [str(base), str(instruct)]
    for row in rows:
        assert len(row) == 6  # sharpness, separation, mass, slot spread, first slot
        assert 0 < float(row[3]) < 1
    assert "the model would rather say something else" in out.splitlines()[1]


@pytest.fixture
def wordings(folder):
    (folder / "described.yaml").write_text("oil: crude oil\nsports:\nmusic:\n")
    (folder / "wordings.yaml").write_text("oil:\n- petrol or fuel\n- '[OPEC]'\nsports: [games and players]\n")
    return ["--labels", "described.yaml", "--wordings", "wordings.yaml"]


def test_wordings_of_labels_have_a_table_of_their_own(folder, wordings):
    code, out, err = invoke("diagnose", "--file", "own.jsonl", *wordings, folder=folder)
    assert (code, err) == (0, "setscore-small: scoring; 4 documents\n")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[:3] == ["own.jsonl, 4 documents, setscore-small", "", "Wordings, the one in use first"]
    columns = ["label", "wording", "yes", "gold", "F1 at 0.5", "average precision"]
    assert re.split("  +", lines[3]) == columns
    rows = [re.split("  +", line.strip()) for line in lines[4:10]]
    assert [row[:-4] for row in rows] == [
        ["oil", "oil (crude oil)"],
        ["oil"],
        ["oil (petrol or fuel)"],
        ["oil ([OPEC])"],
        ["sports", "sports"],
        ["sports (games and players)"],
    ]
    assert all(row[-3] == "2" for row in rows)  # gold
    assert all(re.fullmatch(r"\d+\.\d", cell) for row in rows for cell in row[-2:])
    assert " ".join(lines[10:]).strip() == (
        "Each question counts alone, without competition; yes: documents with a probability of 0.5 or more. Average"
        " precision, in percent like F1: how well documents with the label come before the others, wherever a threshold"
        " lies. With few documents, small differences are chance."
    )


def test_wordings_without_gold_labels(folder, wordings):
    (folder / "texts.txt").write_text("Crude prices fell.\n\nA late goal.\n")
    code, out, err = invoke("diagnose", "--file", "texts.txt", *wordings, "--label-text", "description", folder=folder)
    assert code == 0, err
    table = [line.split() for line in out.splitlines()[3:8]]
    assert (table[0], table[1][:3], table[2][:1]) == (["label", "wording", "yes"], ["oil", "crude", "oil"], ["oil"])
    assert out.rstrip().endswith("without competition; yes: documents with a probability of 0.5 or more.")
    assert "1 of 3 rows cannot be used and was left out: row 2 is empty or blank." in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--orders", "3", "--against", "setscore-mini"], "prints one table of its own; remove --against, --orders or"),
        (["--label-text", "name"], "wordings are descriptions, but --label-text is name. Make it both or description."),
        (["--wordings", "w.txt"], "a file of wordings ends in .yaml, .yml, .json; got w.txt."),
        (["--template", "expres"], "unknown template 'expres'. Did you mean 'express'?"),
    ],
)
def test_mistakes_with_wordings(folder, wordings, options, message):
    code, out, err = invoke("diagnose", "--file", "own.jsonl", *wordings, *options, folder=folder)
    assert (code, out) == (2, "")
    assert message in err


def test_diagnose_needs_documents(folder):
    code, _, err = invoke("diagnose", "--templates", "express", folder=folder)
    assert code == 2
    assert "no dataset was given" in err


def test_ceilings_of_shortlists_of_ones_own_are_what_the_theory_says(folder):
    code, out, err = invoke("shortlist", *OWN, "--candidates-column", "shortlist", folder=folder)
    assert code == 0, err
    # Of 5 gold labels 3 are kept: micro-recall 60, micro-F1 75; oil 2 of 2, sports 1 of 2, music 0 of 1.
    words = out.split()
    assert [words[words.index(name) + 1] for name in ("micro-recall", "micro-F1", "macro-F1")] == [
        "60.0",
        "75.0",
        "55.6",
    ]
    assert "by chance 66.7%" in out
    code, again, _ = invoke("shortlist", *OWN, "--candidates-column", "shortlist", "--json", "kept.json", folder=folder)
    assert (code, again) == (0, out)
    found = json.loads((folder / "kept.json").read_text())
    assert (found["format"], found["column"], found["documents"]) == ("setscore.shortlist/1", "shortlist", 4)
    assert (found["pooled"], found["micro_ceiling"]) == (pytest.approx(0.6), pytest.approx(0.75))
    assert found["per_label"] == {"oil": 1.0, "sports": 0.5, "music": 0.0}
    for options, message in (
        ((*OWN, "--candidates-column", "none"), "4 of 4 documents have no shortlist in 'none', the first is '1'. Name"),
        (("--candidates-column", "shortlist"), "documents with gold labels and shortlists are needed: --file FILE"),
        ((*OWN[:2], "-l", "oil", "--ignore-unknown", "--labels-column", "x", "--candidates-column", "y"), "x"),
    ):
        code, out, err = invoke("shortlist", *options, folder=folder)
        assert (code, out) == (2, "")
        assert message in err


def test_a_scorer_by_name_in_every_command(folder):
    code, out, _ = invoke("classify", ROWS[0][0], "--labels", "oil,sports", "--scorer", "unary", "--format", "jsonl")
    assert code == 0
    assert set(json.loads(out)["probabilities"]) == {"oil", "sports"}
    code, _, err = invoke("classify", "x", "--labels", "oil", "--scorer", "unari")
    assert code == 2
    assert "Did you mean 'unary'?" in err
    code, out, err = invoke("calibrate", *OWN, "--scorer", "milp", "--out", "saved.json", folder=folder)
    assert code == 0, err
    assert json.loads((folder / "saved.json").read_text())["learned"]["seen"]["documents"] == 4
    code, out, err = invoke("classify", ROWS[0][0], "--classifier", "saved.json", "--scorer", "bp", folder=folder)
    assert code == 2
    assert "remove --scorer" in err


def test_one_command_for_a_table_of_scorers(folder):
    options = ("--scorer", "per_label,unary,permutation?orders=2,bp", "--calibration", "temperature", "--seeds", "13")
    code, out, err = invoke("compare", *OWN, *options, folder=folder)
    assert code == 0, err
    assert "own.jsonl: scoring with permutation?orders=2; 4 documents" in err
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows if row and row[0] in ("per_label", "unary", "permutation?orders=2", "bp")] == [
        "per_label",
        "unary",
        "permutation?orders=2",
        "bp",
    ]
    code, _, err = invoke("compare", *OWN, *options[2:], "--scorer", "milp", "--json", "found.json", folder=folder)
    assert code == 0, err
    found = json.loads((folder / "found.json").read_text())
    assert found["format"] == "setscore.scorers/1"
    assert found["datasets"]["own.jsonl"]["milp"]["forwards"] == 1
    assert found["datasets"]["own.jsonl"]["milp"]["metrics"]["micro_f1"]["sd"] is None
    code, _, err = invoke("compare", *OWN, *options, "--against", "scores", folder=folder)
    assert code == 2
    assert "error: --against and --blend are for one scorer that learns nothing." in err
    code, _, err = invoke("evaluate", *OWN, "--scorer", "jsr", folder=folder)
    assert code == 2
    assert "jsr learns from each seed's validation documents: setscore compare --scorer jsr measures it." in err


def test_a_comparison_is_kept_in_a_store(folder):
    options = ("--scorer", "per_label,bp", "--calibration", "temperature", "--seeds", "13", "--save", "scores")
    first, again = (invoke("compare", *OWN, *options, folder=folder) for _ in range(2))
    assert (first[0], first[1]) == (0, again[1])
    assert "docs/s is left out with --save: answers that are stored cost no time." in first[1]


@pytest.mark.parametrize("command", [["classify", "Rain.", "--labels", "oil"], ["calibrate", *OWN]])
def test_one_scorer_where_there_is_no_table(folder, command):
    code, out, err = invoke(*command, "--scorer", "per_label,unary", folder=folder)
    assert (code, out) == (2, "")
    assert "setscore compare takes several" in err


@pytest.mark.parametrize("command", ["diagnose", "compare-attention"])
def test_blank_rows_of_a_file_without_gold_labels_are_named(tmp_path, command):
    (tmp_path / "texts.txt").write_text("Oil rose.\n\nA late goal.\nIt rained.\n\nThe end.\n")
    options = ["--file", "texts.txt", "--labels", "oil,sports", *(["--limit", "4"] if command == "diagnose" else [])]
    code, out, err = invoke(command, *options, folder=tmp_path)
    assert code == 0, err
    assert "4 documents, 2 labels" in out
    assert "2 of 6 rows cannot be used and were left out: row 2 is empty or blank; row 5 is empty or blank." in err


def test_a_column_of_labels_that_is_named_and_not_there_is_an_error(folder):
    code, _, err = invoke("diagnose", *OWN, "--labels-column", "gold", folder=folder)
    assert code == 2
    assert "line 1 of own.jsonl has no field gold; it has text, labels, shortlist" in err
