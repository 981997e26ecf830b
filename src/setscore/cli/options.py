"""Options that several commands share, and what their texts mean."""

from pathlib import Path
from typing import Annotated

import typer

import setscore.calibration as calibrations
from setscore.backbones import load_backbone
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset, load_files
from setscore.errors import SetScoreError
from setscore.prompts import Template as Wording
from setscore.scorers import PerLabelScorer

Backbone = Annotated[str, typer.Option(help="See `setscore models`.")]
Template = Annotated[str, typer.Option(help="A question by name, or with {label} in it.")]
Attention = Annotated[str, typer.Option(help="auto, shared or exact.")]
Verbalizer = Annotated[str, typer.Option(help="The answers to compare.")]
LongDocuments = Annotated[str, typer.Option(help="truncate, or chunk into overlapping windows.")]
DataDir = Annotated[
    Path | None, typer.Option(help="A folder with the official files; without it they come from the Hugging Face Hub.")
]
Slices = Annotated[
    str | None,
    typer.Option(help="development or paper; development when --data-dir is given, else paper.", show_default=False),
]
Seeds = Annotated[str, typer.Option(help="Seeds that draw the validation documents, separated by commas.")]
Limit = Annotated[int | None, typer.Option(min=4, help="Only so many documents, for a quick look.")]
Save = Annotated[
    Path | None, typer.Option(help="A folder for the scores: re-used, and gone on with after an interruption.")
]
File = Annotated[
    Path | None, typer.Option("--file", "-f", help="Your own labelled documents: .csv, .jsonl or .parquet.")
]
Labels = Annotated[
    Path | None, typer.Option("--labels", "-l", help="The inventory: a .txt, .csv, .yaml or .json file.")
]
TextColumn = Annotated[str, typer.Option(help="Column or field with the text.")]
LabelsColumn = Annotated[str, typer.Option(help="... with the labels: a list, or one text with a separator.")]
IdColumn = Annotated[str, typer.Option(help="... with the document's id; row numbers without it.")]
Separator = Annotated[str, typer.Option(help="What stands between two labels of one text.")]


def parse_seeds(text: str) -> tuple[int, ...]:
    """13,17,23 as numbers; none twice."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts) or len(set(map(int, parts))) < len(parts):
        raise SetScoreError(f"seeds are different whole numbers from 0, separated by commas; got {text!r}.")
    return tuple(map(int, parts))


def parse_calibrations(text: str, *, several: bool = True) -> tuple[str, ...]:
    """Names of calibrations; an unknown one is an error before anything is scored."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(","))) if several else (text,)
    for name in names:
        calibrations.make(name)
    return names


def check_folder(path: Path) -> None:
    """A file that cannot be written is an error before anything is scored."""
    if not path.parent.is_dir():
        raise SetScoreError(f"{path} cannot be written: the folder {path.parent} does not exist.")


def make_classifier(
    backbone: str, template: str, attention: str, verbalizer: str, long_documents: str
) -> SetScoreClassifier:
    """A classifier without labels; a mistake in its settings is an error before anything is read or fetched."""
    PerLabelScorer(Wording.of(template), long_documents)
    load_backbone(backbone, attention=attention, verbalizer=verbalizer)
    return SetScoreClassifier(
        backbone=backbone,
        template=template,
        attention=attention,
        verbalizer=verbalizer,
        long_documents=long_documents,
    )


def own_documents(
    file: Path, labels: Path | None, *, text_column: str, labels_column: str, id_column: str, separator: str
) -> Dataset:
    """A user's own labelled file."""
    if labels is None:
        raise SetScoreError("--file needs the inventory of labels as well. Add --labels FILE.")
    return load_files(
        file,
        labels,
        text_column=text_column,
        labels_column=labels_column,
        id_column=id_column,
        separator=separator,
    )
