"""Options that several commands share: declared once, in groups, with what they mean."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

import setscore.calibration as calibrations
from setscore import scorers
from setscore.backbones.specs import DEFAULT_MODEL
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Columns, Dataset, find_source, load_files, parse_labels, read_documents
from setscore.datasets.dataset import left_out
from setscore.errors import DataFileError, SetScoreError
from setscore.experiments import PAPER_SETS, prepare, prepare_file
from setscore.experiments.evaluation import SLICES, Experiment, asked_by
from setscore.prompts import LAYOUTS
from setscore.prompts import Template as Wording
from setscore.records import LABEL_TEXTS, LabelSet
from setscore.shortlist import shortlist_of

CALIBRATION = (
    f"{', '.join(calibrations.CALIBRATIONS)}; with options as in platt?objective=macro_f1&most=3"
    " (docs/how-to/fitting.md)."
)
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="A folder with a folder of official files for each dataset; else they come from the Hugging Face Hub."
    ),
]
Save = Annotated[
    Path | None, typer.Option(help="A folder for the scores: re-used, and continued after an interruption.")
]
LabelText = Annotated[
    str | None,
    typer.Option(
        help="Ask labels by name and description (both), or by one of them (description, name). Default: both; for"
        " public sets, whose names are often codes, description.",
        show_default=False,
    ),
]
METHOD = "How labels are asked"  # the heading of these options in the help
Backbone = Annotated[str, typer.Option(help="See `setscore models`.", rich_help_panel=METHOD)]
Template = Annotated[str, typer.Option(help="A question by name, or with {label} in it.", rich_help_panel=METHOD)]
Attention = Annotated[str, typer.Option(help="auto, shared or exact.", rich_help_panel=METHOD)]
Verbalizer = Annotated[str, typer.Option(help="The answers to compare.", rich_help_panel=METHOD)]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        help="Your consent to what the model of a --classifier needs: remote-code or pickle. May be repeated.",
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None, typer.Option(help="... with the document's id. Default: id if it exists, else row numbers.")
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Typer has no groups of options: a parameter that is a dataclass becomes an option for each of its fields."""
    groups: dict[str, type] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if is_dataclass(kind := parameter.annotation) and isinstance(kind, type):
            groups[parameter.name] = kind
            options += inspect.signature(kind).parameters.values()
        else:
            options.append(parameter)

    @wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: kind(**{field: values.pop(field) for field in inspect.signature(kind).parameters})
            for name, kind in groups.items()
        }
        command(**values, **made)

    named = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in named}
    return run


@dataclass(frozen=True)
class Model:
    """How the labels are asked."""

    scorer: Annotated[
        str,
        typer.Option(
            help=f"The method: {', '.join(scorers.SCORERS)}; with options as in permutation?orders=8.",
            rich_help_panel=METHOD,
        ),
    ] = "per_label"
    backbone: Backbone = DEFAULT_MODEL
    template: Template = "express"
    layout: Annotated[
        str,
        typer.Option(help=f"How a question stands under its document: {', '.join(LAYOUTS)}.", rich_help_panel=METHOD),
    ] = "paper"
    attention: Attention = "auto"
    verbalizer: Verbalizer = "yes/no"
    long_documents: Annotated[
        str,
        typer.Option(
            help="truncate, chunk into overlapping windows, auto, or passages: as auto, and every passage of longer"
            " texts on its own for labels in doubt, which decides these better and takes about twice as long.",
            rich_help_panel=METHOD,
        ),
    ] = "auto"
    pool: Annotated[
        str, typer.Option(help="How windows become one score: logmeanexp, mean or max.", rich_help_panel=METHOD)
    ] = "logmeanexp"
    shortlist: Annotated[
        str | None,
        typer.Option(
            help="Ask only so many labels per document: 32, cosine:32 (the paper's), or parents; for single datasets"
            " as in eurlex=cosine:32.",
            show_default=False,
            rich_help_panel=METHOD,
        ),
    ] = None
    blend: Annotated[
        str | None,
        typer.Option(
            help="Average with a cosine: cosine (all-MiniLM-L6-v2, extra sbert) or own-cosine (setscore-mini).",
            show_default=False,
            rich_help_panel=METHOD,
        ),
    ] = None
    competition: Annotated[
        float | None,
        typer.Option(
            help="How much the labels of a document compete before anything is fitted, from 0, each on its own, to 1."
            " Default: the model's own number.",
            show_default=False,
            rich_help_panel=METHOD,
        ),
    ] = None

    def classifier(
        self,
        labels: str | None = None,
        *,
        label_text: str | None = None,
        threshold: float = 0.5,
        several: bool = False,
    ) -> SetScoreClassifier:
        """The classifier, with labels as the command line has them; a mistake is an error before anything is read."""
        names = self.scorers()
        if len(names) > 1:
            if not several:
                raise SetScoreError(f"one scorer is needed here, got {self.scorer!r}; setscore compare takes several.")
            for name in names:
                replace(self, scorer=name).classifier(labels, threshold=threshold)
        inventory = None if labels is None else parse_labels(labels).asked_by(label_text)
        given = {key: value for key, value in vars(self).items() if key != "layout"}
        if self.layout != "paper":  # the classifier's own
            given["template"] = Wording.of(self.template, self.layout)
        given["shortlist"] = self.shortlist_of(None)
        made = SetScoreClassifier(inventory, threshold=threshold, **given)
        return made if len(names) > 1 else made.check()

    def shortlist_of(self, dataset: str | None) -> str | None:
        """The shortlist of a dataset: its own where one is named, else the one for all."""
        return shortlists(self.shortlist).get(dataset, shortlists(self.shortlist).get(None))

    def scorers(self) -> tuple[str, ...]:
        """Names separated by commas; most commands take one."""
        return tuple(dict.fromkeys(name.strip() for name in self.scorer.split(",")))


