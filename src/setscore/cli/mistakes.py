"""The documents that were decided wrongly, as a table: what to read before a label is described anew."""

import csv
from pathlib import Path
from typing import Annotated

import typer

from setscore.cli.console import remark
from setscore.datasets import Dataset
from setscore.errors import counted
from setscore.experiments.scored import Outcome

COLUMNS = ("id", "text", "missed", "wrongly said", "probabilities")
BETWEEN = "|"

Mistakes = Annotated[
    Path | None,
    typer.Option("--mistakes", help="A .csv for the documents that were decided wrongly, and how.", show_default=False),
]


def write_mistakes(path: Path | None, documents: Dataset, outcome: Outcome) -> None:
    """A row for each document of which a label was missed or wrongly said, the most mistakes first; None: no file."""
    decisions, probabilities = outcome.decisions, outcome.probabilities
    if path is None or decisions is None or probabilities is None:
        return
    names = documents.labels.names
    wrong = decisions != documents.gold
    rows = sorted(wrong.any(axis=1).nonzero()[0].tolist(), key=lambda row: -int(wrong[row].sum()))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in rows:
            missed, said = (
                BETWEEN.join(name for name, here in zip(names, wrong[row] & side, strict=True) if here)
                for side in (documents.gold[row], decisions[row])
            )
            found = probabilities[row]
            sure = BETWEEN.join(f"{name} {found[n]:.2f}" for n, name in enumerate(names) if wrong[row, n])
            writer.writerow([documents.ids[row], documents.texts[row], missed, said, sure])
    remark(f"{counted(len(rows), 'document')} of {len(documents)} decided wrongly: {path}")
