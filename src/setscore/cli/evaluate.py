"""`setscore evaluate`: how good the method is on the paper's datasets or on one's own labelled file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from setscore import __version__
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.console import for_each, literal, progress, remark, results, watch
from setscore.cli.tables import percent, show_groups, show_labels, show_pairs, show_reports
from setscore.errors import DataFileError, SetScoreError
from setscore.experiments import PAPER_SETS, prepare_own
from setscore.experiments.blending import split_blend
from setscore.experiments.comparison import Method, compare_scorers
from setscore.experiments.pictures import check_plots
from setscore.experiments.report import Report, as_json, draw, paired, report, report_saved, score_parts
from setscore.experiments.scored import Scored
from setscore.experiments.slices import Experiment, load_parts, measured_whole
from setscore.records import LabelSet
from setscore.scorers import seed_of
from setscore.storage import write_json

FORMAT = "setscore.results/1"
FORMAT_SCORERS = "setscore.scorers/1"
ALL = ", ".join(PAPER_SETS)
SAVED = (
    *("scorer", "template", "backbone", "attention", "verbalizer", "long_documents", "shortlist", "blend"),
    *("calibration", "seeds", "compare", "pictures"),
)  # what a saved classifier has no use for


@options.grouped
def evaluate(
    *,
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Datasets (see `setscore datasets`); all for {ALL}.", show_default=False),
    ] = None,
    documents: options.Documents,
    calibration: Annotated[str, typer.Option(help=f"Separated by commas; of {options.CALIBRATION}")] = "auto,paper",
    model: options.Model,
    save: options.Save = None,
    yardsticks: Annotated[
        bool,
        typer.Option(
            help="Also the label prior, every label, what --blend own-cosine would give with the embedded model, and"
            " (extra sbert) the cosine of a sentence encoder."
        ),
    ] = True,
    json: Annotated[Path | None, typer.Option(help="A file for all metrics, written after each dataset.")] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="A folder for reliability diagrams and threshold curves (extra plots).")
    ] = None,
    own: options.Own,
    group_column: Annotated[
        str | None, typer.Option(help="Column or field with a group to measure by as well, such as a region.")
    ] = None,
    per_label: Annotated[bool, typer.Option("--per-label", help="Also a row for each label.")] = False,
    pairs: Annotated[
        bool, typer.Option("--paired", help="Also paired tests of the first calibration against the others.")
    ] = False,
    compare: Annotated[
        Path | None, typer.Option(help="... and against scores that another run saved there with --save.")
    ] = None,
    saved: Annotated[
        Path | None,
        typer.Option("--classifier", help="Measure a classifier that `setscore calibrate` saved; nothing is fitted."),
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

        setscore evaluate --file tickets.csv --labels labels.yaml --per-label --paired

        setscore evaluate goemotions --data-dir DATA --template writer-feeling --save other --compare scores

        setscore evaluate --file others.csv --classifier classifier.json

        setscore evaluate --file tickets.csv --labels labels.yaml --group-column region

        setscore evaluate reuters --scorer per_label,unary,permutation,jsr --calibration auto
    """
    if saved is not None and (named := options.given(context, SAVED)):
        raise SetScoreError(f"a saved classifier has its own settings; remove {', '.join(named)} or --classifier.")
    drawn, kinds = documents.drawn(), options.parse_calibrations(calibration)
    classifier = model.classifier(several=True) if saved is None else SetScoreClassifier.load(saved)
    if json is not None:
        options.check_folder(json)
    if pictures is not None:
        check_plots()
    wanted = _wanted(names, documents, own, group_column, None if saved is None else LabelSet.of(classifier.labels))
    if saved is None and (len(model.scorers()) > 1 or seed_of(model.scorers()[0]) is not None):
        if pictures or save or group_column or per_label or pairs or compare or model.blend:
            several = "--pictures, --save, --group-column, --per-label, --paired, --compare and --blend"
            raise SetScoreError(f"{several} are for one scorer that learns nothing.")
        _compare(wanted, model, drawn, kinds[0], json)
        return
    made: list[Report] = []
    alone, blend = split_blend(classifier)

    def run(name: str, load: Callable[[], Experiment]) -> None:
        ready = load() if saved is None else _aligned(measured_whole(load()), LabelSet.of(classifier.labels))
        others = None if compare is None else {str(compare): _saved_parts(compare, ready)}
        with progress() as bar:
            told = watch(bar, name)
            scored = score_parts(ready, alone, save=save, tell=told)
            if saved is None:
                found = report(ready, scored, drawn, kinds, yardsticks=yardsticks, blend=blend, save=save, tell=told)
            else:
                found = report_saved(ready, scored, classifier)
        made.append(paired(found, others, kinds[0]) if pairs or compare else found)
        if json is not None:
            _write(json, made, group_column)
        if pictures is not None:
            draw(made[-1], pictures, kinds[0])

    failed = for_each({name: partial(run, name, load) for name, load in wanted.items()})
    _show(made, group_column, per_label=per_label)
    if failed:
        raise typer.Exit(1)


