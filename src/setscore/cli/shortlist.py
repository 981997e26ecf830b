"""`setscore shortlist`: what a shortlist keeps of the gold labels, and the F1 it leaves within reach."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from setscore.cli import options
from setscore.cli.console import remark, results
from setscore.datasets import Dataset
from setscore.errors import SetScoreError, counted
from setscore.experiments.shortlists import ShortlistReport, as_json, compare_shortlists
from setscore.storage import write_json

FORMAT = "setscore.shortlist/1"


@options.grouped
def shortlist(
    *,
    name: Annotated[str | None, typer.Argument(help="A dataset (see `setscore datasets`).", show_default=False)] = None,
    k: Annotated[str, typer.Option("--k", help="Sizes of the shortlist, separated by commas.")] = "16,32,64",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="For every retriever: setscore-mini, a name of sentence-transformers, or a folder. Without it the"
            " cosine has all-MiniLM-L6-v2, as in the paper, and the fused retriever setscore-mini.",
            show_default=False,
        ),
    ] = None,
    windows: Annotated[str, typer.Option(help="Windows of 128 words that are read of a document, or all.")] = "3",
    documents: options.Documents,
    own: options.Own,
    json: Annotated[Path | None, typer.Option(help="A file for everything, retention per label included.")] = None,
) -> None:
    """Measure which share of the gold labels a shortlist keeps, and the ceilings on F1 that follow.

    The paper's retriever (cosine with the beginning of a document) stands beside the fused one, and the fused one that
    remembers 200 documents: their texts alone, or their gold labels too, as after `fit`. All are measured on the
    documents left after those are drawn.

    Examples:

        setscore shortlist eurlex --data-dir DATA

        setscore shortlist eurlex --data-dir DATA --encoder all-MiniLM-L6-v2

        setscore shortlist --file tickets.csv --labels labels.yaml --k 8,16
    """
    sizes, most = _sizes(k), _windows(windows)
    if json is not None:
        options.check_folder(json)
    dataset = _dataset(name, documents, own)
    made = compare_shortlists(dataset, sizes, seed=documents.drawn()[0], encoder=encoder, windows=most)
    _show(made)
    for text in dataset.notes:
        remark(text)
    if json is not None:
        write_json(json, FORMAT, as_json(made, dataset.labels.names))


def _sizes(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise SetScoreError(f"--k takes whole numbers from 1, separated by commas; got {text!r}.")
    return tuple(dict.fromkeys(map(int, parts)))


def _windows(text: str) -> int | None:
    if text != "all" and not (text.isdecimal() and int(text) > 0):
        raise SetScoreError(f"--windows takes a whole number from 1, or all; got {text!r}.")
    return None if text == "all" else int(text)


def _dataset(name: str | None, documents: options.Documents, own: options.Own) -> Dataset:
    if (name is None) == (own.file is None):
        raise SetScoreError("give the name of a dataset, or --file FILE with --labels FILE; one of the two.")
    if name is None:
        dataset = own.load()
        return dataset if documents.limit is None else dataset.head(min(documents.limit, len(dataset)))
    if name == "all":
        raise SetScoreError("one dataset at a time; see `setscore datasets` for their names.")
    (load,) = documents.prepared([name], instead="--file FILE").values()
    parts = load().parts
    return parts.get("pool") or parts["test"]


def _show(made: ShortlistReport) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("retriever", "k", "kept", "kept a document", "chance", "micro-F1 at most", "macro-F1 at most"):
        table.add_column(column, justify="left" if column == "retriever" else "right", no_wrap=column == "retriever")
    last = None
    for row in made.rows:
        shares = (row.found.pooled, row.found.per_document, row.found.chance)
        cells = [f"{100 * share:.1f}%" for share in shares]
        ceilings = [f"{100 * bound:.1f}" for bound in (row.found.micro_ceiling, row.found.macro_ceiling)]
        table.add_row("" if row.name == last else row.name, str(row.k), *cells, *ceilings)
        last = row.name
    results.print(table)
    results.print(
        f"\n{made.dataset}: {counted(made.documents, 'document')}, {counted(made.labels, 'label')}. kept: share of all"
        " gold labels, and the mean over documents. Texts and gold are those of"
        f" {counted(made.slice, 'other document')}.",
        style="dim",
    )
    for row in made.rows:
        if row.worst and row.k == max(one.k for one in made.rows):
            names = ", ".join(f"{name} ({100 * share:.0f}%)" for name, share in row.worst)
            remark(f"{row.name}, k={row.k}: lost most often: {names}")
