"""`setscore ensemble`: mixtures of saved scores, their weights chosen on validation documents."""

from typing import Annotated

import typer
from rich.table import Table

from setscore.cli import options
from setscore.cli.console import literal, results
from setscore.errors import SetScoreError
from setscore.experiments import Scored, Summary
from setscore.experiments.ensembles import measure_ensembles
from setscore.experiments.saved import one_saved


def ensemble(
    members: Annotated[
        list[str] | None,
        typer.Argument(
            help="NAME=PLACE: scores that are saved, at FOLDER, FOLDER/EXPERIMENT or FOLDER/EXPERIMENT/METHOD of a"
            " --save folder.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds that draw the validation documents, separated by commas.")] = (
        "13,17,23"
    ),
    calibration: Annotated[
        str, typer.Option(help="How members and mixture are thresholded; temperature is one global threshold.")
    ] = "temperature",
) -> None:
    """Mix scorers that scored the same documents and labels, in log-odds.

    Weights come from a grid in quarters by cross-validation on the validation documents, the threshold is chosen there
    too, and everything is measured on the others. The row named oracle saw the test documents: it is no result.

    Examples:

        setscore evaluate goemotions --data-dir DATA --save scores

        setscore ensemble mini=scores/goemotions-development cosine=scores/goemotions-development/cosine
    """
    drawn = options.Documents(seeds=seeds).drawn()
    (kind,) = options.parse_calibrations(calibration, several=False)
    made = measure_ensembles(_read(members or []), drawn, kind)
    _show(made)


def _read(members: list[str]) -> dict[str, dict[str, Scored]]:
    if len(members) < 2:
        raise SetScoreError("an ensemble has at least two members: setscore ensemble a=PLACE b=PLACE.")
    found: dict[str, dict[str, Scored]] = {}
    for member in members:
        name, sign, place = member.partition("=")
        if not sign or not name or not place:
            raise SetScoreError(f"a member is NAME=PLACE, as in mini=scores/goemotions-development; got {member!r}.")
        if name in found:
            raise SetScoreError(f"two members have the name {name!r}.")
        found[name] = one_saved(place).parts()
    return found


def _show(made: list[Summary]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("scores", "micro-F1", "macro-F1", "weights by seed"):
        table.add_column(column, justify="right" if column.endswith("F1") else "left", no_wrap=column.endswith("F1"))
    for summary in made:
        cells = []
        for metric in ("micro_f1", "macro_f1"):
            mean, sd = 100 * summary.mean[metric], 100 * summary.sd[metric]
            cells.append(f"{mean:.1f} ± {sd:.1f}" if sd >= 0 else f"{mean:.1f}")
        weights = "; ".join(dict.fromkeys(row.choice for row in summary.rows.values()))
        shown = "" if summary.kind == "member" else weights
        table.add_row(literal(summary.name), *cells, literal(shown), style="dim" if summary.kind == "oracle" else "")
    results.print(table)
    seeds = ", ".join(map(str, made[0].rows))
    results.print(f"\nF1 in percent over seeds {seeds}. Oracle weights saw the test documents.", style="dim")
