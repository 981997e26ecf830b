"""Inputs for batches, and processes that know the backbone `fake`."""

import csv
import os
import subprocess
import sys
from pathlib import Path

from commands import COMMAND, ENVIRONMENT

from setscore.backbones import BACKBONES

TESTS = Path(__file__).parent
SITE = TESTS / "every_process"
sys.path.insert(0, str(SITE))
BACKBONES["fake"] = "fake_module"

LABELS = ["oil", "sports", "music", "weather"]
WORDS = [*LABELS, "price", "match", "song", "rain"]
ASK = ("--labels", ",".join(LABELS), "--backbone", "fake")


def text(number: int) -> str:
    return f"A note about {WORDS[number % 8]} and {WORDS[number % 3]}, number {number}."


def rows(count: int) -> list[tuple[str, str]]:
    return [(f"n{number}", text(number)) for number in range(count)]


def write_csv(path: Path, content) -> Path:
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        csv.writer(file).writerows([("id", "text"), *content])
    return path


def started(*arguments, **environment: str):
    """A process of its own that has begun; whoever started it ends it."""
    search = os.pathsep.join([str(SITE), str(TESTS)])
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        env=ENVIRONMENT | {"PYTHONPATH": search} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def process(*arguments, **environment: str):
    """The status and what it said of one that has ended."""
    done = started(*arguments, **environment)
    out, err = done.communicate(timeout=120)
    assert b"Traceback" not in err, err.decode()
    return done.returncode, out.decode(), err.decode()
