"""`setscore sweep`: question templates on validation documents, and how sure the choice among them is."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from setscore import __version__
from setscore.cli import options
from setscore.cli.console import for_each, literal, progress, results, watch_steps
from setscore.experiments.evaluation import Experiment
from setscore.experiments.reproduction.registry import templates as paper_templates
from setscore.experiments.saved import open_folder
from setscore.experiments.sweeping import Chosen
from setscore.experiments.sweeping import sweep as sweep_templates
from setscore.prompts import QUESTIONS, Template
from setscore.storage import write_json

FORMAT = "setscore.sweep/1"


@options.grouped
def sweep(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets, as in `setscore evaluate`.", show_default=False)
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            help="A template to try: a name, or a question with {label}; several times. Without any, the paper's for"
            " the dataset, or for a file all of them.",
            show_default=False,
        ),
    ] = None,
    documents: options.Documents,
    model: options.Model,
    save: options.Save = None,
    own: options.Own,
    json: Annotated[Path | None, typer.Option(help="A file for everything that was measured.")] = None,
) -> None:
    """Try question templates on the validation documents and choose one by micro-F1, as the paper does.

    No test document is read. The default template is always among those tried. Beside each stands how often it would
    come first if the validation documents were drawn again, and for the chosen one the difference to the default with
    an interval: with 200 documents, several templates are often as good as each other.

    Examples:

        setscore sweep goemotions --data-dir DATA --save scores

        setscore sweep --file tickets.csv --labels labels.yaml --question "Is this ticket about {label}?"
    """
    drawn = documents.drawn()
    classifier = model.classifier().set_params(store=None if save is None else open_folder(save))
    if json is not None:
        options.check_folder(json)
    made: dict[str, list[Chosen]] = {}

    def run(name: str, load: Callable[[], Experiment]) -> None:
        wordings = {text: Template.of(text, model.layout) for text in _wanted(name, question, model.template)}
        with progress() as bar:
            told = watch_steps(bar, f"{name} ", "document")
            made[name] = sweep_templates(load(), classifier, wordings, drawn, progress=told)
        if json is not None:
            content = {key: [one.plain() for one in found] for key, found in made.items()}
            write_json(json, FORMAT, {"version": __version__, "label_text": own.label_text, "datasets": content})

    wanted = options.experiments(names, documents, own)
    failed = for_each({name: partial(run, name, load) for name, load in wanted.items()})
    _show(made)
    if failed:
        raise typer.Exit(1)


def _wanted(name: str, given: Sequence[str] | None, default: str) -> list[str]:
    """The default first, then what was given, or the paper's templates of the dataset."""
    known = list(paper_templates(name).values())
    others = list(given) if given else known if len(known) > 1 else list(QUESTIONS)
    return list(dict.fromkeys([default, *others]))


def _show(made: dict[str, list[Chosen]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "seed", "template", "micro-F1", "macro-F1", "first of redraws", ""):
        numeric = column.endswith("F1") or column == "first of redraws"
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for name, several in made.items():
        for one in several:
            for number, tried in enumerate(one.tried):
                head = (literal(name), str(one.seed)) if number == 0 else ("", "")
                cells = (f"{100 * tried.micro_f1:.1f}", f"{100 * tried.macro_f1:.1f}", f"{100 * tried.first:.0f}%")
                end = number + 1 == len(one.tried)
                table.add_row(*head, literal(tried.template), *cells, _note(one, tried.template), end_section=end)
    results.print(table)
    results.print(
        "\nF1 in percent on the validation documents that the calibration was fitted on: for choosing, not results.",
        style="dim",
    )


def _note(one: Chosen, template: str) -> str:
    if template != one.template:
        return ""
    found: Any = one.over_default
    if found is None:
        return "chosen, the default"
    low, high = 100 * found.low, 100 * found.high
    return f"chosen, {100 * found.difference:+.1f} ({low:+.1f} to {high:+.1f}) over the default"
