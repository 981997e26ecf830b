"""How results are laid out: JSON, JSONL, CSV, the table; raw probabilities, --top-k, --keep-columns and --output."""

import csv
import io
import json

import pytest
from commands import invoke

from setscore import SetScoreClassifier
from setscore.cli.writers import COMPETES

OIL, SPORTS = "Crude oil prices fell again.", "The striker scored twice in the cup final."
REFUND = "My parcel arrived broken and I would like my money back."
ROUNDED = 1e-6  # probabilities are written with six digits


def classify(*arguments, **options):
    return invoke("classify", *arguments, **options)


def test_json_has_the_keys_it_had_then_the_regime_and_raw_probabilities():
    code, out, err = classify(OIL, "-l", "oil,music", "--format", "json", "--with-text")
    (record,) = json.loads(out)
    assert (code, err) == (0, "")
    assert list(record) == ["id", "text", "labels", "probabilities", "regime", "raw"]
    (found,) = SetScoreClassifier(["oil", "music"]).classify([OIL])
    assert (record["id"], record["text"], record["labels"], record["regime"]) == ("1", OIL, ["oil"], "zero-shot")
    assert record["probabilities"] == pytest.approx(found.probabilities, abs=ROUNDED)
    assert record["raw"] == pytest.approx(found.raw, abs=ROUNDED)
    assert all(value == round(value, 6) for value in record["raw"].values())


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl"])
def test_the_ending_of_the_output_is_its_form(tmp_path, ending):
    asked = [OIL, "-l", "oil,music"]
    assert classify(*asked, "-o", f"out.{ending}", folder=tmp_path)[0] == 0
    assert (tmp_path / f"out.{ending}").read_text() == classify(*asked, "--format", ending)[1]
    assert classify(*asked, "-o", f"bars.{ending}", "--format", "table", folder=tmp_path)[0] == 0
    assert "████" in (tmp_path / f"bars.{ending}").read_text()


def test_without_competition_nothing_is_raw():
    code, out, _ = classify(REFUND, "-l", "refund,delivery", "--format", "jsonl", "--competition", "0")
    record = json.loads(out)
    assert (code, list(record)) == (0, ["id", "labels", "probabilities", "regime"])
    (found,) = SetScoreClassifier(["refund", "delivery"], competition=0).classify([REFUND])
    assert record["probabilities"] == pytest.approx(found.probabilities, abs=ROUNDED)
    (alone,) = SetScoreClassifier(["refund"], competition=0).classify([REFUND])
    assert record["probabilities"]["refund"] == pytest.approx(alone.probabilities["refund"], abs=1e-3)


def test_a_fitted_classifier_says_so_and_has_nothing_raw(tmp_path):
    texts, gold = [OIL, SPORTS, OIL, SPORTS], [["oil"], ["sports"], ["oil", "sports"], []]
    SetScoreClassifier(["oil", "sports"]).fit(texts, gold).save(tmp_path / "model.json")
    options = ("--classifier", tmp_path / "model.json", "--format")
    assert list(json.loads(classify(OIL, *options, "jsonl")[1])) == ["id", "labels", "probabilities", "regime"]
    assert json.loads(classify(OIL, *options, "jsonl")[1])["regime"] == "learned"
    assert classify(OIL, *options, "csv")[1].splitlines()[1].endswith(",learned")
    table = classify(OIL, *options, "table")[1]
    assert "(" not in table
    assert COMPETES not in table


def test_a_table_of_a_fitted_classifier_names_the_thresholds_that_ticks_follow(tmp_path):
    texts, gold = [OIL, SPORTS, REFUND, "Hello."], [["oil"], ["sports"], [], []]
    model = SetScoreClassifier(["oil", "sports"]).fit(texts, gold)
    model.save(tmp_path / "model.json")
    table = classify(OIL, "--classifier", tmp_path / "model.json")[1]
    cuts = dict(zip(model.classes_, model.calibration_.thresholds_, strict=True))
    if len(set(cuts.values())) == 1:
        told = f"✓: a probability of {cuts['oil']:.0%} or more."
    else:
        named = ", ".join(f"{name} {cut:.0%}" for name, cut in cuts.items())
        told = f"✓: a probability at or above the label's own threshold: {named}."
    assert table.splitlines()[-1] == told
    (found,) = model.classify([OIL])
    assert set(found.labels) == {name for name, value in found.probabilities.items() if value >= cuts[name]}
    assert "✓: " not in classify(OIL, "-l", "oil,sports")[1]


