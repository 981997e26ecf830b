"""`setscore baseline`: what the paper compares with, measured on the same documents."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from setscore.baselines import BASELINES, GENERATIVE
from setscore.cli import options
from setscore.cli.console import for_each, remark, results
from setscore.errors import SetScoreError, unknown_name
from setscore.experiments.baselines import Measured, measure_baseline
from setscore.experiments.slices import Experiment


@options.grouped
def baseline(
    *,
    method: Annotated[str | None, typer.Argument(help=f"{', '.join(BASELINES)}.", show_default=False)] = None,
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets, as in `setscore evaluate`.", show_default=False)
    ] = None,
    documents: options.Documents,
    calibration: Annotated[str, typer.Option(help="As in `setscore evaluate`.")] = "auto",
    checkpoint: Annotated[
        str | None, typer.Option(help="A folder or repository in place of the public checkpoint.", show_default=False)
    ] = None,
    save: options.Save = None,
) -> None:
    """Measure a baseline of the paper: NLI models, the cosine, SetFit, supervised and generative models.

    Baselines that learn are trained on each seed's 200 validation documents, cross-fitted for the calibration. Saved
    scores of the others are members for `setscore ensemble`.

    Examples:

        setscore baseline cosine goemotions --data-dir DATA --save scores

        setscore baseline linear all --data-dir DATA

        setscore baseline bart-mnli-template reuters --checkpoint models/bart-large-mnli
    """
    if method not in BASELINES:
        raise SetScoreError(unknown_name("baseline", str(method), BASELINES))
    drawn, kinds = documents.drawn(), options.parse_calibrations(calibration)
    made: list[Measured] = []

    def run(load: Callable[[], Experiment]) -> None:
        made.append(measure_baseline(method, load(), drawn, kinds, checkpoint=checkpoint, save=save))

    wanted = documents.prepared(names, instead="all")
    failed = for_each({name: partial(run, load) for name, load in wanted.items()})
    _show(made)
    if method in GENERATIVE:
        remark(f"{method} writes text and has no scores: what a calibration does to it means little.")
    if failed:
        raise typer.Exit(1)


def _show(made: list[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "baseline", "decided by", "micro-F1", "macro-F1", "documents a second"):
        table.add_column(column, justify="right" if column[0] == "m" or "second" in column else "left")
    for one in made:
        rate = "" if one.documents_per_second is None else f"{one.documents_per_second:.0f}"
        for summary in one.summaries:
            if summary.kind != "model":
                continue
            cells = []
            for metric in ("micro_f1", "macro_f1"):
                mean, sd = 100 * summary.mean[metric], 100 * summary.sd[metric]
                cells.append(f"{mean:.1f} ± {sd:.1f}" if sd >= 0 else f"{mean:.1f}")
            table.add_row(escape(one.dataset), one.name, summary.name, *cells, rate)
    results.print(table)
