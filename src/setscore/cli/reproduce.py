"""`setscore reproduce`: the paper's tables and figures, our cell beside the paper's."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from setscore import __version__
from setscore.cli import options
from setscore.cli.console import literal, progress, remark, results, watch_steps
from setscore.errors import SetScoreError, counted
from setscore.experiments.reproduction.registry import items
from setscore.experiments.runs.needed import check_libraries
from setscore.storage import write_json

if TYPE_CHECKING:
    from setscore.experiments.reproduction.beside import Row
    from setscore.experiments.reproduction.planning import Choice
    from setscore.experiments.reproduction.registry import Asked, Item

    Chosen = Mapping[str, tuple[Item, list[Asked]]]

FORMAT, FORMAT_LIST = "setscore.reproduction/1", "setscore.reproduction-list/1"
NAMES = ", ".join(items())


def reproduce(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM...", help=f"all, or: {NAMES}.", show_default=False)
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option(help="Only METHOD/DATASET, or cells that fit a pattern; several times.", show_default=False),
    ] = None,
    show: Annotated[
        bool, typer.Option("--list", help="Only list the cells, with passes, time and memory here.")
    ] = False,
    teraflops: Annotated[
        float | None,
        typer.Option(min=0.001, help="With --list: estimate for a GPU of this speed in bf16.", show_default=False),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="In place of every diffusion backbone; rows say so. Baselines are then left out, unless --cell or"
            " --weights names them.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(help="NAME=PLACE: a folder or repository for some weights; see --list.", show_default=False),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option(
            help="paper or development; development when --data-dir is given, else paper.", show_default=False
        ),
    ] = None,
    data_dir: options.DataDir = None,
    limit: Annotated[int | None, typer.Option(min=4, help="Only so many documents, for a quick look.")] = None,
    train_limit: Annotated[int | None, typer.Option(min=1, help="Only so many training documents.")] = None,
    label_text: Annotated[
        str, typer.Option(help="Ask labels by description, as the paper does, by name, or by both.")
    ] = "description",
    out: Annotated[Path, typer.Option(help="A folder for runs, answers and results.")] = Path("reproduction"),
    json: Annotated[Path | None, typer.Option(help="A file for all rows; OUT/ITEM.json as well.")] = None,
    allow: options.Allow = None,
) -> None:
    """Reproduce tables and figures of the paper under its own protocol.

    Every cell stands beside the paper's: the difference, a bootstrap interval (95%), and whether the paper's number is
    inside. Rows made by another model or on other documents than the paper's are labelled, and never called a
    reproduction; a cell whose weights or documents are not there says what is missing, and where nothing can be
    measured at all the exit code is 1. Where the paper prints two numbers for one cell, the note says which one is
    compared with, and why.

    Runs are kept in OUT: nothing is asked twice, and an interrupted command continues when it is run again. With
    --data-dir DATA the files of goemotions lie in DATA/goemotions.

    Examples:

        setscore reproduce all --list

        setscore reproduce main --cell llada_instruct_per_label/reuters

        setscore reproduce main --backbone setscore-mini --slices development --data-dir DATA

        setscore reproduce prompt-sweep --weights llada_instruct=models/LLaDA-8B-Instruct
    """
    check_libraries("setscore reproduce")
    from setscore.backbones import check_backbone
    from setscore.experiments.reproduction.listing import chosen
    from setscore.experiments.reproduction.planning import Choice

    if not names:
        raise SetScoreError(f"no table or figure was given. Give all, or some of {NAMES}.")
    picked = chosen(names, cell or ())
    if backbone is not None:
        check_backbone(backbone)
    choice = Choice(
        backbone,
        _places(weights or ()),
        slices,
        None if data_dir is None else str(data_dir),
        limit,
        label_text,
        train_limit,
        tuple(allow or ()),
        others=backbone is None or bool(cell),
    )
    if json is not None:
        options.check_folder(json)
    if show:
        _list(picked, choice, json, teraflops)
    else:
        _measure(picked, choice, out, json)


def _places(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, sign, place = text.partition("=")
        if not sign or not name or not place:
            raise SetScoreError(f"--weights takes NAME=PLACE, as in bart_mnli=models/bart-large-mnli; got {text!r}.")
        found[name] = place
    return found


def _list(picked: "Chosen", choice: "Choice", json: Path | None, teraflops: float | None) -> None:
    from setscore.experiments.reproduction.listing import budget, duration, listed

    table = Table(box=None, pad_edge=False)
    for column in ("item", "what", "in the paper", "cells", "runs", "passes", "time", "memory"):
        numeric = column in ("cells", "runs", "passes", "time", "memory")
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric or column == "item")
    content: dict[str, Any] = {}
    for name, (item, asked) in picked.items():
        total, cells = budget(asked, choice, teraflops=teraflops), [listed(one).plain(choice) for one in asked]
        short = "" if total.fits else " !"
        numbers = (f"{len(asked)}", f"{total.runs}", f"{total.forwards:,}", duration(total.seconds))
        table.add_row(name, item.title, item.source, *numbers, f"{total.memory / 1e9:.1f} GB{short}")
        content[name] = {"title": item.title, "source": item.source, "budget": vars(total), "cells": cells}
    results.print(table)
    where = "this machine" if teraflops is None else f"a GPU with {teraflops:g} TFLOP/s"
    results.print(f"\nTime and memory are estimates for {where}, to a factor of two or three.", style="dim")
    if any(not found["budget"]["fits"] for found in content.values()):
        results.print("! does not fit into the memory that is free here.", style="dim")
    if len(picked) == 1:
        _show_cells(next(iter(content.values()))["cells"])
    if json is not None:
        write_json(json, FORMAT_LIST, {"version": __version__, "items": content})


def _show_cells(cells: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("cell", "paper", "compared with", "weights"):
        table.add_column(column, overflow="fold")
    for one in cells:
        target = one["stated"] or shown(one["target"])
        table.add_row(one["cell"], shown(one["printed"]), literal(target), ", ".join(one["weights"]))
    results.print("")
    results.print(table)


def _measure(picked: "Chosen", choice: "Choice", out: Path, json: Path | None) -> None:
    from setscore.experiments.reproduction.bench import Bench
    from setscore.experiments.reproduction.beside import rows
    from setscore.experiments.reproduction.planning import merged
    from setscore.experiments.reproduction.rendering import markdown

    out.mkdir(parents=True, exist_ok=True)
    planned = merged([one for _, asked in picked.values() for one in asked])
    content: dict[str, Any] = {}
    statuses: Counter[str] = Counter()
    for name, (item, asked) in picked.items():
        with progress() as bar:
            bench = Bench(out / "runs", choice, planned, watch_steps(bar, "", "document"))
            found = list(rows(asked, bench))
        remark(f"{name}: {bench.asked:,} questions were asked now.")
        content[name] = {"title": item.title, "source": item.source, "rows": [row.plain() for row in found]}
        write_json(out / f"{name}.json", FORMAT, {"version": __version__, "items": {name: content[name]}})
        (out / f"{name}.md").write_text(markdown(item, found), encoding="utf-8")
        if json is not None:
            write_json(json, FORMAT, {"version": __version__, "items": content})
        _show(item.title, found)
        statuses.update(row.status for row in found)
    if statuses["missing"] and not statuses["measured"]:
        raise typer.Exit(1)


def _show(title: str, found: "Sequence[Row]") -> None:
    table = Table(title=literal(title), title_justify="left", box=None, pad_edge=False)
    for column in ("cell", "ours", "interval", "paper", "difference", "inside", "by"):
        numeric = column in ("ours", "interval", "paper", "difference")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in found:
        if row.status == "measured":
            bounds = "" if row.low is None or row.high is None else f"{row.low:.1f} to {row.high:.1f}"
            inside = "" if row.inside is None else "yes" if row.inside else "no"
            by = row.by or ("" if row.reproduction else "other documents")
            cells = (shown(row.ours), bounds, shown(row.target), shown(row.difference, sign=True), inside, literal(by))
            table.add_row(row.cell, *cells)
        elif row.status == "stated":
            table.add_row(row.cell, "", "", shown(row.target), "", "", literal(row.note), style="dim")
    results.print(table)
    measured = [row for row in found if row.status == "measured"]
    same = [row for row in measured if row.reproduction]
    results.print(
        f"\n{len(measured)} of {len(found)} cells measured, {len(same)} of them with the paper's weights and documents."
        " Protocol: paper.",
        style="dim",
    )
    missing = Counter(row.note for row in found if row.status == "missing")
    for note, number in missing.items():
        remark(f"{counted(number, 'cell')} missing: {note}")


def shown(value: Any, *, sign: bool = False) -> str:
    """A printed value as the tables show it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " / ".join(shown(one, sign=sign) for one in value)
    if isinstance(value, float):
        text = f"{value:+.4g}" if sign else f"{value:.4g}"
        return f"{value:{'+' if sign else ''}.1f}" if 1 <= abs(value) < 1000 else text
    return f"{value:+}" if sign and isinstance(value, int) else str(value)
