"""Where and how commands print: results to standard output, everything else to standard error; and their tables."""

import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TextIO

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from setscore.errors import SetScoreError, counted
from setscore.experiments import Outcome, Spread, Summary
from setscore.experiments.pairs import Pair
from setscore.experiments.report import WHOLE, Report
from setscore.experiments.scored import UNFITTED
from setscore.predictions import LEARNED

WIDTH = 120  # of tables in a file or a pipe, where no terminal sets it
ECE = "ECE: how far probabilities are from the truth, 0 is best; raw: before the calibration."
LEGEND = {  # by how the name of a row begins
    UNFITTED: f"{UNFITTED}: before anything is fitted; auto, paper and the like: calibrated on labelled documents.",
    LEARNED: "learned: what `fit` learns from the same documents on top of the scores, its default.",
    "auto + ": "auto + own-cosine: the model's own sentence embedding has a say too, as with --blend own-cosine.",
    "label prior": "label prior: the labels' own rates, without reading a text.",
    "every label": "every label: all labels for all documents.",
    "cosine": "cosine: a sentence encoder in place of the model, calibrated in the same way.",
    "oracle": "oracle: cuts of the log-odds that saw the very documents they are measured on; never results.",
}
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


def percent(found: Summary | Spread, metric: str) -> str:
    """Mean ± standard deviation; the mean alone where there is one seed."""
    mean, sd = 100 * found.mean[metric], 100 * found.sd[metric]
    return f"{mean:.1f} ± {sd:.1f}" if sd >= 0 else f"{mean:.1f}"  # NaN is not


def with_interval(outcome: Outcome, metric: str) -> str:
    interval = outcome.intervals.get(metric)
    more = "" if interval is None else f" ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
    return f"{100 * outcome.metrics[metric]:.1f}{more}"


def abstained(name: str, metrics: Mapping[str, float]) -> str | None:
    """A sentence on what a calibration left undecided; None for one that decides everything."""
    if "undecided" not in metrics:
        return None
    return (
        f"{name}: {100 * metrics['undecided']:.1f}% of the decisions are left to you, in"
        f" {100 * metrics['undecided_documents']:.1f}% of the documents; micro-F1 of the others"
        f" {100 * metrics['micro_f1_decided']:.1f}."
    )


def show_reports(reports: Sequence[Report]) -> None:
    """One table and what its rows are; remarks go to standard error."""
    table = _scores("dataset", "decided by", "protocol")
    for made in reports:
        for number, summary in enumerate(made.summaries):
            name = literal(made.name) if number == 0 else ""
            end = number + 1 == len(made.summaries)
            table.add_row(name, *_cells(summary), style="dim" if summary.kind == "oracle" else "", end_section=end)
    results.print(table)
    seeds = [str(trial.seed) for trial in reports[0].trials if trial.seed != WHOLE]
    spread = "mean ± standard deviation over seeds" if len(seeds) > 1 else "bootstrap intervals (95%)"
    drawn = "" if not seeds else f" {seeds[0]}" if len(seeds) == 1 else f" {', '.join(seeds)}"
    results.print(f"\nF1 in percent, {spread}{', seed' if len(seeds) == 1 else ''}{drawn}. {ECE}", style="dim")
    names = [summary.name for made in reports for summary in made.summaries]
    for start, legend in LEGEND.items():
        if any(name.startswith(start) for name in names):
            results.print(legend, style="dim")
    for made in reports:
        doubts = [abstained(summary.name, summary.mean) for summary in made.summaries]
        for text in dict.fromkeys([*filter(None, doubts), *made.remarks]):
            remark(f"{made.name}: {text}")


def show_plain(reports: Sequence[Report]) -> None:
    """How good the decisions are and nothing else; what is beside them comes in the tables that follow."""
    table = _scores("dataset", "decided by", errors=False)
    for made in reports:
        for number, summary in enumerate(summary for summary in made.summaries if summary.kind == "model"):
            name, _, micro, macro, *_ = _cells(summary)
            table.add_row(literal(made.name) if number == 0 else "", name, micro, macro)
    results.print(table)
    results.print("")


def show_outcomes(outcomes: Mapping[str, Outcome]) -> None:
    """Outcomes with their intervals, by the name that is shown."""
    table = _scores("decided by")
    for name, one in outcomes.items():
        scores = [with_interval(one, metric) for metric in ("micro_f1", "macro_f1")]
        table.add_row(literal(name), *scores, f"{one.metrics['ece_raw']:.3f}", f"{one.metrics['ece']:.3f}")
    results.print(table)
    results.print(f"\nF1 in percent, bootstrap intervals (95%). {ECE}", style="dim")


