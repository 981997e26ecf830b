"""Read this first: a batch from its rows to its files, so that nothing is lost, doubled or mixed.

    rows ─► plan ─► shards ─► scored by an engine ─► a file and a receipt each ─► one file, where one is wanted

The same call again goes on where the last one ended, however it ended. Another classifier, another layout or other rows
are refused by name.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from setscore.batch.engines import Engine, here
from setscore.batch.folders import Folder, Seal, folder_at, parted
from setscore.batch.identity import SHOWN, digest, identity_parts, labels_of
from setscore.batch.inputs import SPOOL, STDIN, Input, find_input
from setscore.batch.joining import join, seal_of_all
from setscore.batch.layouts import Head, Layout, ending_of
from setscore.batch.locks import locked
from setscore.batch.plan import Plan, make_plan
from setscore.batch.records import (
    Manifest,
    Receipt,
    check_same,
    clear,
    finished_shards,
    foreign,
    is_whole,
    part_name,
    read_manifest,
    sweep,
    write_manifest,
)
from setscore.batch.scoring import Job
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Columns
from setscore.datasets.remote import is_address
from setscore.errors import DataFileError, SetScoreError
from setscore.records import Progress, steps
from setscore.storage import listed

SHARD_ROWS = 2048


@dataclass(frozen=True)
class Output:
    """Where a batch goes: `folder` holds its shards; `file` is the one file that is made of them, or None."""

    folder: str
    file: str | None
    layout: Layout

    @classmethod
    def of(cls, out: str, layout: Layout | None = None) -> "Output":
        """By its ending: a .parquet, .jsonl or .csv file, else a folder of such files."""
        layout = layout or Layout.of(out)
        if (ends := ending_of(out)) is None:
            return cls(out, None, layout)
        if layout.form != ends:
            raise SetScoreError(f"{out} ends in .{ends}, but the format is {layout.form}. Change one of them.")
        base, sign, given = out.partition("?") if is_address(out) else (out, "", "")
        return cls(f"{base}.parts{sign}{given}", out, layout)


@dataclass(frozen=True)
class Summary:
    """What a batch did: rows by what became of them, how many of them were there already, and what to know of ids."""

    rows: int
    reused: int
    failed: int
    truncated: int
    dropped: int
    forwards: int
    seconds: float
    identity: str
    notes: tuple[str, ...]


def run_batch(
    classifier: SetScoreClassifier,
    source: str,
    out: str,
    *,
    layout: Layout | None = None,
    columns: Columns = Columns(),
    input_format: str | None = None,
    limit: int | None = None,
    sample: float | None = None,
    seed: int = 0,
    shard_rows: int = SHARD_ROWS,
    force: bool = False,
    engine: Engine = here,
    progress: Progress | None = None,
) -> Summary:
    """Scores every row of `source` into `out`, one row for each, in order; goes on with what is there.

    source  a file, a folder, a glob, an address such as s3://bucket/folder, or - for standard input
    out     a .parquet, .jsonl or .csv file, or a folder of such files; also at an address
    force   begins anew where another batch is
    """
    begun = time.monotonic()
    output = Output.of(out, layout)
    folder, head = folder_at(output.folder), _head(classifier, output.layout)
    chosen: dict[str, Any] = {"form": input_format, "limit": limit, "sample": sample, "seed": seed}
    if source != STDIN:  # what cannot be read is an error before anything is written
        _check_apart(first := find_input(source, folder, columns, **chosen), output)
        next(iter(first.rows()), None)
    folder.make()
    with locked(folder):
        sweep(folder)
        plan = make_plan(find_input(source, folder, columns, **chosen), shard_rows, progress)
        manifest = _manifest(classifier, plan, output.layout, shard_rows)
        receipts = _resumed(folder, output, manifest, plan, force=force)
        reused = sum(receipt.rows for receipt in receipts.values())
        job = Job(classifier, plan.source, replace(head, identity=manifest.identity), output.folder)
        left = [shard for shard in plan.shards if shard.number not in receipts]
        step = steps(progress, "scoring", plan.rows)
        step(reused)
        for receipt in engine(job, left, step):
            receipts[receipt.number] = receipt
        _finish(folder, output, manifest, receipts)
    return _summary(plan, receipts, reused, time.monotonic() - begun, manifest.identity)


def _manifest(classifier: SetScoreClassifier, plan: Plan, layout: Layout, shard_rows: int) -> Manifest:
    parts = identity_parts(classifier)
    source = plan.source
    about = parts | {
        "output": asdict(layout),
        "rows of a shard": shard_rows,
        "columns": asdict(source.columns),
        "rows that are taken": {"limit": source.limit, "sample": source.sample, "seed": source.seed},
        "rows": plan.rows,
        "content of the rows": plan.digest,
    }
    return Manifest(about, digest(parts)[:SHOWN])


def _resumed(folder: Folder, output: Output, manifest: Manifest, plan: Plan, *, force: bool) -> dict[int, Receipt]:
    """Receipts of what is done already; the manifest is there from now on."""
    before = None if force else read_manifest(folder)
    if force:
        clear(folder)
    elif before is None:
        if others := foreign(folder):
            raise DataFileError(
                f"{folder.address} holds files that no batch wrote: {listed(others, 5)}. Give a folder of its own."
            )
        clear(folder)
    else:
        check_same(folder, before, manifest)
        joined = before.finished is not None and _is_there(output, before.finished)
        return finished_shards(folder, plan.shards, manifest.identity, output.layout.form, joined=joined)
    write_manifest(folder, manifest)
    return {}


def _is_there(output: Output, seal: Seal) -> bool:
    """Whether the one file is there as it was written."""
    if output.file is None:
        return False
    return is_whole(*parted(output.file), seal)


def _finish(folder: Folder, output: Output, manifest: Manifest, receipts: Mapping[int, Receipt]) -> None:
    """Joins the shards where one file is wanted, says in the manifest that all is done, and cleans up."""
    sweep(folder)  # workers that died left something too
    names = [part_name(number, output.layout.form) for number in sorted(receipts)]
    if output.file is None:
        write_manifest(folder, replace(manifest, finished=seal_of_all(receipts)))
    elif folder.size(names[0]) is not None:  # else they were joined before
        into, name = parted(output.file)
        seal = join(folder, names, into, name, output.layout.form)
        write_manifest(folder, replace(manifest, finished=seal))
        for part in names:
            folder.remove(part)
    for name in folder.names():
        if name.startswith(SPOOL):
            folder.remove(name)


def _head(classifier: SetScoreClassifier, layout: Layout) -> Head:
    """What all rows have in common, but for the identity; columns that would be called the same are an error."""
    abstains = bool(classifier.current_calibration().margin)
    return Head(layout, labels_of(classifier).names, abstains)


def _check_apart(source: Input, output: Output) -> None:
    """A file that is read and written at once would be lost; one that is written among those read is read next time."""
    targets = {output.folder, output.file} - {None}
    for file in source.files:
        for target in map(str, targets):
            if is_address(file) or is_address(target):
                same = file == target or file.startswith(f"{target}/")
            else:
                read, written = Path(file).resolve(), Path(target).resolve()
                same = read == written or written in read.parents
            if same:
                raise SetScoreError(f"{file} is read, and would be written as a part of {target}. Name another place.")


def _summary(plan: Plan, receipts: Mapping[int, Receipt], reused: int, seconds: float, identity: str) -> Summary:
    found = receipts.values()
    return Summary(
        rows=sum(receipt.rows for receipt in found),
        reused=reused,
        failed=sum(receipt.failed for receipt in found),
        truncated=sum(receipt.truncated for receipt in found),
        dropped=sum(receipt.dropped for receipt in found),
        forwards=sum(receipt.forwards for receipt in found),
        seconds=seconds,
        identity=identity,
        notes=plan.notes,
    )
