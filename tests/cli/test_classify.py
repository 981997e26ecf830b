"""`setscore classify`: every way in, what is told about rows, saved classifiers, and the mistakes of a user.

How results are laid out stands in test_output.py, how a process ends in test_exits.py.
"""

import csv
import gzip
import io
import json

import numpy as np
import pytest
from commands import invoke

from setscore import SetScoreClassifier, __version__
from setscore.errors import BackboneError

OIL, SPORTS = "Crude oil prices fell again.", "The striker scored twice in the cup final."
LABELS = ["oil", "sports", "music"]
ROUNDED = 1e-6  # probabilities are written with six digits


def classify(*arguments, **options):
    return invoke("classify", *arguments, **options)


@pytest.fixture(scope="module")
def expected():
    """What Python answers for the two documents; the command decides nothing of its own."""
    return SetScoreClassifier(LABELS).predict_proba([OIL, SPORTS]).tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two documents and three labels in every format."""
    folder = tmp_path_factory.mktemp("files")
    files = {
        "documents.txt": f"{OIL}\n{SPORTS}\n",
        "documents.csv": f'id,text\na,"{OIL}"\nb,"{SPORTS}"\n',
        "documents.jsonl": json.dumps({"id": "a", "text": OIL}) + "\n" + json.dumps({"id": "b", "text": SPORTS}) + "\n",
        "labels.txt": "\n".join(LABELS),
        "labels.csv": "name\n" + "\n".join(LABELS),
        "labels.yaml": "".join(f"- {label}\n" for label in LABELS),
        "labels.json": json.dumps(LABELS),
        "long.txt": "Crude oil prices fell again. " * 200 + "\nshort\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def check_records(records, ids, expected):
    assert [record["id"] for record in records] == ids
    for record, row in zip(records, expected, strict=True):
        assert list(record["probabilities"]) == LABELS
        assert all(0 <= probability <= 1 for probability in record["probabilities"].values())
        assert list(record["probabilities"].values()) == pytest.approx(row, abs=ROUNDED)
        applies = {label for label, probability in record["probabilities"].items() if probability >= 0.5}
        assert set(record["labels"]) == applies
        ranks = [record["probabilities"][label] for label in record["labels"]]
        assert ranks == sorted(ranks, reverse=True)


@pytest.mark.parametrize(
    ("documents", "labels", "ids"),
    [
        ([OIL, SPORTS], ",".join(LABELS), ["1", "2"]),
        ([OIL, SPORTS], "labels.txt", ["1", "2"]),
        (["--file", "documents.txt"], "labels.csv", ["1", "2"]),
        (["--file", "documents.csv"], "labels.yaml", ["a", "b"]),
        (["-f", "documents.jsonl"], "labels.json", ["a", "b"]),
    ],
)
def test_every_way_in_gives_the_same_answers(folder, expected, documents, labels, ids):
    code, out, err = classify(*documents, "--labels", labels, "--format", "jsonl", folder=folder)
    assert (code, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    check_records(records, ids, expected)
    assert "oil" in records[0]["labels"]
    assert "sports" in records[1]["labels"]


@pytest.mark.parametrize("arguments", [[], ["--file", "-"]])
def test_standard_input_as_json(expected, arguments):
    code, out, err = classify(*arguments, "-l", ",".join(LABELS), "--format", "json", stdin=f"{OIL}\n{SPORTS}".encode())
    assert (code, err) == (0, "")
    check_records(json.loads(out), ["1", "2"], expected)


def test_options_reach_the_classifier():
    options = ["--template", "article-about", "--verbalizer", "true/false", "--attention", "exact", "--threshold", "0"]
    code, out, _ = classify(OIL, "-l", "oil,music", "--format", "jsonl", *options)
    record = json.loads(out)
    model = SetScoreClassifier(
        ["oil", "music"], template="article-about", verbalizer="true/false", attention="exact", threshold=0
    )
    assert code == 0
    assert sorted(record["labels"]) == ["music", "oil"]
    assert list(record["probabilities"].values()) == pytest.approx(model.predict_proba([OIL])[0].tolist(), abs=ROUNDED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([OIL], "error: no labels were given. Add --labels oil,sports or --labels FILE, or --classifier FILE."),
        ([OIL, "-l", "oil,,music"], "error: the name of label 1 is empty or blank. Labels count from 0."),
        ([OIL, "-l", "none.yaml"], "error: the label file none.yaml cannot be read: No such file or directory."),
        (
            [OIL, "-l", "oil", "--template", "expres"],
            "error: unknown template 'expres'. Did you mean 'express'? Known: ",
        ),
        # What looks like markup must neither vanish from the message nor break it.
        ([OIL, "-l", "oil", "--template", "[/b][red]x"], "error: unknown template '[/b][red]x'. Known: "),
        (
            [OIL, "-l", "oil", "--backbone", "setscore-mni"],
            "unknown backbone 'setscore-mni'. Did you mean 'setscore-mi",
        ),
        ([OIL, "-l", "oil", "--format", "jsn"], "error: unknown format 'jsn'. Did you mean 'json'? Known: csv, json, "),
        ([OIL, "-l", "oil", "--threshold", "1.5"], "error: a threshold lies between 0 and 1, got 1.5.\n"),
        ([OIL, "-l", "oil", "--threshold", "nan"], "error: a threshold lies between 0 and 1, got nan.\n"),
        (
            [OIL, "-l", "oil", "--competition", "2"],
            "error: competition lies between 0 (independent) and 1 (one label), ",
        ),
        ([OIL, "-l", "oil", "--top-k", "0"], "Invalid value for '--top-k'"),
        ([OIL, "-l", "oil", "--threshold", "high"], "'--threshold': Input should be a valid number, got 'high'. "),
        ([OIL, "-l", "oil", "--threshold", "0,4"], "Input should be a valid number, got '0,4'. Write 0.4."),
        ([OIL, "-l", "oil", "--competition", ",25"], "Input should be a valid number, got ',25'. Write 0.25."),
        ([OIL, "-l", "oil", "--threshold", "1,000"], "Input should be a valid number, got '1,000'. "),
        ([OIL, "-l", "oil", "--top-k", "2,5"], "Input should be a valid integer, got '2,5'. "),
        (
            [OIL, "-l", "oil", "--allow", "pickle"],
            "error: --allow is for --classifier; with --backbone write hf:<id>?allow=remote-code.\n",
        ),
        (
            [OIL, "-l", "oil", "--input-format", "cvs"],
            "error: unknown input format 'cvs'. Did you mean 'csv'? Known: csv, json, jsonl, parquet, tsv, txt, xlsx.",
        ),
        (["notes.csv", "-l", "oil"], "error: 'notes.csv' looks like a file; write --file notes.csv."),
        (["notes.jsonl.gz", "-l", "oil"], "error: 'notes.jsonl.gz' looks like a file; write --file notes.jsonl.gz."),
        ([OIL, "-l", "oil", "--file", "x.txt"], "error: give texts or --file, not both."),
        (["-f", "none.csv", "-l", "oil"], "error: the file none.csv cannot be read: No such file or directory."),
        (
            ["-l", "oil"],
            "error: there were no documents. Give texts, a --file with some, or lines to standard input.",
        ),
        ([OIL, "--classifier", "none.json"], "error: the file none.json cannot be read: No such file or directory."),
    ],
)
def test_mistakes_of_a_user(tmp_path, arguments, message):
    code, out, err = classify(*arguments, folder=tmp_path)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "post.csv"], "the file post.csv cannot be read: No such file or directory. Did you mean 'posts.csv'?"),
        (["-f", "empty.csv"], "empty.csv: the CSV is empty. Its first line must name the columns."),
        (["-f", "header.csv"], "header.csv holds no documents. Give a --file with at least one row."),
        (["-f", "blank.txt"], "blank.txt holds no documents. Give a --file with at least one row."),
        (
            ["-f", "posts.csv", "--text-column", "body"],
            "posts.csv: the CSV header has no column 'body'; it has ['text']. Name the column with the texts"
            " (--text-column).",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, arguments, message):
    files = {"posts.csv": "text\nOil.\n", "empty.csv": "", "header.csv": "text\n", "blank.txt": ""}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    code, out, err = classify("-l", "oil", *arguments, "--format", "csv", folder=tmp_path)
    assert (code, out, err) == (2, "", f"error: {message}\n")


def test_a_bad_row_fails_alone(tmp_path):
    lines = [
        json.dumps({"id": "a", "text": OIL}),
        "{broken",
        json.dumps({"id": "c", "text": " "}),
        json.dumps({"id": "\udcff", "text": SPORTS}),
        json.dumps({"id": "e", "text": SPORTS, "candidates": ["sport"]}),
        json.dumps({"id": "f", "text": SPORTS, "candidates": ["sports"]}),
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    code, out, err = classify("-f", "rows.jsonl", "-l", "oil,sports", "--format", "json", folder=tmp_path)
    assert code == 1
    assert err == "4 of 6 rows failed; the others were classified.\n"
    records = json.loads(out)
    assert [record["id"] for record in records] == ["a", "row 2", "c", "row 4", "e", "f"]
    assert records[0]["labels"] == ["oil"]
    assert list(records[5]["probabilities"]) == ["sports"]
    assert records[1]["error"].startswith("row 2 is not valid JSON (")
    assert records[2]["error"] == "row 3 is empty or blank"
    assert records[3]["error"].startswith("row 4 has an id that is not UTF-8 text (byte 0xFF")
    assert records[4]["error"] == "row 5 asks an unknown label 'sport'. Did you mean 'sports'? Known: oil, sports."


def test_repeated_ids_are_told_and_all_rows_are_kept(tmp_path):
    (tmp_path / "rows.csv").write_text("id,text\na,Oil.\n3,Rain.\n,Snow.\na,Music.\n")
    code, out, err = classify("-f", "rows.csv", "-l", "oil", "--format", "jsonl", folder=tmp_path)
    assert (code, [json.loads(line)["id"] for line in out.splitlines()]) == (0, ["a", "3", "row 3", "a"])
    assert err == (
        "1 row has no id, though others have; the number stands in, as in 'row 3'.\n"
        "1 of 4 rows repeats an id, the first is 'a' in rows 1 and 4; all rows are kept.\n"
    )


def test_an_id_column_that_is_named_must_be_there(folder):
    code, out, err = classify("-f", "documents.csv", "-l", "oil", "--id-column", "key", folder=folder)
    assert (code, out) == (2, "")
    message = "the CSV header has no column 'key'; it has ['id', 'text']. Name the column with the ids (--id-column)."
    assert err == f"error: documents.csv: {message}\n"
    code, out, _ = classify(
        "-f", "documents.jsonl", "-l", "oil", "--id-column", "key", "--format", "jsonl", folder=folder
    )
    assert (code, json.loads(out.splitlines()[0])["error"]) == (1, "row 1 has no field 'key'; it has id, text")


def test_bytes_that_are_no_text_fail_their_row_only():
    # Most desktops decode standard input strictly; that must not end the run.
    code, out, err = classify(
        "-l", "oil", "--format", "csv", stdin=b"\xef\xbb\xbffine\nbad \xff\nfine", PYTHONIOENCODING="utf-8:strict"
    )
    assert (code, err) == (1, "1 of 3 rows failed; the others were classified.\n")
    _, first, bad, last = csv.reader(io.StringIO(out))
    assert first[2] == last[2] != ""
    assert bad[:3] == ["2", "", ""]
    assert bad[3].startswith("row 2 is not UTF-8 text (byte 0xFF at character 4)")


def test_truncated_documents_are_counted_and_chunks_are_not_truncated(folder):
    options = ("--long-documents", "truncate", "--format", "jsonl")
    cut, _, err = classify("-f", "long.txt", "-l", "oil", *options, folder=folder)
    assert "1 of 2 documents was truncated: only the beginning was read. Use --long-documents chunk" in err
    whole, _, silence = classify("-f", "long.txt", "-l", "oil", "--long-documents", "chunk", folder=folder)
    assert (cut, whole, silence) == (0, 0, "")


def test_a_saved_classifier(tmp_path):
    model = SetScoreClassifier({"oil": "crude oil", "sports": "a sport"}, template="article-about")
    # The same texts with other labels: else the temperature goes to its bound and every probability is 0 or 1.
    gold = [["oil"], ["sports"], ["oil", "sports"], []]
    model.fit([OIL, SPORTS, OIL, SPORTS], gold).save(tmp_path / "model.json")
    code, out, err = classify(OIL, SPORTS, "--classifier", "model.json", "--format", "jsonl", folder=tmp_path)
    assert (code, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    probabilities = [list(record["probabilities"].values()) for record in records]
    np.testing.assert_allclose(probabilities, model.predict_proba([OIL, SPORTS]), atol=ROUNDED)
    assert 0.001 < probabilities[0][1] < 0.999
    assert [set(record["labels"]) for record in records] == model.predict_labels([OIL, SPORTS])


def test_help_shows_examples_and_every_option():
    code, out, _ = classify("--help")
    assert code == 0
    assert 'setscore classify "Crude prices fell again." --labels oil,sports,music' in out
    assert "cat notes.txt | setscore classify --labels labels.txt --format csv" in out
    for option in ("--labels", "--file", "--format", "--template", "--threshold", "--long-documents", "--classifier"):
        assert option in out


def test_models_and_version():
    code, out, _ = invoke("models")
    assert code == 0
    assert "setscore-mini" in out
    assert "embedded, English, no download" in out
    assert invoke("--version")[:2] == (0, f"setscore {__version__}\n")


def test_every_format_gives_the_same_answers(folder, expected):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"id": ["a", "b"], "text": [OIL, SPORTS], "region": ["north", "south"]})
    table.to_csv(folder / "all.tsv", sep="\t", index=False)
    table.to_parquet(folder / "all.parquet")
    table.to_excel(folder / "all.xlsx", index=False)
    table.to_json(folder / "all.json", orient="records")
    (folder / "all.csv.gz").write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    for name in ("all.tsv", "all.parquet", "all.xlsx", "all.json", "all.csv.gz"):
        options = ("-l", ",".join(LABELS), "--format", "jsonl", "--keep-columns")
        code, out, err = classify("-f", name, *options, folder=folder)
        assert (code, err) == (0, ""), name
        records = [json.loads(line) for line in out.splitlines()]
        check_records(records, ["a", "b"], expected)
        assert [list(record)[:4] for record in records] == [["id", "text", "region", "labels"]] * 2, name


def test_json_that_is_piped_in_is_no_text():
    content = json.dumps({"id": "a", "text": OIL}).encode()
    code, out, err = classify("-l", "oil", "--format", "jsonl", stdin=content)
    assert (code, out) == (2, "")
    assert err == (
        "error: the input looks like JSON. Say how it is laid out: --input-format jsonl (an object a line) or json (one"
        " list), or txt to take each line as it is.\n"
    )
    code, out, _ = classify("-l", "oil", "--format", "jsonl", "--with-text", "--input-format", "txt", stdin=content)
    assert (code, json.loads(out)["text"]) == (0, content.decode())


GERMAN = "Der Preis für Rohöl ist in der vergangenen Woche noch einmal gefallen, und das ist nicht das Ende."


@pytest.mark.parametrize("backbone", ["setscore-mini", "setscore-mini?prior=true"])
def test_documents_in_another_language_are_told_once_with_a_count(backbone):
    arguments = [OIL, GERMAN, SPORTS, GERMAN, "Tor!", "-l", "oil", "--format", "jsonl", "--backbone", backbone]
    code, out, err = classify(*arguments)
    assert (code, len(out.splitlines())) == (0, 5)
    assert err == (
        "2 of 5 documents are likely not in English, the only language that setscore-mini reads, so that their labels"
        " mean little; the first is row 2.\n"
    )


def test_the_language_is_no_matter_to_another_model(tmp_path):
    from setscore.backbones.mini import default_folder

    (tmp_path / "other").symlink_to(default_folder())
    assert classify(GERMAN, "-l", "oil", "--backbone", tmp_path / "other")[2] == ""


def test_consent_is_given_on_the_command_line_and_reaches_the_model(tmp_path, monkeypatch):
    SetScoreClassifier(["oil"]).save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    content["params"]["backbone"] = f"hf:{tmp_path}/none"
    (tmp_path / "model.json").write_text(json.dumps(content))
    seen = []

    def check(self):
        seen.append(self.backbone)
        raise BackboneError("not here.")

    monkeypatch.setattr(SetScoreClassifier, "check", check)
    options = ["--classifier", tmp_path / "model.json", "--allow", "remote-code", "--allow", "pickle"]
    assert classify(OIL, *options) == (2, "", "error: not here.\n")
    assert seen == [f"hf:{tmp_path}/none?allow=remote-code,pickle"]


def test_an_unknown_candidate_costs_a_look_up(tmp_path, monkeypatch):
    """200 rows and 5,000 labels took 94 seconds: each name was compared with all others."""
    from setscore import errors

    compared = []
    near = errors.difflib.get_close_matches
    monkeypatch.setattr(
        errors.difflib,
        "get_close_matches",
        lambda name, names, **options: compared.append(len(names)) or near(name, names, **options),
    )
    (tmp_path / "labels.txt").write_text("\n".join(f"topic {number}" for number in range(5000)))
    row = json.dumps({"text": OIL, "candidates": ["topik 17"]})
    (tmp_path / "rows.jsonl").write_text("\n".join([row] * 200))
    code, out, err = classify("-f", "rows.jsonl", "-l", "labels.txt", "--format", "jsonl", folder=tmp_path)
    assert (code, err) == (1, "200 of 200 rows failed.\n")
    assert json.loads(out.splitlines()[-1])["error"].startswith("row 200 asks an unknown label 'topik 17'.")
    assert sum(compared) <= 200 * 201


def test_standard_input_can_be_jsonl(folder):
    content = (folder / "documents.jsonl").read_bytes()
    code, out, _ = classify("-l", "oil", "--input-format", "jsonl", "--format", "jsonl", stdin=content)
    assert (code, [json.loads(line)["id"] for line in out.splitlines()]) == (0, ["a", "b"])


def test_a_saved_classifier_takes_no_other_settings(tmp_path):
    SetScoreClassifier(["oil"]).save(tmp_path / "model.json")
    options = ["--classifier", tmp_path / "model.json", "--label-text", "name", "--attention", "exact"]
    code, _, err = classify(OIL, *options)
    assert code == 2
    assert "a saved classifier has its own settings; remove --label-text, --attention or --classifier." in err


@pytest.mark.parametrize("command", ["classify", "batch", "suggest"])
def test_a_saved_classifier_takes_its_own_labels_again_and_no_others(tmp_path, command):
    """As `setscore evaluate` does: in any order, asked as they were saved."""
    SetScoreClassifier({"oil": "crude oil", "sports": None}).save(tmp_path / "model.json")
    (tmp_path / "t.txt").write_text(f"{OIL}\n{SPORTS}\n")
    (tmp_path / "other.yaml").write_text("sports:\noil: petrol\n")
    form = {
        "classify": ["--file", "t.txt", "--format", "csv"],
        "batch": ["t.txt", "OUT.csv"],
        "suggest": ["-f", "t.txt"],
    }
    found = {}
    for number, labels in enumerate((None, "sports,oil", "other.yaml")):
        given = [] if labels is None else ["--labels", labels]
        arguments = [one.replace("OUT", str(number)) for one in form[command]]
        code, out, err = invoke(command, *arguments, "--classifier", "model.json", *given, folder=tmp_path)
        assert code == 0, err
        written = tmp_path / f"{number}.csv"
        found[labels] = written.read_text() if written.exists() else out
        said = "descriptions are those of the saved classifier; given were others, of oil.\n"
        assert err.startswith(said) == (labels == "other.yaml")
    assert found[None] == found["sports,oil"] == found["other.yaml"]
    code, out, err = invoke(
        command, *form[command], "--classifier", "model.json", "--labels", "oil,tea", folder=tmp_path
    )
    assert (code, out) == (2, "")
    assert err == (
        "error: the saved classifier was made for other labels than these: only the classifier has sports; only"
        " --labels has tea. Use it with its own labels, fit another with `setscore calibrate`, or give it"
        " more labels in Python with `with_labels`.\n"
    )


def test_a_saved_classifier_takes_another_threshold(tmp_path):
    SetScoreClassifier(["oil"]).save(tmp_path / "model.json")
    options = ["--classifier", tmp_path / "model.json", "--format", "jsonl"]
    found = [json.loads(classify(OIL, *options, "--threshold", cut)[1])["labels"] for cut in ("0.01", "1")]
    assert found == [["oil"], []]


def test_a_row_without_a_number_for_an_answer_stops_no_other(monkeypatch):
    """A model that has no number for one document, wherever it stands in a block."""
    from setscore.backbones.mini import MiniBackbone
    from setscore.errors import ScoreError

    plain = MiniBackbone.log_odds

    def broken(self, queries):
        if any("sound" in query.document for query in queries):
            raise ScoreError("setscore-mini gave NaN or infinity for 1 queries, the first is number 0.", (0,))
        return plain(self, queries)

    monkeypatch.setattr(MiniBackbone, "log_odds", broken)
    code, out, err = classify(OIL, SPORTS, "A sound.", OIL, "-l", "oil,music", "--format", "json")
    assert (code, err) == (1, "1 of 4 rows failed; the others were classified.\n")
    records = json.loads(out)
    assert ["error" in record for record in records] == [False, False, True, False]
    assert records[2]["error"].startswith("row 3 could not be scored: setscore-mini gave NaN")
    monkeypatch.undo()
    expected = SetScoreClassifier(["oil", "music"]).predict_proba([OIL, SPORTS]).tolist()
    for record, row in zip((records[0], records[1], records[3]), [*expected, expected[0]], strict=True):
        assert list(record["probabilities"].values()) == pytest.approx(row, abs=1e-4)


def test_a_mistake_in_the_settings_writes_nothing():
    for option, wrong in (
        ("--blend", "owncosine"),
        ("--pool", "maximum"),
        ("--shortlist", "0"),
        ("--scorer", "jsr?seed=a"),
    ):
        code, out, err = classify(OIL, "-l", "oil", "--format", "csv", option, wrong)
        assert (code, out) == (2, "")
        assert err


def test_a_bar_in_a_name_is_told_where_bars_part_labels():
    code, _, err = classify("Oil rose.", "--labels", "oil|gas,tea", "--format", "csv")
    assert (code, "the label 'oil|gas' has | in its name" in err, "--format jsonl" in err) == (0, True, True)
    assert classify("Oil rose.", "--labels", "oil|gas,tea", "--format", "jsonl")[2] == ""


def test_labels_that_differ_in_capitals_alone_are_told_once_as_a_plain_line():
    code, out, err = classify("My bill is wrong.", "--labels", "billing, Billing", "--format", "jsonl")
    assert (code, list(json.loads(out)["probabilities"])) == (0, ["billing", "Billing"])
    assert err == (
        "the labels 'billing' and 'Billing' differ only in capitals or spaces, and are asked as two. If they are one,"
        " remove one of them.\n"
    )


def test_a_document_cannot_steer_the_terminal(tmp_path):
    """What a stranger wrote is shown as text: in the table, and where a message names it."""
    (tmp_path / "odd.jsonl").write_text(
        json.dumps({"id": "\x1b[2J", "text": "The parcel \x00\x07\x1b[31m is broken [bold]"})
        + "\n"
        + json.dumps({"id": "two", "text": "Oil.", "candidates": ["\x1b]0;x\x07"]})
        + "\n"
    )
    code, out, err = classify("--file", "odd.jsonl", "-l", "broken,oil", folder=tmp_path)
    assert code == 1
    assert not set(out + err) & set(map(chr, [*range(9), *range(11, 32), 127]))
    assert "\\x1b[2J  The parcel \\x00\\x07\\x1b[31m is broken [bold]" in out
