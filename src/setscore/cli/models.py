"""`setscore models`: the backbones by name."""

from rich.table import Table

from setscore.backbones import BACKBONES, backbone_spec
from setscore.cli.console import results


def models() -> None:
    """List the backbones that `--backbone` takes.

    Example: `setscore models`
    """
    table = Table(box=None, pad_edge=False)
    for column in ("name", "parameters", "context", "attention", "licence", "about"):
        table.add_column(column, no_wrap=column == "name")
    for name in BACKBONES:
        spec = backbone_spec(name)
        size = f"{spec.parameters / 1e6:.0f} M"
        table.add_row(name, size, str(spec.context), ", ".join(spec.attention), spec.licence, spec.summary)
    results.print(table)
