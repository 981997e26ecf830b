"""What `setscore classify` writes, on its way to standard output or a file."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from setscore.cli.console import bar_of, errors
from setscore.cli.writers import WRITERS, Layout, Line
from setscore.errors import SetScoreError, counted
from setscore.predictions import Predictions
from setscore.records import Progress


class Output:
    """Rows on their way out, a block at a time: each is written whole and flushed, so that Ctrl-C loses little.

    `rows` counts those that are out. A file that is there stays as it is until the first block is ready.
    """

    def __init__(self, layout: Layout, path: Path | None, total: int | None) -> None:
        self.layout, self.path, self.rows = layout, path, 0
        self._is_new = path is not None and not path.exists()
        self._file = None if path is None else _opened(path)
        self._writer = WRITERS[layout.form](layout, screen=path is None)
        columns = (TextColumn("classifying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = bar_of(*columns, disable=not errors.is_terminal)
        self._task = self._bar.add_task("", total=total)
        # Told how far scoring a block is; None when nobody watches.
        self.progress: Progress | None = None if self._bar.disable else self._advance

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            if self.rows and not isinstance(error, OSError):  # whatever stopped the run, what is there can be read
                self._put(self._writer.end())
        except BrokenPipeError:
            if error is None:
                raise
        finally:
            self._bar.stop()
            if self.path is not None and self._file is not None:
                with suppress(OSError):
                    self._file.close()
                    if self._is_new and not self.rows:
                        self.path.unlink()

    def write(self, found: Predictions, lines: Sequence[Line]) -> None:
        """A block."""
        if self.layout.top is not None:
            lines = [_top(line, self.layout.top) for line in lines]
        text = "" if self.rows else self._writer.begin(found, lines)
        text += "".join(map(self._writer.row, lines))
        with _whole():
            self._put(text)
            self.rows += len(lines)
        self._bar.update(self._task, completed=self.rows)

    def told(self) -> str:
        """How many rows are where."""
        return f"{counted(self.rows, 'row')} written{'' if self.path is None else f' to {self.path}'}."

    def _advance(self, what: str, done: int, total: int) -> None:  # noqa: ARG002 -- every progress is told so
        self._bar.update(self._task, completed=self.rows + done)

    def _put(self, text: str) -> None:
        stream = self._file or sys.stdout
        shared = not self._bar.disable and stream.isatty()
        if shared:  # the bar makes room on a terminal that results go to as well
            self._bar.stop()
        try:
            if self.rows == 0 and self.path is not None and self.path.is_file():
                stream.truncate(0)
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            where = "standard output" if self.path is None else str(self.path)
            raise SetScoreError(f"{where} cannot be written: {error.strerror or error}.") from error
        if shared and text.endswith("\n"):  # a list of JSON may go on in this line
            self._bar.start()


def _opened(path: Path) -> TextIO:
    """The file, its content still there; one that cannot be written is an error before anything is scored."""
    try:
        return path.open("a", encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise SetScoreError(f"{path} cannot be written: {error.strerror}.") from error


@contextmanager
def _whole() -> Iterator[None]:
    """Ctrl-C waits until a block is written; a second one does not, because the reader may never read on."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    caught = False

    def wait(*_: Any) -> None:
        nonlocal caught
        if caught:
            raise KeyboardInterrupt
        caught = True

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if caught:
        raise KeyboardInterrupt


def _top(line: Line, most: int) -> Line:
    """With the `most` likeliest labels alone."""
    cut = line.prediction.top(most)
    return replace(line, prediction=cut, raw={name: value for name, value in line.raw.items() if name in cut.asked})
