"""`setscore suggest`: which documents of a file are most worth labelling next."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from setscore.cli import options
from setscore.cli.classify import Classifier, Labels, model_of
from setscore.cli.console import literal, progress, remark, results, watch_steps
from setscore.datasets import Columns, read_documents
from setscore.datasets.dataset import left_out
from setscore.datasets.formats import open_table
from setscore.errors import DataFileError, SetScoreError, counted
from setscore.records import Document
from setscore.suggesting import Suggestion

TEXT_SHOWN = 60  # characters of a text in the table
LABELS = "labels"  # the column to fill in
COLUMNS = ("id", "text", LABELS, "in_doubt", "gain", "reasons")
OWN_COLUMNS = frozenset(COLUMNS[3:])  # that nobody else writes


@options.grouped
def suggest(
    *,
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="The documents to choose from; rows with labels are left out."),
    ] = None,
    labels: Labels = None,
    label_text: options.LabelText = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many documents to suggest.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv file for them, with an empty column `labels` to fill in."),
    ] = None,
    classifier: Classifier = None,
    allow: options.Allow = None,
    asked: options.Model,
    text_column: Annotated[str, typer.Option(help="Column or field with the text.")] = "text",
    id_column: options.IdColumn = None,
) -> None:
    """Say which documents to label next: a few that stand for all, doubtful ones counting more, and some at random.

    Label them, then `setscore calibrate` learns from them. With --classifier the documents that it was fitted on count
    as known, if a read-out was learned from them. The gain is how many of today's decisions on a document are expected
    to be wrong.

    Examples:

        setscore suggest --file documents.csv --labels labels.yaml --n 20 --output to_label.csv

        setscore calibrate --file to_label.csv --labels labels.yaml --out classifier.json

        setscore suggest --file documents.csv --classifier classifier.json --n 20
    """
    if file is None:
        raise SetScoreError("the documents to choose from are needed: --file FILE.")
    if output is not None:
        options.check_folder(output)
        if output.suffix.lower() != ".csv":
            raise SetScoreError(f"--output is a .csv file, got {output}.")
        _spare_labels(output)
    model = model_of(context, classifier, labels, asked, threshold=0.5, allow=allow, label_text=label_text)
    documents = _documents(file, Columns(text_column, id_column))
    if not documents:
        results.print(f"Nothing is left to label: every row of {literal(str(file))} has labels.")
        return
    with progress() as bar:
        found = model.suggest(documents, n, progress=watch_steps(bar, "", "document"))
    if not found:
        which = "the one document is" if len(documents) == 1 else f"all {len(documents)} documents are"
        results.print(f"Nothing is left to label: {which} labelled already, or a copy of one that is.")
        return
    texts = {one.index: documents[one.index].text for one in found}
    if output is not None:
        _write(output, found, texts)
    _show(found, texts)
    if len(found) < n:
        fewer = f"{counted(len(found), 'document')} of {n}"
        others = len(documents) - len(found)
        remark(
            f"{fewer}: the others repeat these, or what is labelled already."
            if others
            else f"{fewer}: there are no more."
        )
    if output is not None:
        remark(f"written: {output}. Fill in the column labels (several with | between them), then calibrate with it.")


def wrote(file: Path) -> bool:
    """Whether documents come from here, by the columns of their file."""
    with open_table(file) as table:
        return table.header is not None and OWN_COLUMNS.issubset(table.header)


def _spare_labels(output: Path) -> None:
    """An error where the file has labels that somebody filled in: they are not written over."""
    if not output.is_file():
        return
    with output.open(encoding="utf-8", errors="replace", newline="") as file:
        filled = any((row.get("labels") or "").strip() for row in csv.DictReader(file))
    if filled:
        raise SetScoreError(f"{output} has labels that were filled in; name another --output, or remove the file.")


def _documents(file: Path, columns: Columns) -> list[Document]:
    rows = list(read_documents(file, columns))
    problems = {row.number: row.problem or "" for row in rows if row.document is None}
    if problems:
        remark(left_out(problems, len(rows)))
    documents = [row for row in rows if row.document is not None]
    if not documents:
        raise DataFileError(f"{file} holds no documents.")
    left = [row for row in documents if not _filled(row.values.get(LABELS))]
    if labelled := len(documents) - len(left):
        remark(
            f"{counted(labelled, 'document')} of {len(documents)} left out: labelled already, in the column {LABELS!r}."
        )
    return [Document(row.document.text, row.id) for row in left if row.document is not None]


def _filled(value: Any) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def _show(found: Sequence[Suggestion], texts: dict[int, str]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("", "id", "gain", "text", "why"):
        table.add_column(column, justify="right" if column in ("", "gain") else "left", overflow="fold")
    for place, one in enumerate(found, 1):
        text = " ".join(texts[one.index].split())
        shown = text if len(text) <= TEXT_SHOWN else f"{text[: TEXT_SHOWN - 3]}..."
        table.add_row(str(place), literal(one.id), f"{one.gain:.1f}", literal(shown), literal("; ".join(one.reasons)))
    results.print(table)
    results.print("\ngain: decisions on the document that are expected to be wrong today.", style="dim")


def _write(output: Path, found: Sequence[Suggestion], texts: dict[int, str]) -> None:
    with output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for one in found:
            doubtful = "|".join(one.labels)
            writer.writerow([one.id, texts[one.index], "", doubtful, f"{one.gain:.2f}", "; ".join(one.reasons)])