def test_a_given_threshold_is_the_one_that_is_named(tmp_path):
    model = SetScoreClassifier(["oil", "sports"]).fit([OIL, SPORTS, REFUND, "Hello."], [["oil"], ["sports"], [], []])
    model.save(tmp_path / "model.json")
    table = classify(OIL, "--classifier", tmp_path / "model.json", "--threshold", "0.3")[1]
    assert table.splitlines()[-1] == "✓: a probability of 30% or more."


def test_undecided_and_truncated_stand_where_they_stood(tmp_path):
    texts, gold = [OIL, SPORTS, OIL, SPORTS], [["oil"], ["sports"], ["oil", "sports"], []]
    model = SetScoreClassifier(["oil", "sports"], calibration="paper?margin=0.99", long_documents="truncate")
    model.fit(texts, gold).save(tmp_path / "model.json")
    options = ("--classifier", tmp_path / "model.json", "--format")
    record = json.loads(classify(f"{OIL} " * 200, *options, "jsonl")[1])
    assert list(record) == ["id", "labels", "probabilities", "undecided", "truncated", "regime"]
    assert (set(record["undecided"]), record["truncated"]) == ({"oil", "sports"}, True)
    header, row = csv.reader(io.StringIO(classify(OIL, *options, "csv")[1]))
    assert header == ["id", "labels", "undecided", "oil", "sports", "error", "regime"]
    assert set(row[2].split("|")) == {"oil", "sports"}
    assert all("?" in line for line in classify(OIL, *options, "table")[1].splitlines()[2:4])


