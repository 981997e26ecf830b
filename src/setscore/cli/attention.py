"""`setscore compare-attention`: what shared attention changes and saves on one's own documents."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from setscore.backbones.specs import DEFAULT_MODEL
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.console import literal, remark, results
from setscore.datasets import Columns
from setscore.errors import SetScoreError, counted
from setscore.experiments.attention import AttentionComparison, ModeScores
from setscore.experiments.attention import compare_attention as compare
from setscore.records import BoolArray


@options.grouped
def compare_attention(
    *,
    own: options.Own,
    gold: Annotated[bool, typer.Option("--gold", help="The file has a column of gold labels: report F1 too.")] = False,
    backbone: options.Backbone = DEFAULT_MODEL,
    template: options.Template = "express",
    verbalizer: options.Verbalizer = "yes/no",
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Probability from which a label applies.")] = 0.5,
    limit: Annotated[int | None, typer.Option(min=2, help="Only the first so many documents.")] = None,
) -> None:
    """Compare shared attention (the document is read once for all labels) with exact attention (once per label).

    Both modes score the same documents: the share of decisions that flip, the rank correlation of the log-odds, the
    speed and, with gold labels, F1. For block-causal models both give the same numbers.

    Examples:

        setscore compare-attention --file tickets.csv --labels labels.yaml

        setscore compare-attention --file labelled.csv --labels labels.yaml --gold --backbone llada-8b-instruct
    """
    if own.file is None or own.labels is None:
        raise SetScoreError("documents and labels are needed: --file FILE --labels FILE.")
    inventory = own.inventory()
    truth: BoolArray | None = None
    if gold:
        dataset = own.load()
        dataset = dataset if limit is None else dataset.head(min(limit, len(dataset)))
        inventory, texts, truth, notes = dataset.labels, list(dataset.texts), dataset.gold, dataset.notes
    else:
        texts, notes = options.read_texts(own.file, Columns(own.text_column, own.id_column), limit)
    classifier = SetScoreClassifier(
        inventory, backbone=backbone, template=template, verbalizer=verbalizer, threshold=threshold
    )
    show(compare(classifier, texts, truth), backbone, len(texts), len(inventory))
    for note in notes:
        remark(note)


def show(found: AttentionComparison, backbone: str, documents: int, labels: int) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("attention", "documents/s", "micro-F1", "macro-F1", "best micro-F1", "best macro-F1"):
        if found.exact.f1 is not None or "F1" not in column:
            table.add_column(column, justify="left" if column == "attention" else "right")
    for measured in (found.exact, found.shared):
        table.add_row(measured.mode, f"{measured.documents_per_second:.2f}", *_cells(measured))
    results.print(table)
    results.print(
        f"\n{literal(backbone)}, {counted(documents, 'document')}, {counted(labels, 'label')}:"
        f" {100 * found.flips:.2f}% of {counted(documents * labels, 'decision')} flip, rank correlation"
        f" {found.correlation:.4f}, largest difference of a log-odds {found.largest:.2f}; shared is"
        f" {found.speedup:.1f} times as fast.",
        soft_wrap=True,
    )


def _cells(measured: ModeScores) -> Sequence[str]:
    if measured.f1 is None or measured.best_f1 is None:
        return ()
    return [f"{100 * value:.1f}" for value in (*measured.f1, *measured.best_f1)]
