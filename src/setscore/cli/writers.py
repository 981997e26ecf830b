"""The forms of what `setscore classify` writes: a table to read, JSON, JSONL and CSV for machines."""

import csv
import io
import json
import textwrap
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

from setscore.cli.console import literal, results
from setscore.errors import SetScoreError, unknown_name
from setscore.predictions import Prediction, Predictions

BAR = 24  # characters of a full bar
SNIPPET = 320  # characters of a document that a table shows
SHOWN = 12  # labels a table shows, unless more apply
A_POINT = 0.01  # of probability: from here on a table shows what the model answered before labels competed
COMPETES = (
    "In brackets: the model's answer to that question alone. Before `fit` a label also counts how high the others"
    " stand; --competition 0 asks each for itself."
)


@dataclass(frozen=True)
class Line:
    """What is written of one row.

    raw   the model's own answers where labels competed, so that both can be shown; else empty
    kept  the file's own columns, where they are to be repeated
    """

    prediction: Prediction
    text: str = ""
    raw: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """What is asked of the output.

    form       a name of WRITERS
    with_text  whether texts are repeated
    top        how many labels of a document are written at most, the most probable ones; None for all
    same       columns that are ours and those of the file at once, so that both may have them: its id, its text
    fitted     the fitted threshold of each label, which a table explains; empty where nothing was fitted
    """

    form: str
    with_text: bool = False
    top: int | None = None
    same: Collection[str] = ()
    fitted: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.form not in WRITERS:
            raise SetScoreError(unknown_name("format", self.form, WRITERS))


class Writer(Protocol):
    """A format, as text: what stands before the first block, a row, and what stands after the last."""

    def __init__(self, layout: Layout, *, screen: bool) -> None: ...
    def begin(self, found: Predictions, lines: Sequence[Line]) -> str: ...
    def row(self, line: Line) -> str: ...
    def end(self) -> str: ...


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in values.items()}


def _beside(kept: Mapping[str, Any], ours: Mapping[str, Any], same: Collection[str]) -> dict[str, Any]:
    """The columns of the file, then ours. One that both have is an error, unless it says the same."""
    for name in kept:
        if name in ours and name not in same:
            raise SetScoreError(
                f"the column {name!r} of the file has the name of one that is written. Rename it, or leave out"
                " --keep-columns."
            )
    return {**kept, **ours}


class JsonLines:
    """An object a line."""

    def __init__(self, layout: Layout, *, screen: bool) -> None:  # noqa: ARG002
        self.layout = layout

    def begin(self, found: Predictions, lines: Sequence[Line]) -> str:  # noqa: ARG002
        return ""

    def row(self, line: Line) -> str:
        return f"{self._object(line)}\n"

    def end(self) -> str:
        return ""

    def _object(self, line: Line) -> str:
        return json.dumps(_beside(line.kept, self._record(line), self.layout.same), ensure_ascii=False)

    def _record(self, line: Line) -> dict[str, Any]:
        prediction = line.prediction
        if prediction.error is not None:
            return {"id": prediction.id, "error": prediction.error, "regime": prediction.regime}
        record: dict[str, Any] = {"id": prediction.id}
        if self.layout.with_text:
            record["text"] = line.text
        record["labels"] = list(prediction.labels)
        record["probabilities"] = _rounded(prediction.probabilities)
        if prediction.undecided is not None:
            record["undecided"] = list(prediction.undecided)
        if prediction.truncated:
            record["truncated"] = True
        record["regime"] = prediction.regime
        if line.raw:
            record["raw"] = _rounded(line.raw)
        return record


class Json(JsonLines):
    """One list of the same objects."""

    before = "[\n"

    def row(self, line: Line) -> str:
        before, self.before = self.before, ",\n"
        return f"{before}  {self._object(line)}"

    def end(self) -> str:
        return "\n]\n"


