"""`setscore headroom`: how much of what the scores know is lost at the threshold, as in the paper's appendix."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from setscore.cli import options
from setscore.cli.console import errors, progress, results
from setscore.cli.evaluate import dataset_names, watch
from setscore.errors import DataFileError, SetScoreError
from setscore.experiments import Scored, Summary, over_trials, prepare, trials
from setscore.experiments.report import score_parts
from setscore.experiments.slices import load_parts, saved_experiments

HONEST = {"temperature": "honest global", "auto": "honest auto"}


def headroom(  # noqa: PLR0917  typer takes options as parameters
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets, as in `setscore evaluate`.", show_default=False)
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Scores that `setscore evaluate --save` wrote, in place of names.")
    ] = None,
    data_dir: options.DataDir = None,
    slices: options.Slices = None,
    seeds: options.Seeds = "13,17,23",
    backbone: options.Backbone = "setscore-mini",
    template: options.Template = "express",
    attention: options.Attention = "auto",
    verbalizer: options.Verbalizer = "yes/no",
    long_documents: options.LongDocuments = "truncate",
    save: options.Save = None,
    limit: options.Limit = None,
) -> None:
    """Compare thresholds chosen on validation documents with oracle thresholds, chosen on the test documents.

    Honest: one global threshold, and the calibration auto. Oracle: one global threshold, and one per label, tuned for
    micro-F1 or for macro-F1. Oracle numbers are no results. Cells are micro-F1/macro-F1 in percent, means over seeds;
    the headroom is what the best oracle has over auto in micro-F1.

    Examples:

        setscore headroom goemotions --data-dir DATA --save scores

        setscore headroom --scores scores
    """
    drawn = options.parse_seeds(seeds)
    if scores is not None:
        if names:
            raise SetScoreError("give names of datasets or --scores, not both.")
        found = saved_experiments(scores)
        parts: dict[str, Callable[[], dict[str, Scored]]] = {
            path.name: lambda path=path: load_parts(path)  # type: ignore[misc]
            for path in found
        }
    else:
        chosen = slices or ("paper" if data_dir is None else "development")
        classifier = options.make_classifier(backbone, template, attention, verbalizer, long_documents)

        def score(name: str) -> dict[str, Scored]:
            ready = prepare(name, chosen, drawn, data_dir=data_dir, limit=limit)
            with progress() as bar:
                return score_parts(ready, classifier, save=save, tell=watch(bar, name))

        wanted = dataset_names(names, chosen, instead="--scores DIR")
        parts = {name: lambda name=name: score(name) for name in wanted}  # type: ignore[misc]
    made: dict[str, list[Summary]] = {}
    for name, load in parts.items():
        try:
            made[name] = over_trials(trials(load(), drawn), list(HONEST))
        except SetScoreError as error:
            if len(parts) == 1:
                raise
            errors.print(f"[bold red]{escape(name)} failed:[/] {escape(str(error))}", soft_wrap=True)
    if not made:
        raise DataFileError(f"all {len(parts)} datasets failed.")
    _show(made)
    if len(made) < len(parts):
        raise typer.Exit(1)


def _show(made: dict[str, list[Summary]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("dataset", overflow="fold", min_width=10)
    for summary in next(iter(made.values())):
        style = "dim" if summary.kind == "oracle" else ""
        name = HONEST.get(summary.name, summary.name)
        table.add_column(name, justify="right", style=style, header_style=style, min_width=9)
    table.add_column("headroom", justify="right")
    for name, summaries in made.items():
        cells = [f"{100 * one.mean['micro_f1']:.1f}/{100 * one.mean['macro_f1']:.1f}" for one in summaries]
        auto = next(one.mean["micro_f1"] for one in summaries if one.name == "auto")
        best = max(one.mean["micro_f1"] for one in summaries if one.kind == "oracle")
        table.add_row(escape(name), *cells, f"{100 * (best - auto):+.1f}")
    results.print(table)
    results.print("\nmicro-F1/macro-F1 in percent. Oracle thresholds saw the test documents.", style="dim")