def shortlists(text: str | None) -> dict[str | None, str]:
    """By dataset, as in "eurlex=cosine:32"; None stands for every other. A mistake is an error."""
    found: dict[str | None, str] = {}
    for part in [] if text is None else text.split(","):
        name, sign, value = part.strip().rpartition("=")
        shortlist_of(value)
        found[find_source(name).name if sign else None] = value
    return found


@dataclass(frozen=True)
class Documents:
    """Which documents of a named dataset are asked."""

    data_dir: DataDir = None
    slices: Annotated[
        str | None,
        typer.Option(
            help="development or paper; development when --data-dir is given, else paper.", show_default=False
        ),
    ] = None
    seeds: Annotated[str, typer.Option(help="Seeds that draw the validation documents, separated by commas.")] = (
        "13,17,23"
    )
    limit: Annotated[int | None, typer.Option(min=4, help="Only so many documents, for a quick look.")] = None

    def drawn(self) -> tuple[int, ...]:
        """13,17,23 as numbers; none twice."""
        parts = [part.strip() for part in self.seeds.split(",")]
        if not all(part.isdecimal() for part in parts) or len(set(map(int, parts))) < len(parts):
            raise SetScoreError(f"seeds are different whole numbers from 0, separated by commas; got {self.seeds!r}.")
        return tuple(map(int, parts))

    def prepared(self, names: Sequence[str] | None, *, instead: str) -> dict[str, Callable[[], Experiment]]:
        """Names that are all known, `all` spelt out, with what loads them; an unknown one is an error before that."""
        if not names:
            raise SetScoreError(f"no dataset was given. Give names (see `setscore datasets`), all, or {instead}.")
        slices, drawn = self.slices or ("paper" if self.data_dir is None else "development"), self.drawn()
        if slices not in SLICES:
            raise SetScoreError(f"--slices is {' or '.join(SLICES)}, got {slices!r}.")

        def loader(name: str) -> Callable[[], Experiment]:
            return lambda: prepare(name, slices, drawn, data_dir=self.data_dir, limit=self.limit)

        spelt = [one for name in names for one in (PAPER_SETS if name == "all" else (name,))]
        return {name: loader(name) for name in (find_source(name).name for name in dict.fromkeys(spelt))}


