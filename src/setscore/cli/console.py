"""Where commands print: results to standard output, everything else to standard error."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from setscore.errors import SetScoreError, counted

WIDTH = 120  # of tables in a file or a pipe, where no terminal sets it
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tabs and line ends

results = Console(highlight=False, width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH)
errors = Console(stderr=True, highlight=False)


def remark(text: str) -> None:
    """One line on standard error."""
    errors.print(literal(text), soft_wrap=True)


def literal(text: str) -> str:
    """Text as it is: brackets are no markup, and what would steer a terminal is shown, as in \\x1b."""
    return escape(CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text))


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


def progress() -> Progress:
    """On standard error, gone when done, and silent when nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def watch(bar: Progress, name: str) -> Callable[[str, int, int, str], None]:
    """Shows how far scoring is, and says once for each part what is going on."""
    tasks = {}

    def tell(part: str, done: int, total: int, message: str) -> None:
        if part not in tasks:
            remark(f"{name} {part}: {message}; {counted(total, 'document')}")
            tasks[part] = bar.add_task(f"{name} {part}", total=total)
        bar.update(tasks[part], completed=done)

    return tell


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
