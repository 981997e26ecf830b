"""`setscore classify`: texts, a file or standard input to labels."""

import io
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.console import errors, progress, remark
from setscore.cli.output import Answer, check_format, write
from setscore.datasets import DOCUMENT_FILES, Columns, InputRow, parse_labels, read_documents, read_stream, text_rows
from setscore.errors import (
    ScoreError,
    SetScoreError,
    TruncationWarning,
    counted,
    plural,
    truncation,
    unknown_name,
)
from setscore.records import Document

BLOCK_QUESTIONS = 4096  # asked at a time; answers are written and progress is shown after each block
# Labels, probabilities, whether the text was cut, and labels that are undecided where there is abstention.
Outcome = tuple[tuple[str, ...], dict[str, float], bool, tuple[str, ...] | None]
SAVED = (
    "labels", "scorer", "template", "backbone", "attention", "verbalizer",
    "long_documents", "pool", "shortlist", "blend",
)  # fmt: skip

Labels = Annotated[
    str | None, typer.Option("--labels", "-l", help="Names separated by commas, or a .txt, .csv, .yaml or .json file.")
]
File = Annotated[
    Path | None, typer.Option("--file", "-f", help="A .txt (a document a line), .csv or .jsonl file; - for stdin.")
]


@options.grouped
def classify(
    *,
    context: typer.Context,
    texts: Annotated[list[str] | None, typer.Argument(help="Documents, each in quotes.", show_default=False)] = None,
    labels: Labels = None,
    file: File = None,
    form: Annotated[str, typer.Option("--format", help="table, json, jsonl or csv.")] = "table",
    with_text: Annotated[bool, typer.Option("--with-text", help="Repeat each text in json, jsonl and csv.")] = False,
    asked: options.Model,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Probability from which a label applies.")] = 0.5,
    classifier: Annotated[
        Path | None,
        typer.Option(
            help="A saved classifier (setscore calibrate --out, or save in Python), in place of labels and settings."
        ),
    ] = None,
    input_format: Annotated[
        str | None, typer.Option(help="txt, csv or jsonl; by the file's ending without it, txt for stdin.")
    ] = None,
    text_column: Annotated[str, typer.Option(help="CSV column or JSONL field with the text.")] = "text",
    id_column: options.IdColumn = None,
    candidates_column: Annotated[
        str, typer.Option(help="... with the labels to ask for this document only, if there is one.")
    ] = "candidates",
) -> None:
    """Say which labels apply to each document.

    Examples:

        setscore classify "Crude prices fell again." --labels oil,sports,music

        setscore classify --file tickets.csv --text-column body --labels labels.yaml --format jsonl > out.jsonl

        cat notes.txt | setscore classify --labels labels.txt --format csv
    """
    check_format(form)
    if classifier is not None:
        _refuse_settings(context)
        model = SetScoreClassifier.load(classifier)
        if options.given(context, ["threshold"]):
            model = model.with_threshold(threshold)
    elif labels is None:
        raise SetScoreError("no labels were given. Add --labels oil,sports or --labels FILE, or --classifier FILE.")
    else:
        model = asked.classifier().set_params(labels=parse_labels(labels), threshold=threshold)
    if form == "csv" and (bars := [name for name in model.classes_ if "|" in name]):
        remark(
            f"the label {bars[0]!r} has | in its name, which stands between labels in the column labels too: read the"
            " label's own column, or write --format jsonl."
        )
    rows, total = _rows(texts, file, input_format, Columns(text_column, id_column, candidates_column))
    tally = Tally()
    with progress() as bar:
        task = bar.add_task("classifying", total=total)
        answers = _answers(model, rows, tally)
        abstains = model.current_calibration().margin > 0
        told = _advance(answers, lambda: bar.advance(task))
        first = list(islice(told, 1))  # settings that do not go together are an error before anything is written
        write(form, chain(first, told), tuple(model.classes_), with_text=with_text, abstains=abstains)
    tally.report()


class Tally:
    """What the end of a run reports: nothing is dropped or cut in silence."""

    def __init__(self) -> None:
        self.rows = self.failed = self.truncated = self.repeated = self.dropped = 0
        self._numbers: dict[str, int] = {}  # of the row that had an id first
        self._first = ""

    def note(self, row: InputRow) -> None:
        """Counts a row. One whose id has been there before is kept, but joining outputs by id would mix them up."""
        self.rows += 1
        self.failed += row.document is None
        if row.id in self._numbers:
            self.repeated += 1
            self._first = self._first or f"{row.id!r} in rows {self._numbers[row.id]} and {row.number}"
        elif row.id != str(row.number):  # a number that stands in cannot come again, so long streams keep nothing
            self._numbers[row.id] = row.number

    def report(self) -> None:
        if self.truncated:
            remark(f"{truncation(self.truncated, self.rows)} Use --long-documents chunk to read them whole.")
        if self.dropped:
            remark(
                f"the shortlist left out {counted(self.dropped, 'pair')} of document and label; they count as negative."
            )
        if self.repeated:
            remark(
                f"{self.repeated} of {counted(self.rows, 'row')} {plural(self.repeated, 'repeats', 'repeat')} an id,"
                f" the first is {self._first}; all rows are kept."
            )
        if self.rows == 0:
            raise SetScoreError("there were no documents. Give texts, a --file with some, or lines to standard input.")
        if self.failed:
            others = "; the others were classified." if self.failed < self.rows else "."
            errors.print(f"[bold red]{self.failed} of {counted(self.rows, 'row')} failed[/]{others}")
            raise typer.Exit(1)


