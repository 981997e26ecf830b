"""The plan of a batch: every row is read once before anything is scored, and counted into shards.

A shard is a fixed stretch of rows with a digest of what stands in them. So a row that changes between the plan and the
scoring, or between two runs, is noticed whatever its file's date says.
"""

import json
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from setscore.batch.inputs import Input
from setscore.datasets import InputRow
from setscore.errors import SetScoreError, counted, plural
from setscore.records import Progress

MOST_IDS = 4_000_000  # that are compared with each other, at 8 bytes each
TOLD = 100_000  # rows between two words on how far it is


@dataclass(frozen=True)
class Shard:
    """Rows of the sample from place `first` to before `stop`: how many, and a digest of what they hold."""

    number: int
    first: int
    stop: int
    rows: int
    digest: str


@dataclass(frozen=True)
class Plan:
    """What is to be scored.

    source  the input, its rows counted
    shards  in their order
    rows    of all shards
    digest  of all rows
    notes   what should be known of the ids, as sentences
    """

    source: Input
    shards: tuple[Shard, ...]
    rows: int
    digest: str
    notes: tuple[str, ...] = ()


class RowDigest:
    """A digest of rows: their ids, texts and candidates, and what is wrong with those that cannot be used."""

    def __init__(self) -> None:
        self._digest, self.rows = blake2b(digest_size=16), 0

    def add(self, row: InputRow) -> None:
        document = row.document
        content: Any = row.problem if document is None else (document.text, document.candidates)
        self._digest.update(json.dumps((row.id, content)).encode())
        self.rows += 1

    def __str__(self) -> str:
        return self._digest.hexdigest()


def make_plan(source: Input, shard_rows: int, progress: Progress | None = None) -> Plan:
    """Reads all rows of the input once."""
    if shard_rows < 1:
        raise SetScoreError(f"a shard has at least 1 row, got {shard_rows}.")
    shards: list[Shard] = []
    counts = [0] * len(source.files)
    ids, whole, part, first, taken = Ids(), blake2b(digest_size=16), RowDigest(), 0, 0
    place = -1

    def close(stop: int) -> None:
        nonlocal part, first
        shards.append(Shard(len(shards), first, stop, part.rows, str(part)))
        whole.update(str(part).encode())
        part, first = RowDigest(), stop

    for place, number, row in source.rows():
        counts[number] += 1
        if progress is not None and place % TOLD == 0:
            progress("reading", place, 0)
        if not source.takes(place):
            continue
        part.add(row)
        ids.add(row)
        taken += 1
        if part.rows == shard_rows:
            close(place + 1)
        if taken == source.limit:
            break
    if part.rows:
        close(place + 1)
    if not taken:
        raise SetScoreError("there are no rows to score. Give a file with some, or a larger --sample.")
    read = source if taken == source.limit else replace(source, counts=tuple(counts))
    return Plan(read, tuple(shards), taken, whole.hexdigest(), tuple(ids.notes()))


class Ids:
    """Finds ids that stand twice among many millions: joining by id would mix their rows up."""

    def __init__(self) -> None:
        self._found = array("Q")  # 8 bytes of each id's digest; 0 for a row that has none of its own
        self.rows = self.own = 0

    def add(self, row: InputRow) -> None:
        self.rows += 1
        self.own += row.own_id
        if len(self._found) < MOST_IDS:
            key = blake2b(row.id.encode(errors="surrogatepass"), digest_size=8).digest() if row.own_id else b""
            self._found.append(int.from_bytes(key))

    def notes(self) -> Iterable[str]:
        """Sentences."""
        missing = self.rows - self.own
        if self.own and missing:
            have = f"{counted(missing, 'row')} {plural(missing, 'has', 'have')}"
            yield f"{have} no id, though others have; the number of the row stands in."
        keys = np.frombuffer(self._found, dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        same = order[1:][(keys[order][1:] == keys[order][:-1]) & (keys[order][1:] > 0)]
        if len(same):
            second = int(same.min())
            before = int(np.flatnonzero(keys == keys[second])[0])
            yield (
                f"{len(same)} of {counted(self.rows, 'row')} {plural(len(same), 'repeats', 'repeat')} an id, the first"
                f" are rows {before + 1} and {second + 1}; all rows are kept."
            )
        if self.rows > MOST_IDS:
            yield f"ids were compared among the first {MOST_IDS:,} rows alone."
