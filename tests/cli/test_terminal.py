"""Results at a terminal: where standard error is one, and where standard output is one too.

A progress bar is drawn there alone. It once swallowed what commands wrote to standard output.
"""

import json
import re

import pytest
from commands import at_terminal, invoke, screen

ROWS = [("Crude oil prices fell again.", "oil"), ("The striker scored twice.", "sports"), ("It rained all week.", "")]
WIDE = {"COLUMNS": "200"}
FILE = ("--file", "rows.csv", "--labels", "oil,sports")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small labelled file, and scores that were saved with two questions."""
    folder = tmp_path_factory.mktemp("terminal")
    lines = [f"{text},{label}" for text, label in ROWS for _ in range(4)]
    (folder / "rows.csv").write_text("\n".join(["text,labels", *lines]) + "\n")
    for name, template in (("one", "express"), ("two", "article-about")):
        code, _, err = invoke("evaluate", *FILE, "--template", template, "--save", name, folder=folder)
        assert code == 0, err
    return folder


CLASSIFY = ("classify", "Crude oil prices fell again.", "It rained all week.", "-l", "oil,weather", "--format")
COMMANDS = [
    (*CLASSIFY, "csv"),
    (*CLASSIFY, "json"),
    (*CLASSIFY, "jsonl"),
    (*CLASSIFY, "table"),
    ("calibrate", *FILE),
    ("evaluate", *FILE, "--no-yardsticks", "--calibration", "paper"),
    ("headroom", "--scores", "one"),
    ("ensemble", "a=one", "b=two"),
    ("shortlist", *FILE, "--k", "1", "--encoder", "setscore-mini"),
    ("diagnose", *FILE, "--limit", "4", "--orders", "2", "--templates", ""),
    ("models",),
    ("models", "--check", "setscore-mini"),
    ("datasets",),
    ("datasets", "reuters"),
]
BOTH = [COMMANDS[0], COMMANDS[1], COMMANDS[3], COMMANDS[4]]


def name(command):
    return " ".join(part for part in command if len(part) < 20)


def steady(text):
    """Without what differs from run to run."""
    return re.sub(r"\d+ MB at most|\d+(\.\d+)? s\b", "#", text)


@pytest.mark.parametrize("command", COMMANDS, ids=name)
def test_standard_output_gets_everything_while_standard_error_is_a_terminal(folder, tmp_path, command):
    code, expected, _ = invoke(*command, folder=folder)
    assert (code, bool(expected.strip())) == (0, True)
    code, shown = at_terminal(*command, out=tmp_path / "out", folder=folder, **WIDE)
    assert (code, steady((tmp_path / "out").read_text())) == (0, steady(expected))
    assert not any("━" in line for line in shown), "the bar is gone when done"


@pytest.mark.parametrize("command", BOTH, ids=name)
def test_a_terminal_shows_every_line_of_the_results(folder, command):
    _, expected, _ = invoke(*command, folder=folder)
    code, shown = at_terminal(*command, folder=folder, columns=200)
    wanted = [line.rstrip() for line in steady(expected).splitlines() if line.strip()]
    assert code == 0
    assert [line for line in map(steady, shown) if line in wanted] == wanted
    assert not any("━" in line for line in shown), "the bar is gone when done"


def test_many_blocks_at_a_terminal_come_in_order_and_whole(folder):
    (folder / "many.txt").write_text("".join(f"Oil, part {number}.\n" for number in range(60)))
    code, shown = at_terminal("classify", "-f", "many.txt", "-l", "oil,tea", "--format", "jsonl", folder=folder)
    assert code == 0
    records = "".join(shown).replace("}{", "}\n{")  # lines are longer than the screen is wide
    assert [json.loads(line)["id"] for line in records.splitlines()] == [str(number) for number in range(1, 61)]


@pytest.mark.parametrize("command", [("models",), ("datasets",)], ids=name)
def test_lists_fit_a_small_terminal(folder, command):
    code, shown = at_terminal(*command, folder=folder, columns=80)
    assert code == 0
    assert max(map(len, shown)) <= 80
    assert shown[0].split()[0] == "name"
    names = [line.split()[0] for line in shown[1:] if line and not line.startswith(" ")]
    assert len(set(names)) == len(names)
    assert {"setscore-mini", "goemotions"} & set(names)


@pytest.mark.parametrize(
    ("sent", "lines"),
    [
        ("one\r\ntwo\r\n", ["one", "two", ""]),
        ("bar 1\rbar 2", ["bar 2"]),
        ("bar\r\x1b[2Kresult\r\n", ["result", ""]),
        ("\x1b[1mbold\x1b[0m\r\nbar\r\x1b[1A\x1b[2Kgone", ["gone", "bar"]),
    ],
)
def test_the_screen_of_these_tests_is_one(sent, lines):
    assert screen(sent) == lines
