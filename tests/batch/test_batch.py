"""What a batch writes: a row for each row, in order, the same as the classifier says of it, in every format."""

import csv
import gzip
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from batches import ASK, LABELS, rows, text, write_csv
from commands import invoke
from fakes import FakeBackbone
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore import LabelSet, SetScoreClassifier
from setscore.batch import Layout, run_batch
from setscore.batch.folders import folder_at
from setscore.batch.inputs import find_input
from setscore.batch.plan import make_plan
from setscore.cli.batch import Watch
from setscore.errors import SetScoreError


@pytest.fixture
def model():
    return SetScoreClassifier(LABELS, backbone=FakeBackbone())


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_format_says_what_the_classifier_says(model, source, tmp_path):
    expected = list(model.classify([text for _, text in rows(300)]))
    for form in ("parquet", "jsonl", "csv"):
        summary = run_batch(model, str(source), str(tmp_path / f"out.{form}"), shard_rows=64)
        assert (summary.rows, summary.failed, summary.reused) == (300, 0, 0)
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    lines = read_jsonl(tmp_path / "out.jsonl")
    cells = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert len(table) == len(lines) == len(cells) == 300
    for number, prediction in enumerate(expected):
        wanted = [prediction.probabilities[label] for label in LABELS]
        name = f"n{number}"
        assert table[number]["id"] == lines[number]["id"] == cells[number]["id"] == name
        assert tuple(table[number]["labels"]) == tuple(lines[number]["labels"]) == prediction.labels
        assert cells[number]["labels"] == "|".join(prediction.labels)
        np.testing.assert_allclose(table[number]["probabilities"], wanted, rtol=1e-6)
        np.testing.assert_allclose(list(lines[number]["probabilities"].values()), wanted, atol=1e-6)
        np.testing.assert_allclose([float(cells[number][label]) for label in LABELS], wanted, atol=1e-6)
        assert table[number]["regime"] == prediction.regime == "zero-shot"
        assert (table[number]["truncated"], table[number]["error"]) == (False, None)
    assert len({row["identity"] for row in [*table, *lines, *cells]}) == 1


