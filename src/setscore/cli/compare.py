"""`setscore compare`: several scorers beside each other, or a run beside the scores of other runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from setscore import __version__
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.console import literal, percent, progress, remark, results, show_pairs, show_reports, watch_steps
from setscore.errors import SetScoreError
from setscore.experiments.comparison import Method, compare_scorers
from setscore.experiments.evaluation import Experiment, changed
from setscore.experiments.report import Report, as_json, paired, report, score_parts
from setscore.experiments.saved import method_of, one_saved, open_folder
from setscore.experiments.scored import Scored
from setscore.scorers import seed_of
from setscore.storage import write_json

FORMAT, FORMAT_SCORERS = "setscore.results/1", "setscore.scorers/1"


@options.grouped
def compare(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets, as in `setscore evaluate`.", show_default=False)
    ] = None,
    documents: options.Documents,
    calibration: Annotated[str, typer.Option(help=f"One of {options.CALIBRATION}")] = "auto",
    model: options.Model,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="Scores of another run, as FOLDER, FOLDER/EXPERIMENT or FOLDER/EXPERIMENT/METHOD of a --save folder;"
            " may be given several times.",
            show_default=False,
        ),
    ] = None,
    save: options.Save = None,
    own: options.Own,
    json: Annotated[Path | None, typer.Option(help="A file for all metrics, written after each dataset.")] = None,
) -> None:
    """Put several scorers beside each other, with what each costs; or one run beside the scores of others.

    Scorers are given with --scorer, separated by commas. All score the same documents, decided by the same calibration.
    One that starts from another scorer's decisions is fitted on each seed's validation documents. With --against, a
    run of one scorer is tested seed by seed against scores that other runs saved of the same documents.

    Examples:

        setscore compare reuters --scorer per_label,unary,permutation,jsr

        setscore compare --file tickets.csv --labels labels.yaml --scorer per_label,unary

        setscore compare goemotions --data-dir DATA --template writer-feeling --save scores --against scores
    """
    drawn = documents.drawn()
    (kind,) = options.parse_calibrations(calibration, several=False)
    classifier = model.classifier(several=True)
    several = len(model.scorers()) > 1 or seed_of(model.scorers()[0]) is not None
    if several and (against or model.blend):
        raise SetScoreError("--against and --blend are for one scorer that learns nothing.")
    if json is not None:
        options.check_folder(json)
    store = None if save is None else open_folder(save)
    classifier.set_params(store=store)
    wanted = options.experiments(names, documents, own)
    if not against:
        _compare_scorers(wanted, model.scorers(), classifier, drawn, kind, json=json)
        return
    made: list[Report] = []
    for name, load in wanted.items():
        ready = load()
        with progress() as bar:
            told = watch_steps(bar, f"{name} ", "document")
            asked = changed(classifier, blend=None, shortlist=model.shortlist_of(name))
            scored = score_parts(ready, asked, progress=told)
            found = report(
                ready,
                scored,
                drawn,
                [kind],
                with_oracles=False,
                blend=model.blend,
                store=store,
                progress=told,
            )
        made.append(paired(found, _others(against, ready, scored), kind))
        if json is not None:
            write_json(json, FORMAT, {"version": __version__, "datasets": {one.name: as_json(one) for one in made}})
    show_reports(made)
    for one in made:
        show_pairs(one.name, one.pairs)


def _others(places: Sequence[str], ready: Experiment, scored: Mapping[str, Scored]) -> dict[str, dict[str, Scored]]:
    """The scores of the same experiment that other runs saved, by their titles; this run's own are left out."""
    ours = method_of(next(iter(scored.values())).config)
    found: dict[str, dict[str, Scored]] = {}
    for place in places:
        saved = one_saved(place, experiment=ready.saved_as, but=ours)
        title = saved.title if saved.title not in found else f"{saved.title} in {place}"
        found[title] = saved.parts()
    return found


def _compare_scorers(
    wanted: Mapping[str, Callable[[], Experiment]],
    names: Sequence[str],
    classifier: SetScoreClassifier,
    seeds: Sequence[int],
    kind: str,
    *,
    json: Path | None,
) -> None:
    """A table of the scorers for each dataset."""
    found: dict[str, dict[str, Any]] = {}
    for dataset, load in wanted.items():
        with progress() as bar:
            told = watch_steps(bar, f"{dataset}: ", "document")
            methods = compare_scorers(load(), names, classifier, seeds, kind, progress=told)
        _show_methods(dataset, methods)
        found[dataset] = {method.name: method.as_json() for method in methods}
        for method in methods:
            if method.details:
                told_ = ", ".join(f"{key} {value:.3g}" for key, value in method.details.items())
                remark(f"{method.name}, means over documents: {told_}")
        if json is not None:
            content = {"version": __version__, "seeds": list(seeds), "calibration": kind, "datasets": found}
            write_json(json, FORMAT_SCORERS, content)
    results.print(
        f'\nF1 in percent over seeds {", ".join(map(str, seeds))}, calibrated with {kind}; "at 0" decides where'
        " log-odds are above 0. Forwards a document.",
        style="dim",
    )
    if classifier.store is not None:
        results.print("docs/s is left out with --save: answers that are stored cost no time.", style="dim")


def _show_methods(name: str, methods: Sequence[Method]) -> None:
    table = Table(title=literal(name), title_justify="left", box=None, pad_edge=False)
    for column in ("scorer", "protocol", "micro-F1", "macro-F1", "at 0: micro", "macro", "forwards", "docs/s"):
        justify: Literal["left", "right"] = "left" if column in ("scorer", "protocol") else "right"
        table.add_column(column, justify=justify, overflow="fold")
    for method in methods:
        spreads = (method.metrics, method.uncalibrated)
        scores = [
            percent(spread, metric).replace(" ± ", "±") for spread in spreads for metric in ("micro_f1", "macro_f1")
        ]
        speed = "" if method.speed is None else f"{method.speed:.1f}"
        table.add_row(literal(method.name), method.protocol, *scores, f"{method.forwards:.1f}", speed)
    results.print(table)