def _show(made: Sequence[Report], group_column: str | None, *, per_label: bool) -> None:
    show_reports(made)
    if group_column is not None:
        show_groups(made[0], group_column)
    for one in made:
        first = one.summaries[0]
        if per_label:
            show_labels(f"{one.name}, {first.name}", [row.labels for row in first.rows.values()])
        if one.pairs:
            show_pairs(one.name, one.pairs)


def _aligned(ready: Experiment, labels: LabelSet) -> Experiment:
    """With the saved classifier's own labels, in its order and its words: thresholds belong to names, not to places."""
    parts = {}
    for part, dataset in ready.parts.items():
        ours, theirs = set(labels.names), set(dataset.labels.names)
        if ours != theirs:
            only = [
                f"only {whose} has {', '.join(sorted(names)[:5])}"
                for whose, names in (("the classifier", ours - theirs), (ready.name, theirs - ours))
                if names
            ]
            raise SetScoreError(
                f"the saved classifier was made for other labels than these: {'; '.join(only)}. Remove --labels to"
                " measure it on its own, or fit another with `setscore calibrate`."
            )
        given = {label.name: label.description for label in dataset.labels.labels}
        other = [label.name for label in labels.labels if given[label.name] not in (None, label.description)]
        note = f"descriptions are those of the saved classifier; given were others, of {', '.join(other[:5])}."
        parts[part] = dataset.with_labels(labels).noting(*([note] if other else []))
    return replace(ready, parts=parts)


def _saved_parts(folder: Path, ready: Experiment) -> dict[str, Scored]:
    """The scores of the same experiment that another run saved."""
    place = folder / ready.folder
    found = load_parts(place if place.is_dir() else folder)
    if not found:
        raise DataFileError(f"{folder} holds no scores of {ready.folder}; `setscore evaluate --save` makes them.")
    return found


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
    table = Table(title=literal(name), title_justify="left", box=None, pad_edge=False)
    for column in ("scorer", "micro-F1", "macro-F1", "at 0: micro", "macro", "forwards", "docs/s"):
        table.add_column(column, justify="left" if column == "scorer" else "right", overflow="fold")
    for method in methods:
        spreads = (method.metrics, method.uncalibrated)
        scores = [
            percent(spread, metric).replace(" ± ", "±") for spread in spreads for metric in ("micro_f1", "macro_f1")
        ]
        table.add_row(literal(method.name), *scores, f"{method.forwards:.1f}", f"{method.speed:.1f}")
    results.print(table)


def _wanted(
    names: Sequence[str] | None,
    documents: options.Documents,
    own: options.Own,
    group_column: str | None,
    inventory: LabelSet | None,
) -> dict[str, Callable[[], Experiment]]:
    """What is evaluated, by name: datasets, or the user's own file."""
    if own.file is None:
        if group_column is not None:
            raise SetScoreError("--group-column is about your own documents. Give them with --file FILE.")
        return documents.prepared(names, instead="--file FILE")
    if names or documents.slices or documents.data_dir:
        raise SetScoreError("--file stands alone: remove the names of datasets, --slices and --data-dir.")
    dataset = own.load(group_column, inventory=inventory)
    return {dataset.name: lambda: prepare_own(dataset, limit=documents.limit)}


def _write(path: Path, made: Sequence[Report], group_column: str | None) -> None:
    about = {"version": __version__} | ({} if group_column is None else {"group_column": group_column})
    write_json(path, FORMAT, {**about, "datasets": {one.name: as_json(one) for one in made}})
