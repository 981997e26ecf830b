"""What an estimate says is what a batch then does."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from batches import ASK, LABELS, rows, write_csv
from commands import invoke
from fakes import FakeBackbone, PlantedBackbone

from setscore import SetScoreClassifier
from setscore.batch import run_batch
from setscore.batch.estimating import GPU_MEMORY, GPUS, Drawn, costs, draw, measure, on_gpu, work
from setscore.batch.folders import folder_at
from setscore.batch.inputs import Input, find_input
from setscore.errors import SetScoreError

PAGE = Path(__file__).parents[2] / "docs" / "results" / "gpu.md"


def found(path: Path, **chosen) -> Input:
    return find_input(str(path), folder_at(str(path.parent)), **chosen)


@pytest.mark.parametrize("attention", ["shared", "exact"])
@pytest.mark.parametrize("limit", [None, 40])
def test_rows_and_forwards_are_those_of_the_batch(source, tmp_path, attention, limit):
    model = SetScoreClassifier(LABELS, backbone=FakeBackbone(attention))
    estimated = work(model, draw(found(source, limit=limit)))
    done = run_batch(model, str(source), str(tmp_path / "out.jsonl"), limit=limit)
    assert (estimated.rows, estimated.forwards) == (done.rows, done.forwards)
    assert estimated.attention == attention


@pytest.fixture
def long(tmp_path):
    sentence = "All who were asked came to the hall on time and stayed until the very last of them had spoken. "
    lines = [json.dumps({"text": f"Meeting {n}. " + sentence * (n % 9)}) for n in range(30)]
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(lines))
    return path


def reading(mode: str, attention: str, doubted=None, **options) -> SetScoreClassifier:
    """Labels are in doubt at random, or those of `doubted` alone."""
    backbone = PlantedBackbone(attention=attention)
    if doubted is not None:
        backbone.affinity = lambda _, label: 0.0 if label in doubted else 5.0
    return SetScoreClassifier(LABELS, backbone=backbone, long_documents=mode, **options)


@pytest.mark.parametrize("attention", ["shared", "exact"])
def test_passages_of_labels_in_doubt_are_counted(long, tmp_path, attention):
    model = reading("passages", attention)
    plain, read = (work(reading(mode, attention), draw(found(long))) for mode in ("auto", "passages"))
    done = run_batch(model, str(long), str(tmp_path / "out.jsonl"))
    assert read.forwards == done.forwards > plain.forwards
    assert read.document_tokens == plain.document_tokens
    assert read.tokens > plain.tokens
    none, most = (work(reading("passages", attention, doubted), draw(found(long))) for doubted in ((), LABELS))
    assert none == plain
    assert (most.forwards, most.tokens) > (read.forwards, read.tokens)


def test_where_documents_are_read_once_questions_of_labels_in_doubt_are_counted(long):
    drawn = draw(found(long))
    plain, read, most = (work(reading("passages", "shared", doubted), drawn) for doubted in ((), LABELS[:1], LABELS))
    assert read.forwards == most.forwards  # each passage is read once, for one label or for all
    parts, questions = most.forwards - plain.forwards, plain.question_tokens
    assert most.tokens - read.tokens == pytest.approx(parts * questions * (1 - 1 / len(LABELS)), abs=1)


def test_a_look_at_what_is_in_doubt_neither_stores_nor_mixes(long, tmp_path):
    options = {"store": tmp_path / "store", "blend": "cosine"}
    assert work(reading("passages", "shared", **options), draw(found(long))) == work(
        reading("passages", "shared"), draw(found(long))
    )
    assert not (tmp_path / "store").exists()


def test_passages_for_a_model_that_is_not_loaded(long):
    plain, read = (
        work(SetScoreClassifier(LABELS, backbone="llada-8b-instruct", long_documents=mode), draw(found(long)))
        for mode in ("auto", "passages")
    )
    assert plain.forwards < read.forwards < 2 * plain.forwards


def test_tokens_are_those_that_the_model_computes(tmp_path):
    """m(D + Q) tokens where each question reads the document, D + mQ where it is read once."""
    source = write_csv(tmp_path / "in.csv", [("a", "one two three four"), ("b", "five six"), ("c", "")])
    drawn = draw(found(source))
    assert (drawn.rows, drawn.failed, drawn.characters) == (3, 1, 26)
    shared, exact = (work(SetScoreClassifier(LABELS, backbone=FakeBackbone(way)), drawn) for way in ("shared", "exact"))
    assert shared.document_tokens == exact.document_tokens == 3
    each = shared.question_tokens
    assert (shared.tokens, exact.tokens) == (2 * (3 + each), 2 * (4 * 3 + each))


def test_texts_are_drawn_evenly(tmp_path, monkeypatch):
    """Whatever the order of the file, the mean length of what is drawn is that of all."""
    monkeypatch.setattr("setscore.batch.estimating.DRAWN", 200)
    source = write_csv(tmp_path / "in.csv", [(number, "word " * (1 + number // 200)) for number in range(4000)])
    drawn = draw(found(source))
    assert len(drawn.texts) == 200
    assert np.mean([text.count("word") for text in drawn.texts]) == pytest.approx(10.5, abs=1.5)


def test_time_is_measured():
    class Slow(FakeBackbone):
        def log_odds(self, queries):
            time.sleep(0.001 * len(queries))
            return super().log_odds(queries)

    drawn = Drawn(rows=10_100, failed=100, characters=0, texts=tuple(text for _, text in rows(200)))
    machine = measure(SetScoreClassifier(["oil"], backbone=Slow()), drawn, seconds=0.4)
    assert 10 < machine.seconds < 30  # 10,000 documents of a millisecond and a little more each
    assert machine.low <= machine.seconds <= machine.high
    assert machine.memory > 50e6
    assert costs(machine, [1, 10], 3.6) == [
        (1, machine.seconds, pytest.approx(machine.seconds / 1000)),
        (10, machine.seconds / 10, pytest.approx(machine.seconds / 1000)),
    ]


def test_the_table_of_gpus_is_that_of_the_page():
    lines = [line.split(" | ") for line in PAGE.read_text().splitlines() if re.match(r"\| \S+ \| \d+, \d+ \|", line)]
    assert len(lines) > 20
    for shape, ways in GPUS["h200"].items():
        mine = [cells for cells in lines if cells[0] == f"| {shape}"]
        for way, least in ways.items():
            assert least == min(float(cells[5]) for cells in mine if cells[2] == way)
        assert GPU_MEMORY[shape] == max(float(cells[8]) for cells in mine if cells[2] != "naive")


def test_on_a_gpu_nothing_is_run(source):
    model = SetScoreClassifier(LABELS, backbone="llada-8b-instruct")
    estimated = work(model, draw(found(source)))
    machine = on_gpu(model, estimated, "h200")
    assert machine.seconds == pytest.approx(estimated.tokens / 43_338)
    with pytest.raises(SetScoreError, match=r"unknown GPU 'h20'. Did you mean 'h200'\?"):
        on_gpu(model, estimated, "h20")
    with pytest.raises(SetScoreError, match="setscore-small was not measured on a GPU; the table has llada-8b-base"):
        on_gpu(SetScoreClassifier(LABELS), estimated, "h200")


def test_the_command(source):
    code, out, err = invoke("estimate", source, *ASK, "--seconds", "0.2", "--machines", "1,3", "--price", "2")
    assert code == 0, err
    said = out.splitlines()
    assert re.match(r"rows +300", said[0])
    assert re.match(r"forwards +300 +shared attention", said[3])
    between = r"(\d+\.\d \w+ to \d+\.\d \w+; )?"
    assert re.match(rf"time +\d+\.\d \w+ +this machine, .*; {between}from \d+ documents, as busy as it is now", said[5])
    assert [line.split()[0] for line in said[-3:]] == ["machines", "1", "3"]
    code, _, err = invoke("estimate", source, *ASK, "--machines", "0")
    assert (code, "--machines are whole numbers from 1" in err) == (2, True)
    code, _, err = invoke("estimate", "-", *ASK)
    assert (code, "give a file, not -" in err) == (2, True)
