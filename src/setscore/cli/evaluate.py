"""`setscore evaluate`: how good the method is on the paper's datasets or on one's own labelled file."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from setscore import __version__
from setscore.calibration import CALIBRATIONS
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.console import for_each, progress, remark, results, watch
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS, Spread, Summary, prepare_own
from setscore.experiments.comparison import Method, compare_scorers
from setscore.experiments.pictures import check_plots
from setscore.experiments.report import Report, as_json, draw, report, score_parts
from setscore.experiments.slices import Experiment
from setscore.scorers import seed_of
from setscore.storage import write_json

FORMAT = "setscore.results/1"
FORMAT_SCORERS = "setscore.scorers/1"
ALL = ", ".join(PAPER_SETS)


@options.grouped
def evaluate(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Datasets (see `setscore datasets`); all for {ALL}.", show_default=False),
    ] = None,
    documents: options.Documents,
    calibration: Annotated[
        str, typer.Option(help=f"Separated by commas; of {', '.join(CALIBRATIONS)}.")
    ] = "auto,paper",
    model: options.Model,
    save: options.Save = None,
    yardsticks: Annotated[
        bool,
        typer.Option(help="Also the label prior, every label, and (extra sbert) the cosine of a sentence encoder."),
    ] = True,
    json: Annotated[Path | None, typer.Option(help="A file for all metrics, written after each dataset.")] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="A folder for reliability diagrams and threshold curves (extra plots).")
    ] = None,
    own: options.Own,
    group_column: Annotated[
        str | None, typer.Option(help="Column or field with a group to measure by as well, such as a region.")
    ] = None,
) -> None:
    """Measure micro and macro F1 on the paper's datasets or on your own labelled documents.

    For every seed a calibration is fitted on 200 validation documents and measured on others; the table shows mean and
    standard deviation over the seeds. `all` stands for goemotions, reuters, eurlex, ecthr-b (the ECtHR task nearest to
    the paper's number of labels per document), jigsaw and aapd. Rows named oracle choose their thresholds on the test
    documents: they are no results, but show what the threshold loses.

    Several scorers, or one that starts from another, give one table with the first calibration, what each costs, and no
    yardsticks.

    Examples:

        setscore evaluate goemotions

        setscore evaluate all --data-dir DATA --save scores --json results.json

        setscore evaluate goemotions --data-dir DATA --limit 400 --calibration auto,platt,paper --pictures pictures

        setscore evaluate --file tickets.csv --labels labels.yaml --separator "|"

        setscore evaluate --file tickets.csv --labels labels.yaml --group-column region

        setscore evaluate reuters --scorer per_label,unary,permutation,jsr --calibration auto
    """
    drawn, kinds = documents.drawn(), options.parse_calibrations(calibration)
    classifier = model.classifier()
    if json is not None:
        options.check_folder(json)
    if pictures is not None:
        check_plots()
    wanted = _wanted(names, documents, own, group_column)
    if len(model.scorers()) > 1 or seed_of(model.scorers()[0]) is not None:
        if pictures is not None or save is not None or group_column is not None:
            raise SetScoreError("--pictures, --save and --group-column are for one scorer that learns nothing.")
        _compare(wanted, model, drawn, kinds[0], json)
        return
    made: list[Report] = []

    def run(name: str, load: Callable[[], Experiment]) -> None:
        ready = load()
        with progress() as bar:
            scored = score_parts(ready, classifier, save=save, tell=watch(bar, name))
        made.append(report(ready, scored, drawn, kinds, yardsticks=yardsticks, save=save))
        if json is not None:
            _write(json, made, group_column)
        if pictures is not None:
            draw(made[-1], pictures, kinds[0])

    failed = for_each({name: partial(run, name, load) for name, load in wanted.items()})
    _show(made)
    if group_column is not None:
        _show_groups(made[0], group_column)
    if failed:
        raise typer.Exit(1)


def _compare(
    wanted: Mapping[str, Callable[[], Experiment]],
    model: options.Model,
    seeds: Sequence[int],
    kind: str,
    json: Path | None,
) -> None:
    """A table of the scorers for each dataset."""
    classifier = SetScoreClassifier(**vars(model))
    found: dict[str, dict[str, Any]] = {}
    for name, load in wanted.items():
        methods = compare_scorers(load(), model.scorers(), classifier, seeds, kind, tell=remark)
        _show_methods(name, methods)
        found[name] = {method.name: method.as_json() for method in methods}
        for method in methods:
            if method.details:
                told = ", ".join(f"{key} {value:.3g}" for key, value in method.details.items())
                remark(f"{method.name}, means over documents: {told}")
        if json is not None:
            content = {"version": __version__, "seeds": list(seeds), "calibration": kind, "datasets": found}
            write_json(json, FORMAT_SCORERS, content)
    results.print(
        f'\nF1 in percent over seeds {", ".join(map(str, seeds))}, calibrated with {kind}; "at 0" decides where'
        " log-odds are above 0. Forwards a document.",
        style="dim",
    )


def _show_methods(name: str, methods: Sequence[Method]) -> None:
    table = Table(title=escape(name), title_justify="left", box=None, pad_edge=False)
    for column in ("scorer", "micro-F1", "macro-F1", "at 0: micro", "macro", "forwards", "docs/s"):
        table.add_column(column, justify="left" if column == "scorer" else "right", overflow="fold")
    for method in methods:
        spreads = (method.metrics, method.uncalibrated)
        scores = [
            _percent(spread, metric).replace(" ± ", "±") for spread in spreads for metric in ("micro_f1", "macro_f1")
        ]
        table.add_row(escape(method.name), *scores, f"{method.forwards:.1f}", f"{method.speed:.1f}")
    results.print(table)


def _wanted(
    names: Sequence[str] | None, documents: options.Documents, own: options.Own, group_column: str | None
) -> dict[str, Callable[[], Experiment]]:
    """What is evaluated, by name: datasets, or the user's own file."""
    if own.file is None:
        if group_column is not None:
            raise SetScoreError("--group-column is about your own documents. Give them with --file FILE.")
        return documents.prepared(names, instead="--file FILE")
    if names or documents.slices or documents.data_dir:
        raise SetScoreError("--file stands alone: remove the names of datasets, --slices and --data-dir.")
    dataset = own.load(group_column)
    return {dataset.name: lambda: prepare_own(dataset, limit=documents.limit)}


def _write(path: Path, made: Sequence[Report], group_column: str | None) -> None:
    about = {"version": __version__} | ({} if group_column is None else {"group_column": group_column})
    write_json(path, FORMAT, {**about, "datasets": {one.name: as_json(one) for one in made}})


def _show(reports: Sequence[Report]) -> None:
    """One table; remarks go to standard error."""
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "decided by", "micro-F1", "macro-F1", "ECE raw", "ECE"):
        numeric = column[0] in "mE"
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric)
    for made in reports:
        for number, summary in enumerate(made.summaries):
            name = escape(made.name) if number == 0 else ""
            end = number + 1 == len(made.summaries)
            table.add_row(name, *_cells(summary), style="dim" if summary.kind == "oracle" else "", end_section=end)
    results.print(table)
    seeds = ", ".join(str(trial.seed) for trial in reports[0].trials)
    spread = "mean ± standard deviation over seeds" if len(reports[0].trials) > 1 else "bootstrap intervals (95%), seed"
    results.print(f"\nF1 in percent, {spread} {seeds}.", style="dim")
    for made in reports:
        for text in dict.fromkeys(made.remarks):
            remark(f"{made.name}: {text}")


