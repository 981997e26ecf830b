"""`setscore datasets`: the datasets by name, and the card of one."""

from typing import Annotated

import typer
from rich.table import Table

from setscore.cli.console import literal, results
from setscore.datasets import DATASETS, card, find_source


def datasets(
    name: Annotated[str | None, typer.Argument(help="A dataset, to see its card.", show_default=False)] = None,
) -> None:
    """List the datasets that `setscore evaluate` takes, or show the card of one: source, licence, what differs.

    Examples:

        setscore datasets

        setscore datasets reuters
    """
    if name is not None:
        results.print("\n".join(card(find_source(name))), markup=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "labels", "train", "validation", "test", "paper slice", "licence"):
        numeric = column not in ("name", "licence")
        table.add_column(column, justify="right" if numeric else "left", no_wrap=column != "licence")
    for key, source in DATASETS.items():
        sizes = [
            f"{source.sizes[split]:,}" if split in source.sizes else "-" for split in ("train", "validation", "test")
        ]
        paper = "-" if source.test_size is None else f"{source.test_size:,}"
        table.add_row(key, str(source.labels), *sizes, paper, literal(source.licence))
    results.print(table)
