"""`setscore baseline`: what the paper compares with, measured on the same documents."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from setscore import __version__
from setscore.baselines import BASELINES, GENERATIVE, load_baseline
from setscore.baselines.base import device_name
from setscore.cli import options
from setscore.cli.console import for_each, literal, progress, remark, results, watch_steps
from setscore.errors import SetScoreError
from setscore.experiments.baselines import BaselineReport, measure_baseline
from setscore.experiments.evaluation import Experiment
from setscore.experiments.report import baseline_json
from setscore.experiments.training import TRAIN, training_documents
from setscore.shortlist import Shortlist
from setscore.storage import write_json

FORMAT = "setscore.baselines/1"


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
    device: Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda or cuda:1.")] = "auto",
    train: Annotated[
        str | None,
        typer.Option(
            help="What to learn from: split, validation, or either (validation where there is no split). Default: split"
            " for a dataset, validation for a file.",
            show_default=False,
        ),
    ] = None,
    train_limit: Annotated[int | None, typer.Option(min=1, help="Only so many training documents.")] = None,
    shortlist: Annotated[
        str | None,
        typer.Option(
            help="Ask only so many labels per document: cosine:32 (the paper's); for single datasets as in"
            " eurlex=cosine:32.",
            show_default=False,
        ),
    ] = None,
    save: options.Save = None,
    json: Annotated[Path | None, typer.Option(help="A file for all metrics, written after each dataset.")] = None,
    own: options.Own,
) -> None:
    """Measure a baseline of the paper: NLI models, the cosine, SetFit, supervised and generative models.

    Baselines that learn are trained on the training split, without the texts that are measured. With --train validation
    they learn from each seed's 200 validation documents instead, cross-fitted for the calibration. Saved scores are
    members for `setscore ensemble`; a training that was stopped continues.

    Examples:

        setscore baseline cosine goemotions --data-dir DATA --save scores

        setscore baseline linear all --data-dir DATA --train either

        setscore baseline bart-mnli-template reuters --checkpoint models/bart-large-mnli

        setscore baseline linear --file tickets.csv --labels labels.yaml
    """
    given = {"device": device} | ({} if checkpoint is None else {"checkpoint": checkpoint})
    load_baseline(str(method), **given)  # an unknown name is an error before anything is read
    if device != "auto":
        device_name(device)  # and so is a device that is not there
    drawn, kinds = documents.drawn(), options.parse_calibrations(calibration)
    learns_from = train or ("split" if own.file is None else "validation")
    if learns_from not in TRAIN:
        raise SetScoreError(f"--train is {', '.join(TRAIN)}; got {train!r}.")
    if own.file is not None and learns_from == "split":
        raise SetScoreError("a file has no training split: leave --train out, and its validation documents are used.")
    if json is not None:
        options.check_folder(json)
    made: list[BaselineReport] = []
    cuts = options.shortlists(shortlist)

    def run(name: str, load: Callable[[], Experiment]) -> None:
        ready, cut = load(), cuts.get(name, cuts.get(None))
        learn = None
        if own.file is None:
            learn = training_documents(str(method), ready, learns_from, data_dir=documents.data_dir, limit=train_limit)
        with progress() as bar:
            told = watch_steps(bar)
            made.append(
                measure_baseline(
                    str(method),
                    ready,
                    drawn,
                    kinds,
                    options=given,
                    training=learn,
                    shortlist=None if cut is None else Shortlist.of(cut),
                    save=save,
                    progress=told,
                )
            )
        if json is not None:
            datasets = {one.dataset: baseline_json(one) for one in made}
            write_json(json, FORMAT, {"version": __version__, "datasets": datasets})

    wanted = options.experiments(names, documents, own)
    failed = for_each({name: partial(run, name, load) for name, load in wanted.items()})
    _show(made)
    for one in made:
        for text in one.remarks:
            remark(f"{one.dataset}: {text}")
    if method in GENERATIVE:
        remark(f"{method} writes text and has no scores: its decisions are measured as they are.")
    if failed:
        raise typer.Exit(1)


def _show(made: list[BaselineReport]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "baseline", "decided by", "protocol", "micro-F1", "macro-F1", "documents a second"):
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
            table.add_row(literal(one.dataset), one.name, summary.name, summary.protocol, *cells, rate)
    results.print(table)