def test_log_odds_and_a_column_a_label(model, source, tmp_path):
    layout = Layout("parquet", "columns", log_odds=True)
    run_batch(model, str(source), str(tmp_path / "out.parquet"), layout=layout, limit=10)
    table = pq.read_table(tmp_path / "out.parquet")
    expected = model.classify([text for _, text in rows(10)])
    for place, label in enumerate(LABELS):
        np.testing.assert_allclose(table[label].to_numpy(), expected.probabilities[:, place], rtol=1e-6)
        np.testing.assert_allclose(table[f"log_odds {label}"].to_numpy(), expected.scores.log_odds[:, place], rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(count=st.integers(1, 40), shard_rows=st.integers(1, 50), limit=st.none() | st.integers(1, 50))
def test_rows_do_not_depend_on_how_they_are_cut(count, shard_rows, limit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    source = write_csv(folder / "in.csv", rows(count))
    model = SetScoreClassifier(LABELS, backbone=FakeBackbone())
    run_batch(model, str(source), str(folder / "whole.jsonl"), limit=limit)
    run_batch(model, str(source), str(folder / "cut.jsonl"), limit=limit, shard_rows=shard_rows)
    assert (folder / "cut.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert len(read_jsonl(folder / "cut.jsonl")) == min(count, limit or count)


def test_what_can_be_read(model, tmp_path, monkeypatch):
    """Files, compressed ones, folders, globs, addresses and standard input: the same rows."""
    content = rows(50)
    lines = "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in content).encode()
    below = tmp_path / "in"
    below.mkdir()
    (below / "a.jsonl").write_bytes(lines)
    (below / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    with pa.output_stream(below / "a.jsonl.zst", compression="zstd") as file:
        file.write(lines)
    table = pa.table({"id": [name for name, _ in content], "text": [text for _, text in content]})
    pq.write_table(table, below / "a.parquet", row_group_size=7)
    write_csv(below / "a.csv", content)
    (tmp_path / "parts").mkdir()
    for part in range(5):
        write_csv(tmp_path / "parts" / f"{part}.csv", content[10 * part : 10 * part + 10])
    (tmp_path / "parts" / "_SUCCESS").touch()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    sources = [*map(str, sorted(below.iterdir())), str(tmp_path / "parts"), str(tmp_path / "parts/*.csv"), "-"]
    sources += [f"file://{below}/a.parquet", f"file://{tmp_path}/parts", f"file://{tmp_path}/parts/[0-4].csv"]
    written = set()
    for number, source in enumerate(sources):
        out = tmp_path / f"{number}.jsonl"
        run_batch(model, source, str(out), shard_rows=16, input_format="jsonl" if source == "-" else None)
        written.add(out.read_bytes())
    assert len(written) == 1
    assert [row["id"] for row in read_jsonl(out)] == [name for name, _ in content]
    assert not list(tmp_path.glob("*.parts/_input*"))  # what standard input was kept in


def test_a_folder_at_an_address_and_one_here_hold_the_same(model, source, tmp_path):
    run_batch(model, str(source), str(tmp_path / "here"), shard_rows=64)
    run_batch(model, f"file://{source}", f"file://{tmp_path}/there", shard_rows=64)
    again = run_batch(model, f"file://{source}", f"file://{tmp_path}/there", shard_rows=64)
    assert again.reused == 300
    for part in sorted((tmp_path / "here").glob("part-*")):
        assert part.read_bytes() == (tmp_path / "there" / part.name).read_bytes()
    assert pq.read_table(tmp_path / "here").num_rows == 300  # what begins with _ is no data
    assert not (tmp_path / "there" / "_lock").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_stretches_are_read_from_anywhere(tmp_path, kind):
    """A reader that is asked for any stretch gives the rows that stand there."""
    from setscore.batch.inputs import Reader

    content = rows(60)
    for part in range(3):
        mine = content[20 * part : 20 * part + 20]
        if kind == "csv":
            write_csv(tmp_path / f"{part}.csv", mine)
        else:
            table = pa.table({"id": [name for name, _ in mine], "text": [text for _, text in mine]})
            pq.write_table(table, tmp_path / f"{part}.parquet", row_group_size=6)
    found = find_input(str(tmp_path), folder_at(str(tmp_path)))
    counted = make_plan(found, 7).source
    assert counted.counts == (20, 20, 20)
    reader = Reader(counted)
    for first, stop in [(0, 7), (7, 14), (35, 42), (21, 22), (56, 60), (0, 60), (19, 21)]:
        read = list(reader.between(first, stop))
        assert [row.id for _, row in read] == [name for name, _ in content[first:stop]]
        assert [row.number for _, row in read] == [place % 20 + 1 for place in range(first, stop)]


def test_a_sample_is_a_share_of_the_rows_and_the_same_every_time(model, source, tmp_path):
    for name in ("one", "two"):
        run_batch(model, str(source), str(tmp_path / f"{name}.jsonl"), sample=0.2, seed=3, shard_rows=16)
    run_batch(model, str(source), str(tmp_path / "other.jsonl"), sample=0.2, seed=4)
    one, two, other = (read_jsonl(tmp_path / f"{name}.jsonl") for name in ("one", "two", "other"))
    assert one == two
    assert 30 < len(one) < 90
    assert {row["id"] for row in one} != {row["id"] for row in other}
    numbers = [int(row["id"][1:]) for row in one]
    assert numbers == sorted(numbers)
    with pytest.raises(SetScoreError, match=r"a sample is a share of the rows above 0 and up to 1, got 20\."):
        run_batch(model, str(source), str(tmp_path / "no.jsonl"), sample=20)


BAD = [
    ("a", text(1)),
    ("b", "not \udcff UTF-8"),
    ("c", ""),
    ("d", "with a NUL \x00 in it, about oil"),
    ("e", "POISON for the model"),
    ("", "no id, about music"),
    ("a", "the id of another, about rain"),
]


def test_bad_rows_are_rows_with_an_error(tmp_path):
    source = write_csv(tmp_path / "in.csv", BAD)
    code, out, err = invoke("batch", source, tmp_path / "out.jsonl", *ASK)
    assert code == 1
    assert out == ""
    found = read_jsonl(tmp_path / "out.jsonl")
    assert [row["id"] for row in found] == ["a", "b", "c", "d", "e", "row 6", "a"]
    assert [row["error"] for row in found] == [
        None,
        "row 2 is not UTF-8 text (byte 0xFF at character 4); save the source as UTF-8",
        "row 3 is empty or blank",
        None,
        "row 5 could not be scored: RuntimeError: the model broke",
        None,
        None,
    ]
    assert "3 of 7 rows failed; each says why in error." in err
    assert "1 row has no id, though others have; the number of the row stands in." in err
    assert "1 of 7 rows repeats an id, the first are rows 1 and 7; all rows are kept." in err


def test_lone_surrogates_are_an_error_of_their_row(tmp_path):
    (tmp_path / "in.jsonl").write_text(
        '{"text": "fine, oil"}\n{"text": "\\ud800 alone"}\n{"id": "\\udfff", "text": "x"}\n'
    )
    code, _, _ = invoke("batch", tmp_path / "in.jsonl", tmp_path / "out.parquet", *ASK)
    assert code == 1
    errors = pq.read_table(tmp_path / "out.parquet")["error"].to_pylist()
    assert errors[0] is None
    assert "lone surrogate (U+D800)" in errors[1]
    assert "has an id that holds a lone surrogate" in errors[2]


def test_a_model_that_breaks_on_everything_stops_the_batch(tmp_path):
    class Broken(FakeBackbone):
        def log_odds(self, queries):
            raise RuntimeError("no device")

    source = write_csv(tmp_path / "in.csv", rows(20))
    with pytest.raises(RuntimeError, match="no device"):
        run_batch(SetScoreClassifier(LABELS, backbone=Broken()), str(source), str(tmp_path / "out.jsonl"))


def test_a_document_of_50_megabytes(tmp_path):
    long = "word " * 10_000_000 + "about oil"
    source = write_csv(tmp_path / "in.csv", [("short", text(0)), ("long", long), ("last", text(1))])
    code, _, err = invoke("batch", source, tmp_path / "out.jsonl", "--labels", "oil", "--long-documents", "truncate")
    assert code == 0, err
    assert [(row["id"], row["truncated"]) for row in read_jsonl(tmp_path / "out.jsonl")] == [
        ("short", False),
        ("long", True),
        ("last", False),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--text-column", "body"), "the CSV header has no column 'body'; it has ['id', 'text']. Name the column with"),
        (("--format", "csv"), "out.jsonl ends in .jsonl, but the format is csv. Change one of them."),
        (("--engine", "rey"), "unknown engine 'rey'. Did you mean 'ray'?"),
        (("--gpus", "1"), "--address and --gpus are for Ray; add --engine ray."),
        (("--labels", "oil,id", "--probabilities", "columns"), "the label 'id' has the name of another column."),
        (("--probabilities", "many"), "probabilities are written as list or columns, got 'many'."),
    ],
)
def test_mistakes_are_told_before_anything_is_written(source, tmp_path, options, message):
    code, out, err = invoke("batch", source, tmp_path / "out.jsonl", *ASK, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("by", [None, "both", "description", "name"])
def test_labels_are_asked_by_name_and_description_or_as_one_says(source, tmp_path, by):
    (tmp_path / "labels.yaml").write_text("oil: crude and fuel\nmusic: songs\n", encoding="utf-8")
    chosen = () if by is None else ("--label-text", by)
    options = ("--labels", tmp_path / "labels.yaml", "--backbone", "fake", "--limit", 20, *chosen)
    code, _, err = invoke("batch", source, tmp_path / "out.jsonl", *options)
    assert code == 0, err
    labels = LabelSet.of({"oil": "crude and fuel", "music": "songs"}).asked_by(by or "both")
    model = SetScoreClassifier(labels, backbone=FakeBackbone())
    found = model.classify([text for _, text in rows(20)])
    written = [row["probabilities"] for row in read_jsonl(tmp_path / "out.jsonl")]
    assert written == [{name: round(p, 6) for name, p in one.probabilities.items()} for one in found]


def test_places_that_would_lose_something(source, tmp_path):
    code, _, err = invoke("batch", source, source, *ASK)
    assert code == 2
    assert "is read, and would be written as a part of" in err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    code, _, err = invoke("batch", source, tmp_path / "full", *ASK)
    assert code == 2
    assert "holds files that no batch wrote: 'mine.txt'. Give a folder of its own." in err
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"


def test_the_embedded_model_and_a_saved_classifier(tmp_path):
    """The whole way, with real weights: a classifier that was fitted, batched as it classifies."""
    texts = [text(number) for number in range(24)]
    model = SetScoreClassifier(LABELS).fit(texts, [[LABELS[number % 4]] for number in range(24)])
    model.save(tmp_path / "classifier.json")
    source = write_csv(tmp_path / "in.csv", rows(24))
    options = ("--classifier", tmp_path / "classifier.json", "--log-odds", "--store", tmp_path / "store")
    code, _, err = invoke("batch", source, tmp_path / "out.parquet", *options)
    assert code == 0, err
    found, expected = pq.read_table(tmp_path / "out.parquet"), model.classify(texts)
    np.testing.assert_allclose(np.array(found["log_odds"].to_pylist()), expected.scores.log_odds, atol=1e-4)
    assert [tuple(names) for names in found["labels"].to_pylist()] == [one.labels for one in expected]
    assert set(found["regime"].to_pylist()) == {model.regime}
    assert (tmp_path / "store" / "scores.sqlite").exists()


def test_how_far_it_is_without_a_terminal(monkeypatch, capfd):
    """A line a minute, with rate and time left."""
    module = sys.modules[Watch.__module__]
    monkeypatch.setattr(module, "monotonic", iter([0.0, 0.0, 30.0, 60.0, 70.0]).__next__)
    with Watch() as watch:
        watch("reading", 0, 0)
        watch("scoring", 100, 2300)  # they were there before
        for done in (400, 700, 800):
            watch("scoring", done, 2300)
    said = capfd.readouterr().err.splitlines()
    assert said == ["scoring: 700 rows of 2,300, about 3 minutes left; 10 rows a second"]