def test_csv_reads_back(tmp_path):
    # A file's own candidates leave cells empty; names and ids with commas and quotes must survive.
    labels = ["oil", 'so-called "sports", and games']
    lines = [{"id": 'a,"1"', "text": OIL}, {"id": "b", "text": SPORTS, "candidates": labels[1:]}, {"id": "c"}]
    (tmp_path / "quoted.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "quoted.json").write_text(json.dumps(labels))
    code, out, err = classify(
        "-f", "quoted.jsonl", "-l", "quoted.json", "--format", "csv", "--with-text", folder=tmp_path
    )
    assert (code, err) == (1, "1 of 3 rows failed; the others were classified.\n")
    header, first, second, bad = csv.reader(io.StringIO(out))
    assert header == ["id", "text", "labels", *labels, "error", "regime"]
    assert first[:3] == ['a,"1"', OIL, "oil"]
    expected = SetScoreClassifier(labels).predict_proba([OIL])[0, 0]
    assert float(first[3]) == pytest.approx(expected, abs=ROUNDED)
    assert (second[0], second[3], second[5], second[6]) == ("b", "", "", "zero-shot")
    assert 0 <= float(second[4]) <= 1
    assert bad == ["c", "", "", "", "", "row 3 has no field 'text'; it has id", "zero-shot"]


@pytest.mark.parametrize("label", ["id", "labels", "error", "regime"])
def test_a_label_with_the_name_of_a_column_is_no_csv(label):
    code, out, err = classify(OIL, "-l", f"oil,{label}", "--format", "csv")
    assert (code, out) == (2, "")
    assert err == f"error: the label {label!r} has the name of another column of CSV; write --format jsonl.\n"
    assert classify(OIL, "-l", f"oil,{label}", "--format", "jsonl")[0] == 0


def test_table_shows_text_marks_and_brackets_as_they_are():
    text = "Crude [MASK] oil [bold]prices[/bold] fell."
    code, out, err = classify(text, "--labels", "oil,[red] wine")
    assert (code, err) == (0, "")
    lines = [line for line in out.splitlines() if line.strip()]
    assert lines[0] == f"1  {text}"
    assert "✓" in lines[1]
    assert lines[1].split()[-1] == "oil"
    assert "✓" not in lines[2]
    assert lines[2].rstrip().endswith("[red] wine")
    assert all(0 <= int(line.split("%")[0].split()[-1]) <= 100 for line in lines[1:3])


def test_the_table_shows_what_the_model_answered_where_competition_moved_it():
    labels = ["refund", "delivery", "praise"]
    mini = "setscore-mini"  # a likely label holds the others down, and the likeliest one is lifted
    (found,) = SetScoreClassifier(labels, backbone=mini).classify([REFUND])
    code, out, _ = classify(REFUND, "-l", ",".join(labels), "--backbone", mini)
    shown = {line.split()[-1]: line for line in out.splitlines() if "%" in line}
    moved = {name for name in labels if abs(found.raw[name] - found.probabilities[name]) >= 0.01}
    assert (code, {name for name in labels if "(" in shown[name]}) == (0, moved)
    assert moved >= {"refund", "delivery"}  # or nothing would be tested here
    assert f"({found.raw['refund']:.0%})" in shown["refund"]
    assert out.splitlines()[-1] == COMPETES
    plain = classify(REFUND, "-l", ",".join(labels), "--backbone", mini, "--competition", "0")[1]
    assert "(" not in plain
    assert len(plain.splitlines()) == len(out.splitlines()) - 2


def test_at_most_k_labels_are_shown_and_predicted():
    labels = "refund,delivery,praise"
    record = json.loads(classify(REFUND, "-l", labels, "--format", "jsonl", "--threshold", "0")[1])
    best = sorted(record["probabilities"], key=record["probabilities"].get, reverse=True)
    top = json.loads(classify(REFUND, "-l", labels, "--format", "jsonl", "--threshold", "0", "--top-k", "2")[1])
    assert (len(record["labels"]), top["labels"]) == (3, best[:2])
    assert top["probabilities"] == {name: p for name, p in record["probabilities"].items() if name in best[:2]}
    assert top["raw"] == {name: p for name, p in record["raw"].items() if name in best[:2]}
    header, row = csv.reader(io.StringIO(classify(REFUND, "-l", labels, "--format", "csv", "--top-k", "1")[1]))
    assert [name for name, cell in zip(header[2:5], row[2:5], strict=True) if cell] == best[:1]
    table = classify(REFUND, "-l", labels, "--top-k", "1")[1]
    assert [name for name in best if name in table] == best[:1]
    assert json.loads(classify(REFUND, "-l", labels, "--format", "jsonl", "--top-k", "9")[1])["raw"] == record["raw"]


ROWS = {
    "rows.csv": "number,text,region\n7,Crude oil prices fell again.,north\n8,,south\n",
    "rows.tsv": "number\ttext\tregion\n7\tCrude oil prices fell again.\tnorth\n8\t\tsouth\n",
    "rows.jsonl": '{"number": 7, "text": "Crude oil prices fell again.", "region": "north"}\n'
    '{"number": 8, "text": "", "region": "south"}\n',
}


@pytest.mark.parametrize("name", ROWS)
def test_columns_of_the_file_stand_before_ours(tmp_path, name):
    (tmp_path / name).write_text(ROWS[name])
    options = ("-f", name, "-l", "oil", "--id-column", "number", "--keep-columns")
    code, out, _ = classify(*options, "--format", "csv", folder=tmp_path)
    header, first, bad = csv.reader(io.StringIO(out))
    assert (code, header) == (1, ["number", "text", "region", "id", "labels", "oil", "error", "regime"])
    assert first[:5] == ["7", OIL, "north", "7", "oil"]
    assert bad[:4] + bad[6:7] == ["8", "", "south", "8", "row 2 is empty or blank"]
    code, out, _ = classify(*options, "--format", "jsonl", folder=tmp_path)
    first, bad = map(json.loads, out.splitlines())
    assert list(first) == ["number", "text", "region", "id", "labels", "probabilities", "regime", "raw"]
    assert list(bad) == ["number", "text", "region", "id", "error", "regime"]


def test_the_id_and_the_text_of_the_file_are_ours_too(tmp_path):
    (tmp_path / "rows.csv").write_text("text,id\nCrude oil prices fell again.,a\n")
    options = ("-f", "rows.csv", "-l", "oil", "--keep-columns", "--with-text", "--format")
    code, out, err = classify(*options, "csv", folder=tmp_path)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "text,id,labels,oil,error,regime"
    record = json.loads(classify(*options, "jsonl", folder=tmp_path)[1])
    assert list(record)[:3] == ["text", "id", "labels"]
    assert (record["text"], record["id"]) == (OIL, "a")


def test_lists_and_objects_of_the_file_are_json_in_csv(tmp_path):
    row = {"text": OIL, "tags": ["a", "b"], "price": 1.5, "none": None, "ok": True}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    _, out, _ = classify("-f", "rows.jsonl", "-l", "oil", "--keep-columns", "--format", "csv", folder=tmp_path)
    _, cells = csv.reader(io.StringIO(out))
    assert cells[1:5] == ['["a", "b"]', "1.5", "", "true"]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            [{"text": OIL, "labels": "oil"}],
            ["--format", "csv"],
            "the column 'labels' of the file has the name of one that is written. Rename it, or leave out"
            " --keep-columns.",
        ),
        (
            [{"text": OIL, "regime": "x"}],
            ["--format", "json"],
            "the column 'regime' of the file has the name of one that is written. Rename it, or leave out"
            " --keep-columns.",
        ),
        (
            [{"text": OIL, "oil": 1}],
            ["--format", "csv"],
            "the column 'oil' of the file has the name of one that is written. Rename it, or leave out --keep-columns.",
        ),
        (
            [{"body": OIL, "text": "another"}],
            ["--format", "jsonl", "--text-column", "body", "--with-text"],
            "the column 'text' of the file has the name of one that is written. Rename it, or leave out"
            " --keep-columns.",
        ),
        (
            [{"text": OIL}],
            ["--format", "table"],
            "a table has no room for --keep-columns; add --format csv, json or jsonl.",
        ),
    ],
)
def test_columns_that_cannot_be_kept(tmp_path, rows, options, message):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = classify("-f", "rows.jsonl", "-l", "oil", "--keep-columns", *options, folder=tmp_path)
    assert (code, out, err) == (2, "", f"error: {message}\n")


