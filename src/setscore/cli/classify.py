"""`setscore classify`: texts, a file or standard input to labels. A view of `SetScoreClassifier.classify`."""

import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from setscore.backbones.specs import EMBEDDED
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.agreement import agreement
from setscore.cli.blocks import awaited, blocks
from setscore.cli.console import errors, remark
from setscore.cli.output import Output
from setscore.cli.writers import Layout, Line, form_of
from setscore.datasets import (
    DOCUMENT_FILES,
    Columns,
    InputRow,
    count_documents,
    likely_not_english,
    parse_labels,
    read_documents,
    read_stream,
)
from setscore.errors import DataFileError, SetScoreError, counted, plural, truncation, unknown_name
from setscore.predictions import ZERO_SHOT, Predictions
from setscore.records import Document, LabelSet

SHORTEST = 20  # characters of a text whose language can be told
MOST_IDS = 1_000_000  # that are kept to find those that stand twice
SAVED = (
    "label_text",
    *(field.name for field in fields(options.Model)),
)  # what a saved classifier has of its own

Labels = Annotated[
    str | None, typer.Option("--labels", "-l", help="Names separated by commas, or a .txt, .csv, .yaml or .json file.")
]
File = Annotated[
    Path | None, typer.Option("--file", "-f", help=f"A {', '.join(DOCUMENT_FILES)} file, or .gz of one; - for stdin.")
]
Classifier = Annotated[
    Path | None,
    typer.Option(
        help="A saved classifier (setscore calibrate --out, or save in Python), with its own labels and settings."
    ),
]


@options.grouped
def classify(
    *,
    context: typer.Context,
    texts: Annotated[list[str] | None, typer.Argument(help="Documents, each in quotes.", show_default=False)] = None,
    labels: Labels = None,
    label_text: options.LabelText = None,
    file: File = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file for the results, in place of standard output.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="table, json, jsonl or csv; by the ending of --output, else table.", show_default=False
        ),
    ] = None,
    with_text: Annotated[bool, typer.Option("--with-text", help="Repeat each text in json, jsonl and csv.")] = False,
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", help="Repeat the file's own columns in json, jsonl and csv, before ours.")
    ] = False,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="At most so many labels of a document, the most probable ones.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Probability from which a label applies.")] = 0.5,
    classifier: Classifier = None,
    allow: options.Allow = None,
    asked: options.Model,
    input_format: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(known[1:] for known in DOCUMENT_FILES)}; without it by the file's ending, txt for stdin."
        ),
    ] = None,
    text_column: Annotated[str, typer.Option(help="Column or field with the text.")] = "text",
    id_column: options.IdColumn = None,
    candidates_column: Annotated[
        str, typer.Option(help="... with the labels to ask for this document only, if there is one.")
    ] = "candidates",
) -> None:
    """Say which labels apply to each document.

    Examples:

        setscore classify "Crude prices fell again." --labels oil,sports,music

        setscore classify --file tickets.csv --text-column body --labels labels.yaml --format csv --output out.csv

        setscore classify --file new.xlsx --classifier classifier.json --keep-columns --format jsonl > out.jsonl

        cat notes.txt | setscore classify --labels labels.txt --format csv
    """
    model = model_of(context, classifier, labels, asked, threshold=threshold, allow=allow, label_text=label_text)
    names = model.classes_
    form = form or form_of(output)
    if form == "csv":
        _warn_of_bars(names)
    if keep_columns and form == "table":
        raise SetScoreError("a table has no room for --keep-columns; add --format csv, json or jsonl.")
    columns = Columns(text_column, id_column, candidates_column)
    rows, total = _rows(texts, file, input_format, columns)
    tally = Tally(model.backbone, file)
    same = [name for name, column in (("id", id_column or "id"), ("text", text_column)) if name == column]
    out = Output(Layout(form, with_text, top_k, same, _fitted_thresholds(model)), output, total)
    try:
        with out:
            for block in blocks(rows, len(names)):
                documents = [row.document or Document("", row.id) for row in block]
                found = model.classify(documents, progress=out.progress)
                out.write(found, tally.lines(block, found, keep=keep_columns))
    except KeyboardInterrupt as interrupted:
        remark(f"interrupted: {out.told()}")
        raise typer.Exit(130) from interrupted
    except SetScoreError:
        if out.rows:
            remark(out.told())
        raise
    if output is not None and out.rows:
        remark(out.told())
    tally.report()


