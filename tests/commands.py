"""Runs `setscore` as a user does. Messages and options are tested in this process, with `invoke`: the same `main`, half
a second quicker. What is about the process itself, such as signals, pipes and terminals, has one of its own."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import warnings
from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

from setscore.cli import main
from setscore.cli.console import errors, results

COMMAND = Path(sys.executable).parent / "setscore"
# A wide screen without colours wherever the tests run, so that messages are not wrapped or cut up by escape codes.
PLAIN = {"COLUMNS": "200", "NO_COLOR": "1", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"} | PLAIN


def setscore(*arguments, stdin: bytes = b"", folder: Path | None = None, **environment: str):
    """A process of its own. No mistake of a user may ever show a traceback, so that is checked here once for all."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], input=stdin, capture_output=True, cwd=folder, env=ENVIRONMENT | environment
    )
    return checked(done.returncode, done.stdout, done.stderr)


def shell(line: str, folder: Path | None = None, **environment: str):
    """A line of bash in which `setscore` is ours, for redirections and pipes; the status is that of `setscore`."""
    search = os.pathsep.join([str(COMMAND.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, cwd=folder, env=ENVIRONMENT | {"PATH": search} | environment
    )
    return checked(done.returncode, done.stdout, done.stderr)


def invoke(*arguments, stdin: bytes = b"", folder: Path | None = None, **environment: str):
    """The same in this process."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())  # which ones are told, and how, is the command's business
        stack.enter_context(contextlib.chdir(folder or "."))
        stack.enter_context(mock.patch.object(sys, "argv", ["setscore", *map(str, arguments)]))
        for console in (results, errors):
            stack.enter_context(mock.patch.object(console, "_width", int((PLAIN | environment)["COLUMNS"])))
        out, err, _ = stack.enter_context(CliRunner().isolation(input=stdin, env=PLAIN | environment))
        try:
            main()
            code = 0
        except SystemExit as done:
            code = done.code or 0
        out, err = out.getvalue(), err.getvalue()
    return checked(code, out, err)


def checked(code: int, out: bytes, err: bytes):
    told = err.decode()
    assert "Traceback" not in told, told
    return code, out.decode(), told


def at_terminal(*arguments, out: Path | None = None, folder: Path | None = None, columns: int = 100, **environment):
    """A process whose standard error is a terminal; its standard output is the file `out`, or the terminal as well.

    Returns the status, and the lines that stand on the terminal in the end.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    plain = {key: value for key, value in ENVIRONMENT.items() if key not in PLAIN} | {"TERM": "xterm-256color"}
    with contextlib.ExitStack() as stack:
        target = slave if out is None else stack.enter_context(out.open("wb"))
        process = stack.enter_context(
            subprocess.Popen(
                [COMMAND, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=slave,
                cwd=folder,
                env=plain | environment,
            )
        )
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # how Linux tells that the last writer is gone
            while part := os.read(master, 65536):
                shown += part
        os.close(master)
    assert b"Traceback" not in shown, shown
    return process.returncode, screen(shown.decode())


def screen(shown: str) -> list[str]:
    """The lines of a terminal that was sent this: as much of one as rich's bars need."""
    lines, row, column = [""], 0, 0
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|[\r\n])", shown):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\r":
            column = 0
        elif piece.startswith("\x1b"):
            if piece.endswith("A"):
                row = max(0, row - int(piece[2:-1] or 1))
            elif piece.endswith("K"):
                lines[row] = "" if piece[2:-1] == "2" else lines[row][:column]
        else:
            before = lines[row].ljust(column)
            lines[row] = before[:column] + piece + before[column + len(piece) :]
            column += len(piece)
    return [line.rstrip() for line in lines]