def show_groups(made: Report, column: str) -> None:
    """The model's rows for each value of the column."""
    table = Table(box=None, pad_edge=False)
    for title in (column, "documents", "decided by", "micro-F1", "macro-F1", "macro-F1 present"):
        left = title in (column, "decided by")
        table.add_column(literal(title), justify="left" if left else "right", no_wrap=not left, overflow="fold")
    models = [summary for summary in made.summaries if summary.kind == "model"]
    for value in models[0].groups:
        for number, summary in enumerate(models):
            found = summary.groups[value]
            group = [literal(value), f"{found.mean['documents']:.1f}".removesuffix(".0")] if number == 0 else ["", ""]
            scores = [percent(found, metric) for metric in ("micro_f1", "macro_f1", "macro_f1_present")]
            table.add_row(*group, literal(summary.name), *scores, end_section=number + 1 == len(models))
    results.print("")
    results.print(table)
    seeds = ", a mean over seeds" if len(made.trials) > 1 else ""
    present = "macro-F1 present leaves out labels without a gold document in the group"
    results.print(
        f"\nF1 in percent by {literal(column)}. Documents are those measured on{seeds}; {present}.", style="dim"
    )


def show_labels(tables: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]) -> None:
    """A table by title: one row for each label, the mean of its runs (one for each seed)."""
    for title, runs in tables.items():
        results.print("")
        results.print(_of_labels(title, runs))
    seeds = ", means over seeds" if any(len(runs) > 1 for runs in tables.values()) else ""
    results.print(f"\nDocuments with the label, and precision, recall and F1 in percent{seeds}.", style="dim")


def _of_labels(title: str, runs: Sequence[Sequence[Mapping[str, Any]]]) -> Table:
    table = Table(title=literal(title), title_justify="left", box=None, pad_edge=False)
    for column in ("label", "gold", "predicted", "precision", "recall", "F1"):
        table.add_column(column, justify="left" if column == "label" else "right", overflow="fold")
    for same in zip(*runs, strict=True):
        counts = [f"{np.mean([one[key] for one in same]):.1f}".removesuffix(".0") for key in ("gold", "predicted")]
        shares = [f"{100 * np.mean([one[key] for one in same]):.1f}" for key in ("precision", "recall", "f1")]
        table.add_row(literal(str(same[0]["label"])), *counts, *shares)
    return table


def show_pairs(name: str, pairs: Sequence[Pair]) -> None:
    """Differences with intervals and p-values, seed by seed."""
    table = Table(title=literal(f"{name}, paired tests"), title_justify="left", box=None, pad_edge=False)
    for column in ("difference", "seed", "micro-F1", "p", "macro-F1", "p"):
        numeric = column != "difference"
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for pair in pairs:
        for number, (seed, metrics) in enumerate(pair.seeds.items()):
            what = f"{pair.first} minus {pair.second}" if number == 0 else ""
            cells = []
            for found in (metrics["micro_f1"], metrics["macro_f1"]):
                low, high = 100 * found.low, 100 * found.high
                cells += [f"{100 * found.difference:+.1f} ({low:+.1f} to {high:+.1f})", f"{found.p_value:.3f}"]
            drawn = "" if seed == WHOLE else str(seed)
            table.add_row(literal(what), drawn, *cells, end_section=number + 1 == len(pair.seeds))
    results.print("")
    results.print(table)
    results.print(
        "\nPoints of F1 with bootstrap intervals (95%); p of a randomisation test on the same documents.", style="dim"
    )


def _scores(*names: str, errors: bool = True) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in (*names, "micro-F1", "macro-F1", *(("ECE raw", "ECE") if errors else ())):
        numeric = column not in names
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    return table


def _cells(summary: Summary) -> list[str]:
    """Name, protocol, micro-F1, macro-F1 and the two ECEs of a row."""
    (one, *more) = summary.rows.values()
    scores = [percent(summary, metric) if more else with_interval(one, metric) for metric in ("micro_f1", "macro_f1")]
    errors_ = [f"{summary.mean[key]:.3f}" if key in summary.mean else "" for key in ("ece_raw", "ece")]
    return [literal(summary.name), summary.protocol, *scores, *errors_]
