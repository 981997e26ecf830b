"""Blocks of `setscore classify`: rows come out every two seconds, whether the model is slow or whoever writes them."""

import importlib
import json
import select
import subprocess
import time

import pytest
from commands import COMMAND, ENVIRONMENT, invoke
from fakes import FakeBackbone

from setscore.cli import blocks as module
from setscore.datasets import text_rows

command = importlib.import_module("setscore.cli.classify")  # `setscore.cli.classify` is the command


@pytest.fixture
def clock(monkeypatch):
    """The time that `blocks` sees; add to it to let time go by."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(module, "monotonic", lambda: Clock.now)
    return Clock


def sizes(clock, rows, labels, seconds_a_row):
    """How many rows each block has if scoring a row takes so long."""
    found = []
    for block in module.blocks(rows, labels):
        found.append(len(block))
        clock.now += seconds_a_row * len(block)
    return found


@pytest.mark.parametrize(
    ("seconds_a_row", "expected"),
    [
        (0.0, [16, 32, 64, 128, 256, 256, 248]),  # it doubles until it is full: 8 labels, 2048 questions
        (0.01, [16, 32, 64, 128, 128, 128]),  # 1.28 s are near enough to two
        (0.5, [16, *[4] * 121]),  # the first is too much, the others take two seconds
        (9.0, [16, *[1] * 84]),  # never less than a document
    ],
)
def test_blocks_take_about_two_seconds(clock, seconds_a_row, expected):
    rows = list(text_rows(["Oil."] * sum(expected)))
    assert sizes(clock, rows, 8, seconds_a_row) == expected


def test_long_documents_fill_a_block(clock):
    rows = list(text_rows(["x" * length for length in (40_000, 10, 10, 5000, 9000, 20_000)]))
    assert sizes(clock, rows, 1, 0) == [1, 3, 1, 1]


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([0, 1, 3, 0], [3, 1]),  # a row that comes late ends the block
        ([9, 0, 0, 0], [4]),  # waiting for the first one does not count
        ([0, None, None, None, 0, 0], [1, 2]),  # nothing comes: after two seconds what is there goes
        ([0, None, 0, None, None, 0], [2, 1]),  # the first row is the one that has waited longest
    ],
)
def test_a_block_ends_two_seconds_after_its_first_row(clock, waits, expected):
    """None is a second in which no row came."""

    def rows():
        source = iter(text_rows(["Oil."] * len(waits)))
        for wait in waits:
            clock.now += 1.0 if wait is None else wait
            yield None if wait is None else next(source)

    assert sizes(clock, rows(), 1, 0) == expected


def test_awaited_rows_are_the_rows_and_their_error():
    rows = list(text_rows(["Oil."] * 100))

    def broken():
        yield from rows
        raise ValueError("the pipe is broken")

    found = []
    with pytest.raises(ValueError, match="the pipe is broken"):
        found.extend(module.awaited(broken()))
    assert [row for row in found if row is not None] == rows
    assert [row for row in module.awaited(rows) if row is not None] == rows
    assert [row for row in module.awaited(()) if row is not None] == []


def test_rows_are_read_as_they_are_needed(monkeypatch, tmp_path):
    """However long the input is, one block of it is in memory, and its answers are out before the next is read."""
    seen, write = [], command.Output.write

    def rows(*_, **__):
        for row in text_rows(f"Oil, part {number}." for number in range(1, 6)):
            seen.append(("read", row.number))
            yield row

    def written(self, found, lines):
        write(self, found, lines)
        seen.append(("written", self.rows))

    monkeypatch.setattr(command, "read_documents", rows)
    monkeypatch.setattr(command.Output, "write", written)
    monkeypatch.setattr(module, "BLOCK_QUESTIONS", 4)
    monkeypatch.setattr(module, "FIRST", 1.0)
    (tmp_path / "rows.txt").touch()
    assert invoke("classify", "-f", "rows.txt", "-l", "oil,tea", "--format", "jsonl", folder=tmp_path)[0] == 0
    one, two, three, four, five = (("read", number) for number in range(1, 6))
    assert seen == [one, two, ("written", 2), three, four, ("written", 4), five, ("written", 5)]


def test_a_slow_model_gives_rows_every_two_seconds(monkeypatch, tmp_path):
    """A tenth of the time, for a quick test: blocks of at most 0.2 seconds from a model that needs 0.01 a question."""

    class Slow(FakeBackbone):
        def log_odds(self, queries):
            time.sleep(0.01 * len(queries))
            return super().log_odds(queries)

    written, write = [], command.Output.write
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    monkeypatch.setattr("setscore.classifier.load_backbone", lambda *_, **__: Slow())
    monkeypatch.setattr(
        command.Output, "write", lambda self, *block: (write(self, *block), written.append(len(block[1])))
    )
    (tmp_path / "rows.txt").write_text("Oil.\n" * 60)
    arguments = ("-f", "rows.txt", "-l", "oil,tea,ore,tin", "--format", "jsonl")
    code, out, _ = invoke("classify", *arguments, folder=tmp_path)
    assert (code, len(out.splitlines())) == (0, 60)
    assert written[0] == 32  # nobody knows yet how slow it is
    assert max(written[1:]) <= 4  # 0.04 seconds a row


def test_a_writer_that_pauses_holds_nothing_back():
    """As in `tail -f notes.txt | setscore classify`: the answer is there while the pipe stays open."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    arguments = [COMMAND, "classify", "-l", "oil,tea", "--format", "jsonl"]
    with subprocess.Popen(arguments, env=ENVIRONMENT, **streams) as process:
        process.stdin.write(b"Crude oil fell.\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready, "no row came within a minute"
        assert json.loads(process.stdout.readline())["labels"] == ["oil"]
        assert process.poll() is None
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"", b"")
