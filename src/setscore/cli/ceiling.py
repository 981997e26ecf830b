"""`setscore ceiling`: what no classifier can exceed that only asks a shortlist of labels."""

from typing import Annotated

import typer
from rich.table import Table

from setscore.cli import options
from setscore.cli.console import remark, results
from setscore.datasets import Columns, read_documents
from setscore.errors import DataFileError, SetScoreError, counted, plural
from setscore.theory import shortlist_ceilings


@options.grouped
def ceiling(
    *,
    own: options.Own,
    candidates_column: Annotated[
        str, typer.Option(help="Column or field with the shortlist of each document, as names.")
    ] = "candidates",
) -> None:
    """Print the ceilings that a shortlist puts on recall and F1, from gold labels and candidates of your documents.

    With a share r of all gold labels on the shortlists, micro-recall is at most r and micro-F1 at most 2r / (1 + r);
    macro-F1 at most the mean of that over labels. Chance is what random shortlists of the same sizes would keep.

    Example:

        setscore ceiling --file documents.csv --labels labels.yaml --candidates-column shortlist
    """
    if own.file is None:
        raise SetScoreError("documents with gold labels and shortlists are needed: --file FILE --labels FILE.")
    dataset = own.load()
    rows = list(read_documents(own.file, Columns(own.text_column, own.id_column, candidates_column)))
    kept = {row.document.id: row.document.candidates for row in rows if row.document is not None}
    without = [name for name in dataset.ids if kept.get(name) is None]
    if without:
        raise DataFileError(
            f"{len(without)} of {counted(len(dataset), 'document')} {plural(len(without), 'has', 'have')} no shortlist"
            f" in {candidates_column!r}, the first is {without[0]!r}. Name the column with --candidates-column."
        )
    shortlist = dataset.labels.indicator([kept[name] or () for name in dataset.ids], what="candidate")
    found = shortlist_ceilings(dataset.gold, shortlist)
    table = Table(box=None, pad_edge=False)
    table.add_column("at most")
    table.add_column("", justify="right")
    for name, value in (
        ("micro-recall", found.micro_recall),
        ("micro-F1", found.micro_f1),
        ("macro-F1", found.macro_f1),
    ):
        table.add_row(name, f"{100 * value:.1f}")
    results.print(table)
    size = shortlist.sum(axis=1).mean()
    results.print(
        f"\n{counted(len(dataset), 'document')}, {size:.1f} of {counted(len(dataset.labels), 'label')} on a shortlist:"
        f" {100 * found.retention:.1f}% of gold labels kept ({100 * found.document_recall:.1f}% of a document's on"
        f" average), by chance {100 * found.chance:.1f}%. Hamming loss is at least {found.hamming:.4f}.",
        soft_wrap=True,
    )
    for note in dataset.notes:
        remark(note)
