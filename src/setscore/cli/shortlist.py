"""`setscore shortlist`: what a shortlist keeps of the gold labels, and the F1 it leaves within reach."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from setscore.cli import options
from setscore.cli.console import remark, results
from setscore.datasets import Columns, Dataset, read_documents
from setscore.errors import DataFileError, SetScoreError, counted, plural
from setscore.experiments.shortlists import ShortlistReport, as_json, ceilings_json, compare_shortlists
from setscore.records import BoolArray
from setscore.storage import write_json
from setscore.theory import shortlist_ceilings

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
    candidates_column: Annotated[
        str | None,
        typer.Option(
            help="Column or field with shortlists of your own, as names: their ceilings, and nothing is retrieved.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="A file for everything, retention per label included.")] = None,
) -> None:
    """Measure which share of the gold labels a shortlist keeps, and the ceilings on F1 that follow.

    The paper's retriever (cosine with the beginning of a document) stands beside the fused one, and the fused one that
    remembers 200 documents: their texts alone, or their gold labels too, as after `fit`. None is measured on a document
    that it remembers: with the paper's slices on all test documents, else on those left after the 200 are drawn.

    With a share r of all gold labels on the shortlists, micro-recall is at most r and micro-F1 at most 2r / (1 + r);
    macro-F1 at most the mean of that over labels. Chance is what random shortlists of the same sizes would keep.

    Examples:

        setscore shortlist eurlex --data-dir DATA

        setscore shortlist eurlex --data-dir DATA --encoder all-MiniLM-L6-v2

        setscore shortlist --file tickets.csv --labels labels.yaml --k 8,16

        setscore shortlist --file documents.csv --labels labels.yaml --candidates-column shortlist
    """
    if json is not None:
        options.check_folder(json)
    if candidates_column is not None:
        _show_ceilings(own, candidates_column, json)
        return
    sizes, most = _sizes(k), _windows(windows)
    dataset, labelled = _dataset(name, documents, own)
    made = compare_shortlists(
        dataset, sizes, labelled=labelled, seed=documents.drawn()[0], encoder=encoder, windows=most
    )
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


def _dataset(name: str | None, documents: options.Documents, own: options.Own) -> tuple[Dataset, Dataset | None]:
    """The documents to measure on, and others to remember where there are any: the paper's slices have both."""
    if (name is None) == (own.file is None):
        raise SetScoreError("give the name of a dataset, or --file FILE with --labels FILE; one of the two.")
    if name is None:
        dataset = own.load()
        return dataset if documents.limit is None else dataset.head(min(documents.limit, len(dataset))), None
    if name == "all":
        raise SetScoreError("one dataset at a time; see `setscore datasets` for their names.")
    (load,) = own.worded(documents.prepared([name], instead="--file FILE")).values()
    parts = load().parts
    if "pool" in parts:
        return parts["pool"], None
    return parts["test"], parts[f"validation-{documents.drawn()[0]}"]


def _show(made: ShortlistReport) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("retriever", "k", "kept", "kept a document", "chance", "micro-F1 at most", "macro-F1 at most"):
        table.add_column(column, justify="left" if column == "retriever" else "right", no_wrap=column == "retriever")
    last = None
    for row in made.rows:
        shares = (row.found.retention, row.found.document_recall, row.found.chance)
        cells = [f"{100 * share:.1f}%" for share in shares]
        ceilings = [f"{100 * bound:.1f}" for bound in (row.found.micro_f1, row.found.macro_f1)]
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


def _show_ceilings(own: options.Own, column: str, json: Path | None) -> None:
    """The ceilings that the shortlists in a column put on recall and F1."""
    if own.file is None:
        raise SetScoreError("documents with gold labels and shortlists are needed: --file FILE --labels FILE.")
    dataset = own.load()
    if not dataset.gold.any():
        raise DataFileError(f"{dataset.name} has no gold labels, so a shortlist can lose none.")
    shortlist = _shortlists(own, dataset, column)
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
    results.print(
        f"\n{counted(len(dataset), 'document')}, {found.asked:.1f} of {counted(len(dataset.labels), 'label')} on a"
        f" shortlist: {100 * found.retention:.1f}% of gold labels kept ({100 * found.document_recall:.1f}% of a"
        f" document's on average), by chance {100 * found.chance:.1f}%. Hamming loss is at least {found.hamming:.4f}.",
        soft_wrap=True,
    )
    for note in dataset.notes:
        remark(note)
    if json is not None:
        about = {"dataset": dataset.name, "documents": len(dataset), "labels": len(dataset.labels), "column": column}
        more = {"asked": found.asked, "hamming_floor": found.hamming}
        write_json(json, FORMAT, about | more | ceilings_json(found, dataset.labels.names))


def _shortlists(own: options.Own, dataset: Dataset, column: str) -> BoolArray:
    """The shortlist of every document [n_documents, n_labels]."""
    assert own.file is not None
    rows = list(read_documents(own.file, Columns(own.text_column, own.id_column, column)))
    kept = {row.document.id: row.document.candidates for row in rows if row.document is not None}
    if without := [name for name in dataset.ids if kept.get(name) is None]:
        raise DataFileError(
            f"{len(without)} of {counted(len(dataset), 'document')} {plural(len(without), 'has', 'have')} no shortlist"
            f" in {column!r}, the first is {without[0]!r}. Name the column with --candidates-column."
        )
    return dataset.labels.indicator([kept[name] or () for name in dataset.ids], what="candidate")
