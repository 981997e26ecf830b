"""What a tutor learns, and the texts and labels about which it may be asked, as `recipes.prepare --tutor` writes them.

A text comes from a source: a set of the general data, or a writer. A label comes from the sources of all texts that it
was judged or written for. Files of the folder: learn.jsonl.xz, documents.jsonl.xz and labels.jsonl.xz with texts, and
pool.npz with the numbers that documents and labels have in the store, and their sources.
"""

import json
import lzma
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recipes.sources.rows import Label, Row
from recipes.store import Ints, Ragged


@dataclass(frozen=True)
class Pool:
    documents: Ints  # [D] numbers of the store
    source: Ints  # [D]
    labels: Ints  # [L] numbers of the store
    sources: Ragged  # [L]
    own: Ragged  # [D] labels that were judged or written for it, by their places among `labels`

    def arrays(self) -> dict[str, Ints]:
        return {
            "documents": self.documents,
            "source": self.source,
            "labels": self.labels,
            "sources": self.sources.values,
            "source_offsets": self.sources.offsets,
            "own": self.own.values,
            "own_offsets": self.own.offsets,
        }

    @classmethod
    def load(cls, path: Path) -> "Pool":
        with np.load(path, allow_pickle=False) as saved:
            sources, own = Ragged(saved["sources"], saved["source_offsets"]), Ragged(saved["own"], saved["own_offsets"])
            return cls(saved["documents"], saved["source"], saved["labels"], sources, own)


def write(
    rows: Sequence[Row],
    numbers: Mapping[Label, int],
    apart: Collection[str],
    folder: Path,
    settings: Mapping[str, Any],
) -> None:
    """Of `rows`, in the order of the store; texts of `apart` are asked nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    by_hand = [row for row in rows if row.family == "written"]
    lines(folder / "learn.jsonl.xz", ({"text": row.document, "yes": row.yes, "no": row.no} for row in by_hand))
    place = {document: n for n, document in enumerate(dict.fromkeys(row.document for row in rows))}
    origin = {row.document: row.source for row in reversed(rows) if row.family != "written"}
    found: dict[Label, set[str]] = defaultdict(set)
    own: dict[str, dict[Label, None]] = defaultdict(dict)
    for row in by_hand:
        for label in (*row.yes, *row.no):
            found[label].add(origin.get(row.document, row.source))
            own[row.document][label] = None
    at = {label: n for n, label in enumerate(found)}
    known = set().union(*found.values())
    others = list(dict.fromkeys(row.document for row in rows if row.source in known and row.document not in apart))
    drawn = random.Random(settings["seed"]).sample(others, min(settings["others"], len(others)))
    documents = {row.document: origin.get(row.document, row.source) for row in by_hand}
    documents |= {document: origin[document] for document in drawn if document in origin}
    names = {name: n for n, name in enumerate(sorted(known.union(documents.values())))}
    lines(folder / "documents.jsonl.xz", ({"text": document} for document in documents))
    lines(folder / "labels.jsonl.xz", ({"text": label[-1]} for label in found))
    pool = Pool(
        np.array([place[document] for document in documents], dtype=np.int32),
        np.array([names[name] for name in documents.values()], dtype=np.int32),
        np.array([numbers[label] for label in found], dtype=np.int32),
        Ragged.of([sorted(names[name] for name in each) for each in found.values()]),
        Ragged.of([[at[label] for label in own.get(document, ())] for document in documents]),
    )
    with (folder / "pool.npz").open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **pool.arrays())


def lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with lzma.open(path, "wt", encoding="utf-8", preset=1) as stream:
        stream.writelines(f"{json.dumps(record)}\n" for record in records)