def model_of(
    context: typer.Context,
    saved: Path | None,
    labels: str | None,
    asked: options.Model,
    *,
    threshold: float,
    allow: Sequence[str] | None,
    label_text: str | None = None,
) -> SetScoreClassifier:
    """The classifier of a file, or the one that the options describe."""
    if saved is None:
        options.refuse_allow(allow)
        if labels is None:
            raise SetScoreError("no labels were given. Add --labels oil,sports or --labels FILE, or --classifier FILE.")
        return asked.classifier(labels, label_text=label_text, threshold=threshold)
    model = _saved(saved, context, threshold, allow)
    if labels is not None and (note := agreement(LabelSet.of(model.labels), parse_labels(labels), "--labels")):
        remark(note)
    return model


def _saved(path: Path, context: typer.Context, threshold: float, allow: Sequence[str] | None) -> SetScoreClassifier:
    """The classifier that was saved, with another threshold if one is given."""
    if named := options.given(context, SAVED):
        raise SetScoreError(f"a saved classifier has its own settings; remove {', '.join(named)} or --classifier.")
    model = SetScoreClassifier.load(path, allow=allow or [])
    if options.given(context, ["threshold"]):
        model = model.with_threshold(threshold)
    return model.check()


def _warn_of_bars(names: Sequence[str]) -> None:
    if bars := [name for name in names if "|" in name]:
        remark(
            f"the label {bars[0]!r} has | in its name, which stands between labels in the column labels too: read the"
            " label's own column, or write --format jsonl."
        )


def _rows(
    texts: list[str] | None, file: Path | None, input_format: str | None, columns: Columns
) -> tuple[Iterable[InputRow | None], int | None]:
    """The rows, and how many there are where that is known."""
    if texts and file:
        raise SetScoreError("give texts or --file, not both.")
    if texts and len(texts) == 1 and _looks_like_a_file(texts[0]):
        raise SetScoreError(f"{texts[0]!r} looks like a file; write --file {texts[0]}.")
    suffix = None if input_format is None else f".{input_format}"
    if suffix is not None and suffix not in DOCUMENT_FILES:
        raise SetScoreError(unknown_name("input format", suffix[1:], [known[1:] for known in DOCUMENT_FILES]))
    if texts:
        rows = (
            InputRow(number, str(number), Document(text, str(number)), None) for number, text in enumerate(texts, 1)
        )
        return rows, len(texts)
    if file is not None and str(file) != "-":
        total = count_documents(file, columns, suffix=suffix) if errors.is_terminal else None
        found = read_documents(file, columns, suffix=suffix)
        return found if file.is_file() else awaited(found), total  # it may be a pipe
    if sys.stdin.isatty():
        errors.print("reading documents from the keyboard, one a line; end with Ctrl-D")
    return awaited(read_stream(_standard_input(), suffix, columns)), None


def _standard_input() -> io.TextIOWrapper:
    """Bytes that are not UTF-8 become an error of their row, whatever the locale says.

    Not Python's own buffer: while a thread waits in there, Python cannot end.
    """
    try:
        source: Any = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
    except io.UnsupportedOperation:  # it is no file, as in tests
        source = sys.stdin.buffer
    return io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _looks_like_a_file(text: str) -> bool:
    return text == "-" or (Path(text).suffix in (*DOCUMENT_FILES, ".gz", ".xz") and not any(map(str.isspace, text)))


