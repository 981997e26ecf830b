"""Where commands print: results to standard output, everything else to standard error."""

import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from setscore.errors import SetScoreError, counted

WIDTH = 120  # of tables in a file or a pipe, where no terminal sets it
# All but tabs and line ends, and what Python keeps of bytes that are no text.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Screen(Console):
    """rich's console without its own opinions: on a width of 0, and on a reader that has seen enough."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        asked = os.environ.get("COLUMNS", "")
        width = int(asked) if asked.isdigit() else 0  # rich prints nothing at all for COLUMNS=0
        if width == 0 and not (stream is not None and stream.isatty()):
            width = WIDTH
        others = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        super().__init__(stderr=stderr, highlight=False, width=width or None, _environ=others)

    def on_broken_pipe(self) -> None:
        """rich would end the process with status 1; `setscore.cli` decides that."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class Remarks(Screen):
    """Standard error. If it is full or gone there is nobody to tell, and results still go their way."""

    def print(self, *objects: Any, **options: Any) -> None:
        with suppress(OSError):
            super().print(*objects, **options)


class Absent(io.TextIOBase):
    """Stands for a standard output that the caller has closed (`>&-`): writing to it is an error, as on a full disk."""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:  # noqa: ARG002
        raise OSError(errno.EBADF, "it is closed")


results = Screen()
errors = Remarks(stderr=True)


def remark(text: str) -> None:
    """One line on standard error."""
    errors.print(literal(text), soft_wrap=True)


def literal(text: str) -> str:
    """Text as it is: brackets are no markup, and what would steer a terminal is shown, as in \\x1b."""
    return escape(CONTROL.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def open_streams() -> None:
    """Makes the standard streams fit to be used, whatever the caller did to them."""
    # Python has no object for a stream that is closed, and the next file that is opened would take its number.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = Absent()
    if isinstance(sys.stdout, io.TextIOWrapper):
        if isinstance(sys.stdout.buffer, io.RawIOBase):
            # PYTHONUNBUFFERED: Python forgets what a write that a signal interrupted did not write.
            sys.stdout = open(sys.stdout.fileno(), "w", closefd=False)  # noqa: SIM115
        # Files and pipes get UTF-8, whatever the locale says; a terminal that cannot show a sign shows its number.
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def settle_streams() -> None:
    """Writes what is left. What cannot be written has been told; Python would tell it again and change the status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
                stream.flush()


def tell_warnings() -> None:
    """From now on a warning of ours is one line, told once; those of others stay as Python shows them."""
    usual, told = warnings.showwarning, set[str]()

    def show(  # noqa: PLR0917 -- Python calls it so
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not category.__module__.startswith("setscore."):
            usual(message, category, filename, lineno, file, line)
        elif str(message) not in told:
            told.add(str(message))
            remark(str(message))

    warnings.showwarning = show


# A bar on standard error, gone when done. It must not catch standard output: results are never its business.
bar_of = partial(Progress, console=errors, transient=True, redirect_stdout=False)


def progress() -> Progress:
    """A bar for several parts of a task; silent when nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return bar_of(*columns, disable=not errors.is_terminal)


def watch_steps(bar: Progress, before: str = "", unit: str = "step") -> Callable[[str, int, int], None]:
    """Shows a bar for each kind of work; its name ends at the first comma after which the text may change."""
    tasks = {}

    def tell(what: str, done: int, total: int) -> None:
        name = before + what.partition(", loss")[0]
        if name not in tasks:
            remark(f"{name}; {counted(total, unit)}")
            tasks[name] = bar.add_task(name, total=total)
        bar.update(tasks[name], completed=done, description=before + what)

    return tell


def for_each(work: Mapping[str, Callable[[], None]]) -> bool:
    """Does one dataset after the other, and says whether some failed: they are told, the others go on."""
    failed = 0
    for name, do in work.items():
        try:
            do()
        except SetScoreError as error:
            if len(work) == 1:
                raise
            failed += 1
            errors.print(f"[bold red]{literal(name)} failed:[/] {literal(str(error))}", soft_wrap=True)
    if failed == len(work):
        raise SetScoreError(f"all {failed} datasets failed.")
    if failed:
        errors.print(f"[bold red]{failed} of {len(work)} datasets failed[/]; the others were evaluated.")
    return failed > 0
