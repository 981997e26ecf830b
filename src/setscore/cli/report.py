"""`setscore report`: finished runs as one HTML file, and as tables."""

from pathlib import Path
from typing import Annotated

import typer

from setscore.cli import options
from setscore.cli.console import remark
from setscore.errors import SetScoreError
from setscore.experiments.runs.needed import check_libraries


def report(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Folders of runs, or a folder that holds several.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    tables: Annotated[
        str, typer.Option(help="The table beside it as well: markdown, latex, csv, separated by commas.")
    ] = "markdown,latex,csv",
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Runs",
) -> None:
    """Write a report of finished runs: one HTML file that needs nothing else.

    Tables that are sorted by a click, bars of single labels, reliability, F1 over thresholds, accuracy against time
    with the runs that no other beats in both, the documents that were decided wrongly, and what was cut or left out.
    The page holds texts of your documents: share it as you would share them.

    Examples:

        setscore report runs

        setscore report runs/everyday-small runs/goemotions-small --out both.html --title "Two runs"
    """
    check_libraries("setscore report")
    from setscore.experiments.reporting.content import sections
    from setscore.experiments.reporting.page import write_page
    from setscore.experiments.reporting.tables import check_formats, write_tables

    if not folders:
        raise SetScoreError("no run was given. Give folders that `setscore run` made.")
    options.check_folder(out)
    formats = [name.strip() for name in tables.split(",") if name.strip()]
    check_formats(formats)
    found = sections(folders)
    made = write_tables(found, out, formats)
    write_page(found, out, title)
    for path in (out, *made):
        remark(f"wrote {path}")