def _fitted_thresholds(model: SetScoreClassifier) -> dict[str, float]:
    """By label; none where nothing was fitted."""
    if not hasattr(model, "fitted_") or model.regime == ZERO_SHOT:
        return {}
    return dict(zip(map(str, model.classes_), model.current_calibration().thresholds_.tolist(), strict=True))


class Tally:
    """What the end of a run reports: nothing is dropped or cut in silence."""

    def __init__(self, backbone: object, file: Path | None = None) -> None:
        self._file = None if str(file) == "-" else file
        self.rows = self.failed = self.truncated = self.dropped = self.repeated = self.unnamed = self.foreign = 0
        self._numbers: dict[str, int] = {}  # of the row that had an id first
        self._first_repeated = self._first_unnamed = self._first_foreign = ""
        self._model = backbone.partition("?")[0] if isinstance(backbone, str) else ""

    def lines(self, block: Sequence[InputRow], found: Predictions, *, keep: bool) -> list[Line]:
        """What is written of each row, counted; an error names the row in the file."""
        self.rows += len(block)
        self.failed += len(found.errors)
        self.truncated += int(found.scores.truncated.sum())
        self.dropped += found.dropped
        lines = []
        for row, prediction in zip(block, list(found), strict=True):
            told = prediction
            if prediction.error is not None:
                told = replace(prediction, error=f"row {row.number} {row.problem or prediction.error}")
            text = "" if row.document is None else row.document.text
            if row.own_id or row.id != str(row.number):  # a bare number is no other row's id
                self._note_id(row)
            if self._model in EMBEDDED and len(text) >= SHORTEST and likely_not_english(text):
                self.foreign += 1
                self._first_foreign = self._first_foreign or f"row {row.number}"
            raw = prediction.raw if found.competition > 0 else {}
            lines.append(Line(told, text, raw, row.values if keep else {}))
        return lines

    def _note_id(self, row: InputRow) -> None:
        """A row whose id has been there before is kept, but joining outputs by id would mix them up."""
        if not row.own_id:
            if row.document is not None:
                self.unnamed += 1
                self._first_unnamed = self._first_unnamed or row.id
        elif row.id in self._numbers:
            self.repeated += 1
            self._first_repeated = (
                self._first_repeated or f"{row.id!r} in rows {self._numbers[row.id]} and {row.number}"
            )
        elif len(self._numbers) < MOST_IDS:
            self._numbers[row.id] = row.number

    def report(self) -> None:
        if self.truncated:
            remark(f"{truncation(self.truncated, self.rows)} Use --long-documents chunk to read them whole.")
        if self.dropped:
            remark(
                f"the shortlist left out {counted(self.dropped, 'pair')} of document and label; they count as negative."
            )
        if self.foreign:
            are = f"{self.foreign} of {counted(self.rows, 'document')} {plural(self.foreign, 'is', 'are')}"
            remark(
                f"{are} likely not in English, the only language that {self._model} reads, so that their labels mean"
                f" little; the first is {self._first_foreign}."
            )
        if self.unnamed:
            have = f"{counted(self.unnamed, 'row')} {plural(self.unnamed, 'has', 'have')}"
            remark(f"{have} no id, though others have; the number stands in, as in {self._first_unnamed!r}.")
        if self.repeated:
            remark(
                f"{self.repeated} of {counted(self.rows, 'row')} {plural(self.repeated, 'repeats', 'repeat')} an id,"
                f" the first is {self._first_repeated}; all rows are kept."
            )
        if len(self._numbers) >= MOST_IDS:
            remark(f"ids were compared with the first {MOST_IDS:,} alone.")
        if self.rows == 0 and self._file is not None:
            raise DataFileError(f"{self._file} holds no documents. Give a --file with at least one row.")
        if self.rows == 0:
            raise SetScoreError("there were no documents. Give texts, a --file with some, or lines to standard input.")
        if self.failed:
            others = "; the others were classified." if self.failed < self.rows else "."
            errors.print(f"[bold red]{self.failed} of {counted(self.rows, 'row')} failed[/]{others}")
            raise typer.Exit(1)
