"""What shortlists keep of a dataset's gold labels: the paper's retriever beside the fused one, for several k."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setscore.datasets import Dataset
from setscore.encoders import Encode
from setscore.errors import SetScoreError, counted
from setscore.experiments.evaluation import VALIDATION_SIZE
from setscore.shortlist import Shortlist
from setscore.theory import Ceilings, shortlist_ceilings

# A retriever, and what it is given of the slice: nothing, texts, or texts and gold labels.
RETRIEVED = {
    "cosine": ("cosine", None),
    "fused": ("fused", None),
    "fused, texts": ("fused", "texts"),
    "fused, gold": ("fused", "gold"),
}


@dataclass(frozen=True)
class Retrieved:
    """One retriever and k, measured on documents that nothing was chosen on."""

    name: str
    k: int
    found: Ceilings
    worst: list[tuple[str, float]]


@dataclass(frozen=True)
class ShortlistReport:
    """`seconds` is what encoding the measured documents took in all, the label index included, for each retriever."""

    dataset: str
    documents: int
    labels: int
    slice: int
    rows: tuple[Retrieved, ...]
    seconds: dict[str, float]


def compare_shortlists(
    dataset: Dataset,
    ks: Sequence[int] = (16, 32, 64),
    *,
    labelled: Dataset | None = None,
    seed: int = 13,
    encoder: str | None = None,
    windows: int | None = Shortlist.windows,
    encode: Encode | None = None,
) -> ShortlistReport:
    """What is remembered comes from `labelled`, and all of `dataset` is measured; without it 200 documents are drawn
    with `seed` to be remembered, and the rest is measured.

    `encoder` takes the place of each retriever's own, `encode` that of any encoder; `windows` are those of Shortlist.
    """
    if len(dataset) < 2:
        raise SetScoreError(f"{dataset.name} has {counted(len(dataset), 'document')}; at least 2 are needed.")
    measured = dataset
    if labelled is None:
        labelled, measured = dataset.draw(min(VALIDATION_SIZE, len(dataset) // 2), seed)
    known: dict[Encode, EncodedOnce] = {}
    rows, seconds = [], {}
    for name, (base, learns) in RETRIEVED.items():
        begun = time.perf_counter()
        for k in ks:
            shortlist = Shortlist(k=k, retriever=base, encoder=encoder, windows=windows)
            used = encode or shortlist.load()
            once = known.setdefault(used, EncodedOnce(used))
            if learns is not None:
                gold = labelled.gold if learns == "gold" else None
                shortlist = shortlist.fitted(labelled.texts, dataset.labels, gold, encode=once)
            kept = shortlist.select(measured.texts, dataset.labels, encode=once)
            found = shortlist_ceilings(measured.gold, kept)
            rows.append(Retrieved(name, k, found, found.worst_labels(dataset.labels.names)))
        seconds[name] = time.perf_counter() - begun
    return ShortlistReport(dataset.name, len(measured), len(dataset.labels), len(labelled), tuple(rows), seconds)


def as_json(made: ShortlistReport, names: Sequence[str]) -> dict[str, Any]:
    """Shares as fractions; null for a label without gold documents."""
    return {
        "dataset": made.dataset,
        "documents": made.documents,
        "labels": made.labels,
        "slice": made.slice,
        "rows": [{"retriever": row.name, "k": row.k} | ceilings_json(row.found, names) for row in made.rows],
    }


def ceilings_json(found: Ceilings, names: Sequence[str]) -> dict[str, Any]:
    """What a shortlist keeps and leaves within reach."""
    return {
        "pooled": found.retention,
        "per_document": found.document_recall,
        "chance": found.chance,
        "micro_ceiling": found.micro_f1,
        "macro_ceiling": found.macro_f1,
        "dropped": found.dropped,
        "per_label": {
            name: None if np.isnan(share) else float(share)
            for name, share in zip(names, found.label_retention, strict=True)
        },
    }


class EncodedOnce:
    """An encoder that encodes no text twice: every k and retriever reads the same documents. It counts and times."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._known: dict[str, npt.NDArray[Any]] = {}
        self.texts, self.seconds = 0, 0.0

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            begun = time.perf_counter()
            self._known |= dict(zip(new, self._encode(new), strict=True))
            self.texts, self.seconds = self.texts + len(new), self.seconds + time.perf_counter() - begun
        return np.stack([self._known[text] for text in texts])
