"""`setscore evaluate`: how good the method is on the paper's datasets or on one's own labelled file."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from setscore import __version__, fitting
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.agreement import agreement
from setscore.cli.console import (
    for_each,
    progress,
    show_groups,
    show_labels,
    show_pairs,
    show_plain,
    show_reports,
    watch_steps,
)
from setscore.cli.mistakes import Mistakes, write_mistakes
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS
from setscore.experiments.evaluation import Experiment, changed, measured_whole
from setscore.experiments.learning import Learner
from setscore.experiments.pictures import check_plots
from setscore.experiments.report import Report, as_json, draw, paired, report, report_saved, score_parts
from setscore.experiments.saved import open_folder
from setscore.experiments.scored import UNFITTED
from setscore.predictions import LEARNED
from setscore.records import LabelSet
from setscore.scorers import seed_of
from setscore.storage import write_json

FORMAT = "setscore.results/1"
ALL = ", ".join(PAPER_SETS)
SAVED = (
    *("scorer", "template", "backbone", "attention", "verbalizer", "long_documents", "pool", "shortlist", "blend"),
    *("layout", "label_text", "competition", "calibration", "seeds", "pictures", "head"),
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
    calibration: Annotated[str, typer.Option(help=f"One or more, with commas: {options.CALIBRATION}")] = "auto,paper",
    model: options.Model,
    save: options.Save = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Everything there is to say: one plain table first, then yardsticks, oracles, labels, tests."
        ),
    ] = False,
    yardsticks: Annotated[
        bool | None,
        typer.Option(
            "--yardsticks/--no-yardsticks",
            help="Also the label prior, every label, what --blend own-cosine would give with the embedded model, and"
            " (extra sbert) the cosine of a sentence encoder. Default: for datasets, and with --all.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="A file for all metrics, written after each dataset.")] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="A folder for reliability diagrams and threshold curves (extra plots).")
    ] = None,
    own: options.Own,
    group_column: Annotated[
        str | None, typer.Option(help="Column or field with a group to measure by as well, such as a region.")
    ] = None,
    head: Annotated[
        str,
        typer.Option(
            help="readout adds a row for what `fit` learns on top of the scores, none shows calibrations alone, auto"
            " adds it if auto is among the calibrations."
        ),
    ] = "auto",
    per_label: Annotated[
        bool,
        typer.Option(
            "--per-label",
            help="Also a row for each label: as the first row decides, what was learned, and threshold 0.5.",
        ),
    ] = False,
    pairs: Annotated[
        bool, typer.Option("--paired", help="Also paired tests of the first calibration against the others.")
    ] = False,
    saved: Annotated[
        Path | None,
        typer.Option("--classifier", help="Measure a classifier that `setscore calibrate` saved; nothing is fitted."),
    ] = None,
    mistakes: Mistakes = None,
    allow: options.Allow = None,
) -> None:
    """Measure micro and macro F1 on datasets by name or on your own labelled documents.

    For every seed a calibration is fitted on 200 validation documents and measured on others; the table shows mean and
    standard deviation over the seeds. Beside the calibrations stands what `fit` learns from the same documents, and the
    classifier before `fit` (threshold 0.5). `all` stands for the paper's sets: goemotions, reuters, eurlex, ecthr-b
    (the ECtHR task nearest to the paper's number of labels per document), jigsaw and aapd. Rows named oracle choose
    their thresholds on the test documents: they are no results, but show what the threshold loses. `setscore compare`
    puts several scorers, or another run's scores, beside each other. With --data-dir DATA the files of goemotions lie
    in DATA/goemotions.

    Examples:

        setscore evaluate goemotions

        setscore evaluate all --data-dir DATA --save scores --json results.json

        setscore evaluate goemotions --data-dir DATA --limit 400 --calibration auto,platt,paper --pictures pictures

        setscore evaluate --file tickets.csv --labels labels.yaml

        setscore evaluate --file tickets.csv --labels labels.yaml --all

        setscore evaluate --file others.csv --classifier classifier.json --mistakes mistakes.csv

        setscore evaluate --file tickets.csv --labels labels.yaml --group-column region
    """
    if saved is not None and (named := options.given(context, SAVED)):
        raise SetScoreError(f"a saved classifier has its own settings; remove {', '.join(named)} or --classifier.")
    drawn, kinds = documents.drawn(), options.parse_calibrations(calibration)
    store = None if save is None else open_folder(save)
    classifier = _classifier(model, saved, allow).set_params(store=store)
    learning = [kind for kind in kinds if fitting.learns(head, kind)] if saved is None else []
    if mistakes is not None and saved is None:
        raise SetScoreError(
            "--mistakes is for --classifier: without one, documents are decided once for every seed."
            " `setscore calibrate --mistakes FILE` lists those of a classifier that it fits."
        )
    for path in (json, mistakes):
        if path is not None:
            options.check_folder(path)
    if pictures is not None:
        check_plots()
    inventory = None if saved is None else LabelSet.of(classifier.labels)
    wanted = options.experiments(names, documents, own, group_column=group_column, inventory=inventory)
    whole = everything or own.file is None
    beside = whole if yardsticks is None else yardsticks
    made: list[Report] = []

    def run(name: str, load: Callable[[], Experiment]) -> None:
        ready = load() if inventory is None else _aligned(measured_whole(load()), inventory)
        with progress() as bar:
            told = watch_steps(bar, f"{name} ", "document")
            if inventory is None:
                asked = changed(classifier, blend=None, shortlist=model.shortlist_of(name))
                found = report(
                    ready,
                    score_parts(ready, asked, embed=bool(learning), progress=told),
                    drawn,
                    kinds,
                    yardsticks=beside,
                    with_oracles=whole,
                    blend=model.blend,
                    store=store,
                    learner=Learner.of(asked, _labels(ready), learning[0]) if learning else None,
                    progress=told,
                )
            else:
                found = report_saved(ready, classifier, yardsticks=beside, with_oracles=whole, progress=told)
                (dataset,), (outcome,) = ready.parts.values(), found.summaries[0].rows.values()
                write_mistakes(mistakes, dataset, outcome)
        made.append(paired(found, None, kinds[0]) if pairs or everything else found)
        if json is not None:
            _write(json, made, group_column)
        if pictures is not None:
            draw(made[-1], pictures, kinds[0])

    failed = for_each({name: partial(run, name, load) for name, load in wanted.items()})
    if everything:
        show_plain(made)
    _show(made, group_column, per_label=per_label or everything)
    if failed:
        raise typer.Exit(1)


def _classifier(model: options.Model, saved: Path | None, allow: Sequence[str] | None) -> SetScoreClassifier:
    """One scorer that learns nothing, or the saved classifier."""
    if saved is not None:
        return SetScoreClassifier.load(saved, allow=allow or [])
    options.refuse_allow(allow)
    classifier = model.classifier()
    if classifier.scorer != "per_label" and seed_of(classifier.scorer) is not None:
        raise SetScoreError(
            f"{classifier.scorer} learns from each seed's validation documents: setscore compare --scorer"
            f" {classifier.scorer} measures it."
        )
    return classifier


def _labels(ready: Experiment) -> LabelSet:
    """Of an experiment: all of its parts have the same."""
    return next(iter(ready.parts.values())).labels


def _show(made: Sequence[Report], group_column: str | None, *, per_label: bool) -> None:
    show_reports(made)
    if group_column is not None:
        show_groups(made[0], group_column)
    for one in made:
        if per_label:
            first, *others = one.summaries
            shown = [first, *(summary for summary in others if summary.name in (LEARNED, UNFITTED))]
            show_labels(
                {f"{one.name}, {summary.name}": [run.labels for run in summary.rows.values()] for summary in shown}
            )
        if one.pairs:
            show_pairs(one.name, one.pairs)


def _aligned(ready: Experiment, labels: LabelSet) -> Experiment:
    """With the saved classifier's own labels, in its order and its words: thresholds belong to names, not to places."""
    parts = {}
    for part, dataset in ready.parts.items():
        note = agreement(labels, dataset.labels, ready.name)
        parts[part] = dataset.with_labels(labels).noting(*([note] if note else []))
    return replace(ready, parts=parts)


def _write(path: Path, made: Sequence[Report], group_column: str | None) -> None:
    about = {"version": __version__} | ({} if group_column is None else {"group_column": group_column})
    write_json(path, FORMAT, {**about, "datasets": {one.name: as_json(one) for one in made}})
