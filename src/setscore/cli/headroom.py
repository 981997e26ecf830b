"""`setscore headroom`: how much of what the scores know is lost at the threshold, as in the paper's appendix."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from setscore.cli import options
from setscore.cli.console import for_each, literal, progress, remark, results, watch_steps
from setscore.errors import SetScoreError
from setscore.experiments import Scored, Summary, over_trials, trials
from setscore.experiments.evaluation import Experiment, changed
from setscore.experiments.report import few_documents, score_parts
from setscore.experiments.saved import find_saved, open_folder

HONEST = {"temperature": "honest global", "auto": "honest auto"}


@options.grouped
def headroom(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets, as in `setscore evaluate`.", show_default=False)
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="In place of names, scores that are saved: FOLDER, FOLDER/EXPERIMENT or FOLDER/EXPERIMENT/METHOD of a"
            " --save folder."
        ),
    ] = None,
    documents: options.Documents,
    model: options.Model,
    label_text: options.LabelText = None,
    save: options.Save = None,
) -> None:
    """Compare thresholds chosen on validation documents with oracle thresholds, chosen on the test documents.

    Honest: one global threshold, and the calibration auto. Oracle: one global threshold, and one per label, tuned for
    micro-F1 or for macro-F1. Oracle numbers are no results. Cells are micro-F1/macro-F1 in percent, means over seeds;
    the headroom is what the best oracle has over auto in micro-F1. Oracles cut each label's own log-odds; auto may look
    at the document's other labels too and beat them: then there is no headroom left, and the cell says so.

    Examples:

        setscore headroom goemotions --data-dir DATA --save scores

        setscore headroom --scores scores
    """
    drawn = documents.drawn()
    made: dict[str, list[Summary]] = {}

    def run(name: str, load: Callable[[], dict[str, Scored]]) -> None:
        ready = trials(load(), drawn)
        made[name] = over_trials(ready, list(HONEST))
        for text in few_documents(ready):
            remark(f"{name}: {text}")

    parts = _parts(names, scores, documents, model, save=save, label_text=label_text)
    failed = for_each({name: partial(run, name, load) for name, load in parts})
    _show(made)
    if failed:
        raise typer.Exit(1)


def _parts(
    names: list[str] | None,
    scores: Path | None,
    documents: options.Documents,
    model: options.Model,
    *,
    save: Path | None,
    label_text: str | None,
) -> list[tuple[str, Callable[[], dict[str, Scored]]]]:
    """Names of experiments and what gives their scores: saved ones, or the model."""
    if scores is not None:
        if names:
            raise SetScoreError("give names of datasets or --scores, not both.")
        found = find_saved(scores)
        alone = Counter(one.experiment for one in found)
        return [
            (one.experiment if alone[one.experiment] == 1 else f"{one.experiment}, {one.title}", one.parts)
            for one in found
        ]
    wanted = options.Own(label_text=label_text).worded(documents.prepared(names, instead="--scores DIR"))
    classifier = model.classifier().set_params(store=None if save is None else open_folder(save))

    def score(name: str, load: Callable[[], Experiment]) -> dict[str, Scored]:
        with progress() as bar:
            asked = changed(classifier, shortlist=model.shortlist_of(name))
            return score_parts(load(), asked, progress=watch_steps(bar, f"{name} ", "document"))

    return [(name, partial(score, name, load)) for name, load in wanted.items()]


def _show(made: dict[str, list[Summary]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("dataset", overflow="fold", min_width=10)
    for summary in next(iter(made.values())):
        style = "dim" if summary.kind == "oracle" else ""
        name = HONEST.get(summary.name, summary.name)
        table.add_column(name, justify="right", style=style, header_style=style, min_width=9)
    table.add_column("headroom", justify="right")
    passed = False
    for name, summaries in made.items():
        cells = [f"{100 * one.mean['micro_f1']:.1f}/{100 * one.mean['macro_f1']:.1f}" for one in summaries]
        auto = next(one.mean["micro_f1"] for one in summaries if one.name == "auto")
        best = max(one.mean["micro_f1"] for one in summaries if one.kind == "oracle")
        left = f"{100 * (best - auto):+.1f}" if best >= auto else f"none, auto is {100 * (auto - best):.1f} above"
        passed = passed or best < auto
        table.add_row(literal(name), *cells, left)
    results.print(table)
    results.print("\nmicro-F1/macro-F1 in percent. Oracle thresholds saw the test documents.", style="dim")
    if passed:
        results.print(
            "none: oracles cut each label's own log-odds, auto looked at the other labels of the document too.",
            style="dim",
        )