def test_a_column_that_comes_later_is_no_column_of_csv(tmp_path, monkeypatch):
    monkeypatch.setattr("setscore.cli.blocks.BLOCK_QUESTIONS", 1)
    (tmp_path / "rows.jsonl").write_text('{"text": "Oil."}\n{"text": "Oil.", "more": 1}\n')
    code, out, err = classify("-f", "rows.jsonl", "-l", "oil", "--keep-columns", "--format", "csv", folder=tmp_path)
    assert (code, len(out.splitlines())) == (2, 2)
    assert err == (
        "1 row written.\n"
        "error: the row '2' has the field 'more', which the first rows do not have, so that the CSV has no column for"
        " it. Write --format jsonl.\n"
    )


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_a_file_holds_what_standard_output_would(tmp_path, form):
    arguments = (OIL, SPORTS, "-l", "oil,sports", "--format", form)
    _, expected, _ = classify(*arguments)
    (tmp_path / "out").write_text("older and much longer than what comes now " * 100)
    code, out, err = classify(*arguments, "--output", "out", folder=tmp_path)
    assert (code, out, err) == (0, "", "2 rows written to out.\n")
    assert (tmp_path / "out").read_text() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "none.csv", "-l", "oil", "-o", "out"], "the file none.csv cannot be read: No such file or directory."),
        ([OIL, "-l", "oil", "-o", "out", "--backbone", "setscore-mini?dtype=fp32"], "setscore-mini is int8 on the CPU"),
        ([OIL, "-l", "oil,error", "-o", "out", "--format", "csv"], "the label 'error' has the name of another column"),
        ([OIL, "-l", "oil", "-o", "none/out"], "none/out cannot be written: No such file or directory."),
        ([OIL, "-l", "oil", "-o", "."], ". cannot be written: Is a directory."),
        (["-f", "in.txt", "-l", "oil", "-o", "in.txt"], "--output is the file that is read, in.txt. Name another one."),
    ],
)
def test_a_mistake_leaves_files_as_they_are(tmp_path, arguments, message):
    for name in ("in.txt", "out"):
        (tmp_path / name).write_text("before")
    code, out, err = classify(*arguments, folder=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"in.txt": "before", "out": "before"}
    (tmp_path / "out").unlink()
    classify(*arguments, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_what_was_written_before_an_error_stays_and_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr("setscore.cli.blocks.BLOCK_QUESTIONS", 1)
    (tmp_path / "rows.csv").write_text('text\nOil.\nTea.\n"never closed')
    code, _, err = classify("-f", "rows.csv", "-l", "oil", "--format", "json", "-o", "out.json", folder=tmp_path)
    assert (code, [record["id"] for record in json.loads((tmp_path / "out.json").read_text())]) == (2, ["1", "2"])
    assert err.startswith("2 rows written to out.json.\nerror: rows.csv: the CSV is broken after row 2")
