"""Inputs for batches, and commands in processes of their own that know the backbone `fake`."""

import contextlib
import csv
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from commands import ENVIRONMENT

from setscore.backbones import BACKBONES
from setscore.cli import main

TESTS = Path(__file__).parent
SITE = TESTS / "every_process"
sys.path.insert(0, str(SITE))

LABELS = ["oil", "sports", "music", "weather"]
WORDS = [*LABELS, "price", "match", "song", "rain"]
ASK = ("--labels", ",".join(LABELS), "--backbone", "fake")
NOBODY = 65534

_context = multiprocessing.get_context("forkserver")
# What takes seconds to load, and what nobody may not read where Python lies in a closed folder.
_context.set_forkserver_preload(["setscore.cli", "pyarrow.parquet", "pydantic.main", "zoneinfo"])


def text(number: int) -> str:
    return f"A note about {WORDS[number % 8]} and {WORDS[number % 3]}, number {number}."


def rows(count: int) -> list[tuple[str, str]]:
    return [(f"n{number}", text(number)) for number in range(count)]


def write_csv(path: Path, content) -> Path:
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        csv.writer(file).writerows([("id", "text"), *content])
    return path


class Command:
    """`setscore` in a process of its own, with its own signals, that has begun; whoever started it ends it."""

    def __init__(self, *arguments: Any, nobody: bool = False, **environment: str) -> None:
        self._said = Path(tempfile.mkstemp()[1])
        search = os.pathsep.join([str(SITE), str(TESTS)])  # for processes that it starts
        environment = {**ENVIRONMENT, "PYTHONPATH": search, **environment}
        self._process = _context.Process(target=_run, args=(list(map(str, arguments)), environment, self._said, nobody))
        self._process.start()
        self.pid = self._process.pid

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self, seconds: float = 120) -> tuple[int, str]:
        """The status, and what it said on standard error."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, "it did not end"
        said = self._said.read_text()
        self._said.unlink()
        assert "Traceback" not in said, said
        return self._process.exitcode, said

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        assert self.ended()[0] == -signal.SIGKILL, "it had ended before"


def _run(arguments: list[str], environment: dict[str, str], said: Path, nobody: bool) -> None:
    os.environ.clear()
    os.environ.update(environment)
    BACKBONES["fake"] = "fake_module"
    with said.open("wb") as file:
        os.dup2(file.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which the server of these processes ignores
    sys.argv = ["setscore", *arguments]
    if nobody and os.getuid() == 0:  # root may write everywhere
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    main()


def wait_until(happened, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


def parts(folder: Path) -> dict[str, bytes]:
    """The files of a batch, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def is_running(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False
