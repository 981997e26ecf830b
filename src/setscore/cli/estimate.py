"""`setscore estimate`: what a batch will take. A view of `setscore.batch.estimating`."""

from typing import Annotated

import typer
from rich.table import Table

from setscore.batch.estimating import SECONDS, Machine, Work, costs, draw, measure, on_gpu, work
from setscore.batch.folders import folder_at
from setscore.batch.inputs import STDIN, find_input
from setscore.cli import options
from setscore.cli.batch import Rows, Source, Watch
from setscore.cli.classify import Classifier, Labels, model_of
from setscore.cli.console import remark, results
from setscore.errors import SetScoreError, counted


@options.grouped
def estimate(
    *,
    context: typer.Context,
    source: Source,
    labels: Labels = None,
    label_text: options.LabelText = None,
    classifier: Classifier = None,
    allow: options.Allow = None,
    rows: Rows,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long this machine is measured.")] = SECONDS,
    machines: Annotated[str, typer.Option(help="How many of them, separated by commas.")] = "1,4,16,64",
    price: Annotated[
        float | None, typer.Option(help="Of one machine for an hour, in whatever currency.", show_default=False)
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="h200: from the measured table (docs/results/gpu.md) instead of this machine."),
    ] = None,
    asked: options.Model,
) -> None:
    """Say what a batch will take, in tokens, time, memory and money: all rows are counted, a few are scored.

    Examples:

        setscore estimate tickets.csv --labels labels.yaml --text-column body

        setscore estimate 'logs/*.jsonl.gz' --labels labels.yaml --machines 1,8 --price 0.4

        setscore estimate archive.parquet --labels labels.yaml --backbone llada-8b-instruct --gpu h200 --price 3.5
    """
    if source == STDIN:
        raise SetScoreError("an estimate reads all rows, and the batch reads them again: give a file, not -.")
    model = model_of(context, classifier, labels, asked, threshold=0.5, allow=allow, label_text=label_text)
    counts = _numbers(machines)
    found = find_input(
        source,
        folder_at("."),
        rows.columns,
        form=rows.input_format,
        limit=rows.limit,
        sample=rows.sample,
        seed=rows.seed,
    )
    with Watch() as watch:
        drawn = draw(found, watch)
        todo = work(model, drawn)
        machine = measure(model, drawn, seconds, watch) if gpu is None else on_gpu(model, todo, gpu)
    _show(todo, machine, costs(machine, counts, price))
    if gpu is not None:
        remark(
            "tokens were counted by the embedded model, and no speed was measured: docs/results/gpu.md has the table."
        )


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise SetScoreError(f"--machines are whole numbers from 1, separated by commas; got {text!r}.")
    return list(map(int, parts))


def _show(todo: Work, machine: Machine, found: list[tuple[int, float, float | None]]) -> None:
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    facts.add_column()
    facts.add_column(justify="right")
    facts.add_column(style="dim")
    unusable = f"{todo.failed:,} of them cannot be used" if todo.failed else ""
    facts.add_row("rows", f"{todo.rows:,}", unusable)
    facts.add_row("labels", f"{todo.labels:,}", f"{todo.question_tokens:,} tokens in all questions about a document")
    facts.add_row("tokens a document", f"{todo.document_tokens:,.0f}", "that are read, on average")
    facts.add_row("forwards", f"{todo.forwards:,}", f"{todo.attention} attention")
    facts.add_row("tokens to compute", f"{todo.tokens:,}", "")
    facts.add_row("time", _time(machine.seconds), "; ".join([machine.name, *_measured(machine)]))
    facts.add_row("memory", f"{machine.memory / 1e9:.1f} GB", "of one process at most" if machine.measured else "")
    results.print(facts)
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("machines", "time", *(["price"] if found[0][2] is not None else [])):
        table.add_column(heading, justify="right")
    for count, seconds, money in found:
        table.add_row(f"{count:,}", _time(seconds), *([] if money is None else [f"{money:,.2f}"]))
    results.print()
    results.print(table)


def _measured(machine: Machine) -> list[str]:
    """What the time was seen on, and how far it went up and down; what else keeps the cores busy is in it."""
    if not machine.measured:
        return []
    ends = list(dict.fromkeys([_time(machine.low), _time(machine.high)]))
    seen = f"from {counted(machine.measured, 'document')}, as busy as it is now"
    return [" to ".join(ends), seen] if len(ends) > 1 else [seen]


def _time(seconds: float) -> str:
    """In the largest unit that is not below one."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} seconds"