class Csv:
    """Labels are joined by `|`; then a column per label with its probability, empty where it was not asked."""

    def __init__(self, layout: Layout, *, screen: bool) -> None:  # noqa: ARG002
        self.layout = layout
        self.label_names: tuple[str, ...] = ()
        self.columns: list[str] = []
        self.abstains = False

    def begin(self, found: Predictions, lines: Sequence[Line]) -> str:
        self.label_names, self.abstains = found.label_names, found.undecided is not None
        ours = ["id", *(["text"] if self.layout.with_text else []), "labels"]
        ours += [*(["undecided"] if self.abstains else []), *self.label_names, "error", "regime"]
        if twice := next((name for name, count in Counter(ours).items() if count > 1), None):
            raise SetScoreError(f"the label {twice!r} has the name of another column of CSV; write --format jsonl.")
        kept = dict.fromkeys(name for line in lines for name in line.kept)
        self.columns = list(_beside(kept, dict.fromkeys(ours), self.layout.same))
        return _csv_line(self.columns)

    def row(self, line: Line) -> str:
        if other := next((name for name in line.kept if name not in self.columns), None):
            raise SetScoreError(
                f"the row {line.prediction.id!r} has the field {other!r}, which the first rows do not have, so that the"
                " CSV has no column for it. Write --format jsonl."
            )
        cells = _beside(line.kept, self._cells(line), self.layout.same)
        return _csv_line([_cell(cells.get(name)) for name in self.columns])

    def end(self) -> str:
        return ""

    def _cells(self, line: Line) -> dict[str, Any]:
        prediction = line.prediction
        cells: dict[str, Any] = {"id": prediction.id, "labels": "|".join(prediction.labels)}
        if self.layout.with_text:
            cells["text"] = line.text
        if self.abstains:
            cells["undecided"] = "|".join(prediction.undecided or ())
        for name in self.label_names:
            cells[name] = f"{prediction.probabilities[name]:.6f}" if name in prediction.probabilities else ""
        return cells | {"error": prediction.error, "regime": prediction.regime}


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _cell(value: Any) -> str:
    """A value of the file's own column as text; lists and objects as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Bars:
    """For reading: the beginning of each document, and a bar per label."""

    def __init__(self, layout: Layout, *, screen: bool) -> None:
        self.fitted = layout.fitted
        # As standard output shows it, but into a text: a row is written whole, and by nobody but `Output`.
        colours = screen and results.is_terminal
        self.console = Console(file=io.StringIO(), highlight=False, width=results.width, force_terminal=colours)
        self.explained = False

    def begin(self, found: Predictions, lines: Sequence[Line]) -> str:  # noqa: ARG002
        return ""

    def row(self, line: Line) -> str:
        prediction, name = line.prediction, f"[bold]{literal(line.prediction.id)}[/]"
        with self.console.capture() as captured:
            if prediction.error is not None:
                self.console.print(f"\n{name}  [red]{literal(prediction.error)}[/]")
            else:
                snippet = textwrap.shorten(line.text, SNIPPET, placeholder=" …")
                self.console.print(f"\n{name}  {literal(snippet)}", soft_wrap=False, overflow="fold")
                self.console.print(self._table(prediction, line.raw))
        return captured.get()

    def end(self) -> str:
        with self.console.capture() as captured:
            if self.fitted:
                self.console.print(f"\n{literal(_ticks(self.fitted))}", style="dim", soft_wrap=True)
            if self.explained:
                self.console.print(f"\n{COMPETES}", style="dim", soft_wrap=True)
        return captured.get()

    def _table(self, prediction: Prediction, raw: Mapping[str, float]) -> Table:
        ranked = sorted(prediction.probabilities.items(), key=lambda item: -item[1])
        shown = max(SHOWN, len(prediction.labels))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
        for label, probability in ranked[:shown]:
            style, mark = ("green", "✓") if label in prediction.labels else ("dim", " ")
            doubt = "?" if label in (prediction.undecided or ()) else ""
            alone = raw.get(label, probability)
            differs = abs(alone - probability) >= A_POINT
            self.explained = self.explained or differs
            share = f"{probability:4.0%}{f' [dim]({alone:.0%})[/]' if differs else ''}"
            table.add_row(f"   {mark}{doubt}", share, "█" * round(probability * BAR), literal(label), style=style)
        if len(ranked) > shown:
            table.add_row("", "", "", f"and {len(ranked) - shown} more, all less likely", style="dim")
        return table


def _ticks(fitted: Mapping[str, float]) -> str:
    """From which probability on labels are ticked: without it 45% with a tick and 55% without look like a mistake."""
    if len(set(fitted.values())) == 1:
        return f"✓: a probability of {next(iter(fitted.values())):.0%} or more."
    shown = ", ".join(f"{name} {value:.0%}" for name, value in list(fitted.items())[:SHOWN])
    rest = ", ..." if len(fitted) > SHOWN else ""
    return f"✓: a probability at or above the label's own threshold: {shown}{rest}."


WRITERS: dict[str, type[Writer]] = {"table": Bars, "json": Json, "jsonl": JsonLines, "csv": Csv}


def form_of(path: Path | None) -> str:
    """The form that the ending of a file names; else a table."""
    ending = "" if path is None else path.suffix[1:].lower()
    return ending if ending in WRITERS else "table"