def _refuse_settings(context: typer.Context) -> None:
    if named := options.given(context, SAVED):
        raise SetScoreError(f"a saved classifier has its own settings; remove {', '.join(named)} or --classifier.")


def _rows(
    texts: list[str] | None, file: Path | None, input_format: str | None, columns: Columns
) -> tuple[Iterable[InputRow], int | None]:
    if texts and file:
        raise SetScoreError("give texts or --file, not both.")
    if texts and len(texts) == 1 and (Path(texts[0]).suffix in DOCUMENT_FILES or texts[0] == "-"):
        raise SetScoreError(f"{texts[0]!r} looks like a file; write --file {texts[0]}.")
    suffix = None if input_format is None else f".{input_format}"
    if suffix is not None and suffix not in DOCUMENT_FILES:
        raise SetScoreError(unknown_name("input format", suffix[1:], [known[1:] for known in DOCUMENT_FILES]))
    if texts:
        return text_rows(texts), len(texts)
    if file is not None and str(file) != "-":
        rows = list(read_documents(file, columns, suffix=suffix))
        return rows, len(rows)
    if sys.stdin.isatty():
        errors.print("reading documents from the keyboard, one a line; end with Ctrl-D")
    # Bytes that are not UTF-8 become an error of their row, whatever the locale says.
    stream = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="surrogateescape")
    return read_stream(stream, suffix or ".txt", columns), None


def _answers(model: SetScoreClassifier, rows: Iterable[InputRow], tally: Tally) -> Iterator[Answer]:
    """Answers in the order of the rows, a block at a time."""
    iterator = iter(rows)
    names = set(model.classes_)
    size = max(1, BLOCK_QUESTIONS // len(names))
    while block := list(islice(iterator, size)):
        block = [_check_candidates(row, names) for row in block]
        good = [row.document for row in block if row.document is not None]
        scored = iter(_outcomes(model, good, tally))
        for row in block:
            outcome = None if row.document is None else next(scored)
            if isinstance(outcome, ScoreError):
                row = replace(row, document=None, problem=f"could not be scored: {outcome}")  # noqa: PLW2901
            tally.note(row)
            if row.document is None or outcome is None or isinstance(outcome, ScoreError):
                yield Answer(row.id, error=f"row {row.number} {row.problem}")
            else:
                labels, probabilities, truncated, doubtful = outcome
                text = row.document.text
                yield Answer(row.id, text, labels, probabilities, truncated=truncated, undecided=doubtful)


def _outcomes(model: SetScoreClassifier, documents: list[Document], tally: Tally) -> list[Outcome | ScoreError]:
    """What is found for each document. One that has no number for an answer is parted from the others by halves."""
    try:
        return list(_classified(model, documents, tally))
    except ScoreError as error:
        if len(documents) == 1:
            return [error]
        half = len(documents) // 2
        return _outcomes(model, documents[:half], tally) + _outcomes(model, documents[half:], tally)


def _check_candidates(row: InputRow, names: set[str]) -> InputRow:
    unknown = [name for name in (row.document.candidates or () if row.document else ()) if name not in names]
    return InputRow(row.number, row.id, None, f"asks an {unknown_name('label', unknown[0], names)}") if unknown else row


def _classified(model: SetScoreClassifier, documents: list[Document], tally: Tally) -> Iterator[Outcome]:
    if not documents:
        return
    names = tuple(model.classes_)
    candidates = [document.candidates or names for document in documents]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # counted and reported at the end
        scores = model.score_documents(documents, candidates=candidates)
    tally.truncated += int(scores.truncated.sum())
    tally.dropped += sum(len(set(asked)) for asked in candidates) - int(scores.scored.sum())
    calibration = model.current_calibration()
    probabilities, decisions = calibration.transform(scores.log_odds), calibration.predict(scores.log_odds)
    undecided = calibration.undecided(scores.log_odds) if calibration.margin else None
    for row in range(len(documents)):
        asked = np.flatnonzero(scores.scored[row])
        ranked = asked[np.argsort(-probabilities[row, asked], kind="stable")]
        applies = tuple(names[i] for i in ranked if decisions[row, i])
        doubtful = None if undecided is None else tuple(names[i] for i in ranked if undecided[row, i])
        yield applies, {names[i]: float(probabilities[row, i]) for i in asked}, bool(scores.truncated[row]), doubtful


def _advance(answers: Iterator[Answer], step: Callable[[], None]) -> Iterator[Answer]:
    for answer in answers:
        step()
        yield answer
