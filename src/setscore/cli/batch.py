"""`setscore batch`: files of any size to files, a row for each row. A view of `setscore.batch.run_batch`."""

from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Annotated, Self

import typer
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from setscore.batch import SHARD_ROWS, Engine, Layout, Summary, processes, run_batch
from setscore.batch.layouts import SPREADS, WRITERS
from setscore.batch.ray_engine import RayEngine
from setscore.cli import options
from setscore.cli.classify import Classifier, Labels, model_of
from setscore.cli.console import bar_of, errors, remark
from setscore.datasets import DOCUMENT_FILES, Columns
from setscore.errors import SetScoreError, counted, truncation, unknown_name
from setscore.store import open_store

ENGINES = ("local", "ray")
GIB = 2**30
TOLD_EVERY = 60.0  # seconds, where no terminal shows a bar
SCALE = "Who does the work"
Source = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help=f"A file ({', '.join(DOCUMENT_FILES)}, perhaps .gz, .xz or .zst), a folder, a glob in quotes, an address"
        " such as s3://bucket/folder, or - for standard input.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Rows:
    """Which rows are read, and where they keep what."""

    text_column: Annotated[str, typer.Option(help="Column or field with the text.")] = "text"
    id_column: options.IdColumn = None
    candidates_column: Annotated[
        str, typer.Option(help="... with the labels to ask for this document only, if there is one.")
    ] = "candidates"
    input_format: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(known[1:] for known in DOCUMENT_FILES)}; without it by each file's ending, txt for stdin."
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many rows, from the beginning.")] = None
    sample: Annotated[float | None, typer.Option(help="Only this share of rows, as 0.01, drawn with --seed.")] = None
    seed: Annotated[int, typer.Option(help="The random seed of --sample.")] = 0

    @property
    def columns(self) -> Columns:
        return Columns(self.text_column, self.id_column, self.candidates_column)


@dataclass(frozen=True)
class Scale:
    """Who does the work."""

    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes with a model each. Default: 1; with Ray, one fewer than CPUs.",
            show_default=False,
            rich_help_panel=SCALE,
        ),
    ] = None
    engine: Annotated[str, typer.Option(help="local (this machine), or ray (extra ray).", rich_help_panel=SCALE)] = (
        "local"
    )
    address: Annotated[
        str | None,
        typer.Option(
            help="Of a Ray cluster; auto on one of its machines. Without it Ray starts here.", rich_help_panel=SCALE
        ),
    ] = None
    gpus: Annotated[
        float, typer.Option(min=0, help="GPUs that Ray's workers share.", show_default=False, rich_help_panel=SCALE)
    ] = 0

    def chosen(self) -> Engine:
        if self.engine not in ENGINES:
            raise SetScoreError(unknown_name("engine", self.engine, ENGINES))
        if self.engine == "ray":
            return RayEngine(self.address, self.workers, self.gpus)
        if self.address is not None or self.gpus:
            raise SetScoreError("--address and --gpus are for Ray; add --engine ray.")
        return processes(self.workers or 1)


