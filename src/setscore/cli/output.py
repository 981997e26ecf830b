"""The formats of `setscore classify`: a table to read, JSON, JSONL and CSV for machines."""

import csv
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from setscore.cli.console import literal, results
from setscore.errors import SetScoreError, unknown_name

BAR = 24  # characters of a full bar
SNIPPET = 320  # characters of a document that a table shows
SHOWN = 12  # labels a table shows, unless more apply


@dataclass(frozen=True)
class Answer:
    """One row's outcome: its labels and the probability of each label asked, or the error.

    `undecided` are labels too near to their threshold, where the calibration has a margin for that; else None.
    """

    id: str
    text: str = ""
    labels: tuple[str, ...] = ()
    probabilities: dict[str, float] | None = None
    error: str | None = None
    truncated: bool = False
    undecided: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Layout:
    """What is written: the labels there are, whether texts are repeated, whether some labels may be undecided."""

    label_names: tuple[str, ...]
    with_text: bool = False
    abstains: bool = False


def write(
    form: str,
    answers: Iterable[Answer],
    label_names: tuple[str, ...],
    *,
    with_text: bool = False,
    abstains: bool = False,
) -> None:
    """Prints answers as they come; a table shows the beginning of the text anyway."""
    WRITERS[form](answers, Layout(label_names, with_text, abstains))
    sys.stdout.flush()


def check_format(form: str) -> str:
    if form not in WRITERS:
        raise SetScoreError(unknown_name("format", form, WRITERS))
    return form


def _record(answer: Answer, with_text: bool) -> dict[str, Any]:
    if answer.error is not None:
        return {"id": answer.id, "error": answer.error}
    text = {"text": answer.text} if with_text else {}
    probabilities = {label: round(p, 6) for label, p in (answer.probabilities or {}).items()}
    record = {"id": answer.id, **text, "labels": list(answer.labels), "probabilities": probabilities}
    if answer.undecided is not None:
        record["undecided"] = list(answer.undecided)
    return record | ({"truncated": True} if answer.truncated else {})


def _lines(answers: Iterable[Answer], with_text: bool) -> Iterator[str]:
    return (json.dumps(_record(answer, with_text), ensure_ascii=False) for answer in answers)


def _jsonl(answers: Iterable[Answer], layout: Layout) -> None:
    for line in _lines(answers, layout.with_text):
        sys.stdout.write(line + "\n")


def _json(answers: Iterable[Answer], layout: Layout) -> None:
    separator = "[\n"
    for line in _lines(answers, layout.with_text):
        sys.stdout.write(f"{separator}  {line}")
        separator = ",\n"
    sys.stdout.write("[]\n" if separator == "[\n" else "\n]\n")


def _csv(answers: Iterable[Answer], layout: Layout) -> None:
    """Labels are joined by `|`; then a column per label with its probability, empty where it was not asked."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    doubt = ["undecided"] if layout.abstains else []
    writer.writerow(["id", *(["text"] if layout.with_text else []), "labels", *doubt, *layout.label_names, "error"])
    for answer in answers:
        asked = answer.probabilities or {}
        cells = [f"{asked[name]:.6f}" if name in asked else "" for name in layout.label_names]
        text = [answer.text] if layout.with_text else []
        doubtful = ["|".join(answer.undecided or ())] if layout.abstains else []
        writer.writerow([answer.id, *text, "|".join(answer.labels), *doubtful, *cells, answer.error or ""])


def _table(answers: Iterable[Answer], _: Layout) -> None:
    for answer in answers:
        results.print()
        if answer.error is not None:
            results.print(f"[bold]{literal(answer.id)}[/]  [red]{literal(answer.error)}[/]")
            continue
        snippet = textwrap.shorten(answer.text, SNIPPET, placeholder=" …")
        results.print(f"[bold]{literal(answer.id)}[/]  {literal(snippet)}", soft_wrap=False, overflow="fold")
        results.print(_bars(answer))


def _bars(answer: Answer) -> Table:
    ranked = sorted((answer.probabilities or {}).items(), key=lambda item: -item[1])
    shown = max(SHOWN, len(answer.labels))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for label, probability in ranked[:shown]:
        applies = label in answer.labels
        style, mark = ("green", "✓") if applies else ("dim", " ")
        doubt = "?" if label in (answer.undecided or ()) else ""
        bar = "█" * round(probability * BAR)
        table.add_row(f"   {mark}{doubt}", f"{probability:4.0%}", bar, literal(label), style=style)
    if len(ranked) > shown:
        table.add_row("", "", "", f"and {len(ranked) - shown} more, all less likely", style="dim")
    return table


WRITERS: dict[str, Callable[[Iterable[Answer], Layout], None]] = {
    "table": _table,
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
}