@dataclass(frozen=True)
class Own:
    """A user's own labelled file."""

    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Your own labelled documents: .csv, .tsv, .jsonl or .parquet.")
    ] = None
    labels: Annotated[
        str | None,
        typer.Option("--labels", "-l", help="The inventory: a .txt, .csv, .yaml or .json file, or names with commas."),
    ] = None
    text_column: Annotated[str, typer.Option(help="Column or field with the text.")] = "text"
    labels_column: Annotated[str, typer.Option(help="... with the labels: a list, or one text with a separator.")] = (
        "labels"
    )
    id_column: IdColumn = None
    separator: Annotated[
        str | None,
        typer.Option(
            help="What separates labels in one text. Default: | or, where there is none, a comma.", show_default=False
        ),
    ] = None
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave gold labels that are not in --labels out, and say which.")
    ] = False
    label_text: LabelText = None

    def inventory(self) -> LabelSet:
        """The labels as they are asked."""
        return parse_labels(str(self.labels)).asked_by(self.label_text)

    def worded(self, wanted: dict[str, Callable[[], Experiment]]) -> dict[str, Callable[[], Experiment]]:
        """Datasets with their labels as they are asked."""
        if self.label_text not in (None, *LABEL_TEXTS):
            raise SetScoreError(f"--label-text is {', '.join(LABEL_TEXTS)}, got {self.label_text!r}.")
        return {name: (lambda load=load: asked_by(load(), self.label_text)) for name, load in wanted.items()}  # type: ignore[misc]

    def load(self, group_column: str | None = None, *, inventory: LabelSet | None = None) -> Dataset:
        """The documents with their labels, and the groups of a column; an inventory that is known needs no --labels."""
        labels = inventory if self.labels is None else self.inventory()
        if self.file is None or labels is None:
            raise SetScoreError("--file needs the inventory of labels as well. Add --labels FILE.")
        return load_files(
            self.file,
            labels,
            text_column=self.text_column,
            labels_column=self.labels_column,
            id_column=self.id_column,
            group_column=group_column,
            separator=self.separator,
            ignore_unknown=self.ignore_unknown,
        )


def experiments(
    names: Sequence[str] | None,
    documents: Documents,
    own: Own,
    *,
    group_column: str | None = None,
    inventory: LabelSet | None = None,
) -> dict[str, Callable[[], Experiment]]:
    """What is measured on, by name, with what loads it: datasets, or the documents of a user's file."""
    if own.file is None:
        if group_column is not None:
            raise SetScoreError("--group-column is about your own documents. Give them with --file FILE.")
        return own.worded(documents.prepared(names, instead="--file FILE"))
    if names or documents.slices or documents.data_dir:
        raise SetScoreError("--file stands alone: remove the names of datasets, --slices and --data-dir.")
    dataset = own.load(group_column, inventory=inventory)
    return {dataset.name: lambda: prepare_file(dataset, limit=documents.limit)}


def read_texts(file: Path, columns: Columns, most: int | None = None) -> tuple[list[str], tuple[str, ...]]:
    """The first texts of a file without gold labels, and a note on rows that cannot be used; the others go on."""
    texts: list[str] = []
    problems: dict[int, str] = {}
    for row in read_documents(file, columns):
        if len(texts) == most:
            break
        if row.document is None:
            problems[row.number] = row.problem or ""
        else:
            texts.append(row.document.text)
    notes = (left_out(problems, len(texts) + len(problems)),) if problems else ()
    if not texts:
        raise DataFileError(" ".join([f"{file} holds no documents.", *notes]))
    return texts, notes


def parse_calibrations(text: str, *, several: bool = True) -> tuple[str, ...]:
    """Calibrations, perhaps with options; an unknown name or option is an error before anything is scored."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(","))) if several else (text,)
    plain = calibrations.CALIBRATIONS
    spelt = (name if name in plain else calibrations.spelt(calibrations.make(name)) for name in names)
    return tuple(dict.fromkeys(spelt))


def given(context: typer.Context, names: Sequence[str]) -> list[str]:
    """Those of the options that stand on the command line, as they are written there."""
    found = [name for name in names if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    return [f"--{name.replace('_', '-')}" for name in found]


def refuse_allow(allow: Sequence[str] | None) -> None:
    """Consent is asked for where a file names the model; on the command line the model's own name says it."""
    if allow:
        raise SetScoreError("--allow is for --classifier; with --backbone write hf:<id>?allow=remote-code.")


def check_folder(path: Path) -> None:
    """A file that cannot be written is an error before anything is scored."""
    if not path.parent.is_dir():
        raise SetScoreError(f"{path} cannot be written: the folder {path.parent} does not exist.")