@options.grouped
def batch(
    *,
    context: typer.Context,
    source: Source,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="A .parquet, .jsonl or .csv file, or a folder of such files; here or at an address.",
            show_default=False,
        ),
    ],
    labels: Labels = None,
    label_text: options.LabelText = None,
    classifier: Classifier = None,
    allow: options.Allow = None,
    threshold: Annotated[float, typer.Option(help="Probability from which a label applies.")] = 0.5,
    rows: Rows,
    form: Annotated[
        str | None, typer.Option("--format", help=f"Of a folder: {', '.join(WRITERS)}.", show_default="parquet")
    ] = None,
    probabilities: Annotated[
        str | None,
        typer.Option(
            help=f"{' or '.join(SPREADS)}: one list in the order of the labels, or a column per label.",
            show_default="list, in CSV columns",
        ),
    ] = None,
    log_odds: Annotated[bool, typer.Option("--log-odds", help="Write the answers themselves too.")] = False,
    shard_rows: Annotated[
        int, typer.Option(min=1, help="Rows that are scored and written together: what being killed may cost.")
    ] = SHARD_ROWS,
    force: Annotated[bool, typer.Option("--force", help="Start over where OUT holds another batch.")] = False,
    scale: Scale,
    store: Annotated[
        Path | None, typer.Option(help="A folder that keeps every answer, for texts that are scored again.")
    ] = None,
    store_size: Annotated[
        float | None, typer.Option(help="... and at most how many GiB it keeps.", show_default="16")
    ] = None,
    asked: options.Model,
) -> None:
    """Score files of any size: a row out for each row in, in order. Run the same command again to continue.

    Examples:

        setscore batch tickets.csv labelled.parquet --labels labels.yaml --text-column body

        setscore batch 'logs/*.jsonl.gz' out/ --classifier classifier.json --workers 4

        setscore batch s3://bucket/texts s3://bucket/labelled --labels labels.yaml --engine ray --address auto

        zcat notes.txt.gz | setscore batch - notes.jsonl --labels oil,sports
    """
    model = model_of(context, classifier, labels, asked, threshold=threshold, allow=allow, label_text=label_text)
    if store is not None:
        model.set_params(store=open_store(store, None if store_size is None else round(store_size * GIB)))
    elif store_size is not None:
        raise SetScoreError("--store-size is about --store FOLDER. Add it.")
    with Watch() as watch:
        summary = run_batch(
            model,
            source,
            out,
            layout=Layout.of(out, form, probabilities, log_odds=log_odds),
            columns=rows.columns,
            input_format=rows.input_format,
            limit=rows.limit,
            sample=rows.sample,
            seed=rows.seed,
            shard_rows=shard_rows,
            force=force,
            engine=scale.chosen(),
            progress=watch,
        )
    _report(summary, out)


def _report(summary: Summary, out: str) -> None:
    for note in summary.notes:
        remark(note)
    if summary.truncated:
        remark(f"{truncation(summary.truncated, summary.rows)} Use --long-documents chunk to read them whole.")
    if summary.dropped:
        remark(f"the shortlist left out {counted(summary.dropped, 'pair')} of document and label.")
    new = summary.rows - summary.reused
    rate = f", {new / max(summary.seconds, 1e-9):.0f} rows a second" if new else ""
    reused = f"; {counted(summary.reused, 'row')} of them were there" if summary.reused else ""
    remark(
        f"{counted(summary.rows, 'row')} in {out}{reused}; {summary.seconds:.1f} s{rate}; identity {summary.identity}."
    )
    if summary.failed:
        errors.print(f"[bold red]{summary.failed} of {counted(summary.rows, 'row')} failed[/]; each says why in error.")
        raise typer.Exit(1)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")


class Watch:
    """A bar with rate and time left on a terminal; elsewhere a line a minute. Says how far it was when interrupted."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        self.bar = bar_of(*columns, disable=not errors.is_terminal)
        self._what, self._begun, self._first, self._told, self._far = "", 0.0, 0, 0.0, ""
        self._task = self.bar.add_task("", total=None, start=False)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.bar.stop()
        if kind is KeyboardInterrupt and self._far:
            remark(f"interrupted: {self._far} rows are done. The same command again goes on from there.")
            raise typer.Exit(130)

    def __call__(self, what: str, done: int, total: int) -> None:
        now = monotonic()
        if what != self._what:
            self._what, self._begun, self._first, self._told = what, now, done, now
            self.bar.remove_task(self._task)
            self._task = self.bar.add_task(what, total=total or None, completed=done)
        self.bar.update(self._task, completed=done)
        self._far = f"{done} of {total}" if total else ""
        if self.bar.disable and now - self._told >= TOLD_EVERY:
            self._told = now
            rate = max((done - self._first) / (now - self._begun), 1e-9)
            of = f" of {total:,}, about {(total - done) / rate / 60:.0f} minutes left" if total else ""
            remark(f"{what}: {done:,} rows{of}; {rate:,.0f} rows a second")
