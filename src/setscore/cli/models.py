"""`setscore models`: the backbones by name, and a check of one."""

from typing import Annotated

import typer
from rich.table import Table

from setscore.backbones import BACKBONES, backbone_spec, load_backbone
from setscore.cli import options
from setscore.cli.console import literal, results


def models(
    check: Annotated[
        str | None,
        typer.Option(help="Load this backbone and print what was verified.", show_default=False, metavar="NAME"),
    ] = None,
    verbalizer: options.Verbalizer = "yes/no",
    attention: options.Attention = "auto",
) -> None:
    """List the backbones that `--backbone` takes, or load one and say what was verified.

    A name may end in options: `llada-8b-instruct?dtype=int8&device=cuda:1&chat=true`. Beside the names listed here,
    `hf:<id>` is any masked language model of transformers, and a checkpoint's folder or a .gguf file is taken too.

    Examples:

        setscore models

        setscore models --check setscore-small

        setscore models --check "llada-8b-base?dtype=int8"
    """
    if check is not None:
        backbone = load_backbone(check, attention=attention, verbalizer=verbalizer)
        describe = getattr(backbone, "facts", None)
        facts = describe() if describe else {"name": backbone.spec.name}
        width = max(map(len, facts)) + 2
        for key, value in facts.items():
            results.print(f"{key:{width}}{literal(value)}", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "size", "context", "native", "about"):  # one line each in 80 columns
        table.add_column(column, no_wrap=column != "about")
    for name in BACKBONES:
        spec = backbone_spec(name)
        size = f"{spec.parameters / 1e6:.0f} M" if spec.parameters < 1e9 else f"{spec.parameters / 1e9:.1f} B"
        table.add_row(name, size, str(spec.context), spec.attention[0], spec.summary)
    results.print(table)