def _cells(summary: Summary) -> list[str]:
    """Name, micro-F1, macro-F1 and the two ECEs of a row."""
    scores = [_score(summary, metric) for metric in ("micro_f1", "macro_f1")]
    errors_ = [f"{summary.mean[key]:.3f}" if key in summary.mean else "" for key in ("ece_raw", "ece")]
    return [summary.name, *scores, *errors_]


def _score(summary: Summary, metric: str) -> str:
    if len(summary.rows) > 1:
        return _percent(summary, metric)
    interval = next(iter(summary.rows.values())).intervals.get(metric)
    more = "" if interval is None else f" ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
    return f"{100 * summary.mean[metric]:.1f}{more}"


def _percent(found: Summary | Spread, metric: str) -> str:
    """Mean ± standard deviation; the mean alone where there is one seed."""
    mean, sd = 100 * found.mean[metric], 100 * found.sd[metric]
    return f"{mean:.1f} ± {sd:.1f}" if sd >= 0 else f"{mean:.1f}"  # NaN is not


def _show_groups(made: Report, column: str) -> None:
    """The model's rows for each value of the column."""
    table = Table(box=None, pad_edge=False)
    for title in (column, "documents", "decided by", "micro-F1", "macro-F1", "macro-F1 present"):
        left = title in (column, "decided by")
        table.add_column(escape(title), justify="left" if left else "right", no_wrap=not left)
    models = [summary for summary in made.summaries if summary.kind == "model"]
    for value in models[0].groups:
        for number, summary in enumerate(models):
            found = summary.groups[value]
            group = [escape(value), f"{found.mean['documents']:.1f}".removesuffix(".0")] if number == 0 else ["", ""]
            scores = [_percent(found, metric) for metric in ("micro_f1", "macro_f1", "macro_f1_present")]
            table.add_row(*group, summary.name, *scores, end_section=number + 1 == len(models))
    results.print("")
    results.print(table)
    seeds = ", a mean over seeds" if len(made.trials) > 1 else ""
    present = "macro-F1 present leaves out labels without a gold document in the group"
    results.print(
        f"\nF1 in percent by {escape(column)}. Documents are those measured on{seeds}; {present}.", style="dim"
    )
