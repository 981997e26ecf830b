"""`setscore evaluate`: how good the method is on the paper's datasets or on one's own labelled file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from setscore import __version__
from setscore.calibration import CALIBRATIONS
from setscore.cli import options
from setscore.cli.console import errors, progress, results
from setscore.datasets import find_source
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS, Summary, prepare, prepare_own
from setscore.experiments.pictures import check_plots
from setscore.experiments.report import Report, as_json, draw, report, score_parts
from setscore.experiments.slices import SLICES, Experiment
from setscore.storage import write_json

FORMAT = "setscore.results/1"
ALL = ", ".join(PAPER_SETS)


def evaluate(  # noqa: PLR0917  typer takes options as parameters
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Datasets (see `setscore datasets`); all for {ALL}.", show_default=False),
    ] = None,
    data_dir: options.DataDir = None,
    slices: options.Slices = None,
    seeds: options.Seeds = "13,17,23",
    calibration: Annotated[
        str, typer.Option(help=f"Separated by commas; of {', '.join(CALIBRATIONS)}.")
    ] = "auto,paper",
    backbone: options.Backbone = "setscore-mini",
    template: options.Template = "express",
    attention: options.Attention = "auto",
    verbalizer: options.Verbalizer = "yes/no",
    long_documents: options.LongDocuments = "truncate",
    save: options.Save = None,
    limit: options.Limit = None,
    yardsticks: Annotated[
        bool,
        typer.Option(help="Also the label prior, every label, and (extra sbert) the cosine of a sentence encoder."),
    ] = True,
    json: Annotated[Path | None, typer.Option(help="A file for all metrics, written after each dataset.")] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="A folder for reliability diagrams and threshold curves (extra plots).")
    ] = None,
    file: options.File = None,
    labels: options.Labels = None,
    text_column: options.TextColumn = "text",
    labels_column: options.LabelsColumn = "labels",
    id_column: options.IdColumn = "id",
    separator: options.Separator = ",",
) -> None:
    """Measure micro and macro F1 on the paper's datasets or on your own labelled documents.

    For every seed a calibration is fitted on 200 validation documents and measured on others; the table shows mean and
    standard deviation over the seeds. `all` stands for goemotions, reuters, eurlex, ecthr-b (the ECtHR task nearest to
    the paper's number of labels per document), jigsaw and aapd. Rows named oracle choose their thresholds on the test
    documents: they are no results, but show what the threshold loses.

    Examples:

        setscore evaluate goemotions

        setscore evaluate all --data-dir DATA --save scores --json results.json

        setscore evaluate goemotions --data-dir DATA --limit 400 --calibration auto,platt,paper --pictures pictures

        setscore evaluate --file tickets.csv --labels labels.yaml --separator "|"
    """
    drawn, kinds = options.parse_seeds(seeds), options.parse_calibrations(calibration)
    classifier = options.make_classifier(backbone, template, attention, verbalizer, long_documents)
    if json is not None:
        options.check_folder(json)
    if pictures is not None:
        check_plots()
    if file is not None:
        if names or slices or data_dir:
            raise SetScoreError("--file stands alone: remove the names of datasets, --slices and --data-dir.")
        columns = {"text_column": text_column, "labels_column": labels_column, "id_column": id_column}
        own = options.own_documents(file, labels, **columns, separator=separator)
        wanted: dict[str, Callable[[], Experiment]] = {own.name: lambda: prepare_own(own, limit=limit)}
    else:
        chosen = slices or ("paper" if data_dir is None else "development")
        wanted = {
            name: lambda name=name: prepare(name, chosen, drawn, data_dir=data_dir, limit=limit)  # type: ignore[misc]
            for name in dataset_names(names, chosen, instead="--file FILE")
        }
    made: list[Report] = []
    failed: dict[str, SetScoreError] = {}
    for name, experiment in wanted.items():
        try:
            ready = experiment()
            with progress() as bar:
                scored = score_parts(ready, classifier, save=save, tell=watch(bar, name))
            made.append(report(ready, scored, drawn, kinds, yardsticks=yardsticks, save=save))
            if pictures is not None:
                draw(made[-1], pictures, kinds[0])
        except SetScoreError as error:
            if len(wanted) == 1:
                raise
            failed[name] = error
            errors.print(f"[bold red]{escape(name)} failed:[/] {escape(str(error))}", soft_wrap=True)
        if json is not None and made:
            write_json(json, FORMAT, {"version": __version__, "datasets": {one.name: as_json(one) for one in made}})
    if not made:
        raise SetScoreError(f"all {len(failed)} datasets failed.")
    show(made)
    if failed:
        errors.print(f"[bold red]{len(failed)} of {len(wanted)} datasets failed[/]; the others were evaluated.")
        raise typer.Exit(1)


def dataset_names(names: Sequence[str] | None, slices: str, *, instead: str) -> list[str]:
    """Names that are all known, `all` spelt out; an unknown one is an error before anything is scored."""
    if not names:
        raise SetScoreError(f"no dataset was given. Give names (see `setscore datasets`), all, or {instead}.")
    if slices not in SLICES:
        raise SetScoreError(f"--slices is {' or '.join(SLICES)}, got {slices!r}.")
    spelt = [one for name in names for one in (PAPER_SETS if name == "all" else (name,))]
    return [find_source(name).name for name in dict.fromkeys(spelt)]


def watch(bar: Progress, name: str) -> Callable[[str, int, int, str], None]:
    """Shows how far scoring is, and says once for each part what is going on."""
    tasks = {}

    def tell(part: str, done: int, total: int, message: str) -> None:
        if part not in tasks:
            errors.print(f"{escape(name)} {part}: {escape(message)}; {total} documents", soft_wrap=True)
            tasks[part] = bar.add_task(f"{name} {part}", total=total)
        bar.update(tasks[part], completed=done)

    return tell


def show(reports: Sequence[Report]) -> None:
    """One table; remarks go to standard error."""
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "decided by", "micro-F1", "macro-F1", "ECE raw", "ECE"):
        numeric = column[0] in "mE"
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric)
    for made in reports:
        for number, summary in enumerate(made.summaries):
            name = escape(made.name) if number == 0 else ""
            end = number + 1 == len(made.summaries)
            table.add_row(name, *cells(summary), style="dim" if summary.kind == "oracle" else "", end_section=end)
    results.print(table)
    seeds = ", ".join(str(trial.seed) for trial in reports[0].trials)
    spread = "mean ± standard deviation over seeds" if len(reports[0].trials) > 1 else "bootstrap intervals (95%), seed"
    results.print(f"\nF1 in percent, {spread} {seeds}.", style="dim")
    for made in reports:
        for remark in dict.fromkeys(made.remarks):
            errors.print(f"{escape(made.name)}: {escape(remark)}", soft_wrap=True)


def cells(summary: Summary) -> list[str]:
    """Name, micro-F1, macro-F1 and the two ECEs of a row."""
    scores = [_score(summary, metric) for metric in ("micro_f1", "macro_f1")]
    errors_ = [f"{summary.mean[key]:.3f}" if key in summary.mean else "" for key in ("ece_raw", "ece")]
    return [summary.name, *scores, *errors_]


def _score(summary: Summary, metric: str) -> str:
    value = f"{100 * summary.mean[metric]:.1f}"
    if len(summary.rows) > 1:
        return f"{value} ± {100 * summary.sd[metric]:.1f}"
    interval = next(iter(summary.rows.values())).intervals.get(metric)
    return value if interval is None else f"{value} ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
