"""The texts that were written for measuring, in tests/data: nobody's training data, and nothing is tuned on them.

everyday.jsonl, everyday_labels.yaml               the first sample: 50 documents, 12 labels
everyday_<domain>.jsonl, labels_<domain>.yaml      a set of documents with labels of its own for each domain
pairs.jsonl                                        two texts nearly alike: the label applies to one of them only
wordings.yaml                                      several wordings of one label, texts it applies to and others
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from benchmarks.common import ROOT
from setscore import LabelSet, read_labels

DATA = ROOT / "tests" / "data"
# Domains whose writers had seen nothing of this project, written when the weights of today had been chosen. The others
# were looked at again and again while it was built.
STRANGERS = ("hangar", "journal", "museum", "radio", "shelter", "ward")


@dataclass(frozen=True, eq=False)
class Documents:
    """Texts with gold labels [n_documents, n_labels]."""

    name: str
    texts: list[str]
    labels: LabelSet
    gold: np.ndarray

    @classmethod
    def read(cls, name: str, documents: Path, labels: Path, limit: int | None = None) -> "Documents":
        rows, known = list(_rows(documents))[:limit], read_labels(labels)
        return cls(name, [row["text"] for row in rows], known, known.indicator([row["labels"] for row in rows]))


@dataclass(frozen=True)
class Pair:
    """The label applies to `yes` and not to `no`; `how` is what makes the difference, such as a negation."""

    id: str
    label: str
    description: str
    yes: str
    no: str
    how: str


@dataclass(frozen=True)
class Wordings:
    """One label in several wordings, the texts that it applies to, and others."""

    label: str
    wordings: list[str]
    yes: list[str]
    no: list[str]


def sample(folder: Path = DATA, limit: int | None = None) -> Documents:
    return Documents.read("everyday", folder / "everyday.jsonl", folder / "everyday_labels.yaml", limit)


def domains(folder: Path = DATA, limit: int | None = None) -> list[Documents]:
    """By name; none where the files are not there."""
    names = sorted(path.stem.removeprefix("everyday_") for path in folder.glob("everyday_*.jsonl"))
    return [
        Documents.read(name, folder / f"everyday_{name}.jsonl", folder / f"labels_{name}.yaml", limit) for name in names
    ]


def pairs(folder: Path = DATA, limit: int | None = None) -> list[Pair]:
    """None where the file is not there."""
    path = folder / "pairs.jsonl"
    return [Pair(**row) for row in list(_rows(path))[:limit]] if path.exists() else []


def wordings(folder: Path = DATA, limit: int | None = None) -> list[Wordings]:
    """None where the file is not there."""
    path = folder / "wordings.yaml"
    if not path.exists():
        return []
    return [Wordings(**entry) for entry in yaml.safe_load(path.read_text(encoding="utf-8"))[:limit]]


def _rows(path: Path) -> Iterator[dict]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)
