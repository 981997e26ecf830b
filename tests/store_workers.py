"""Processes that ask the same questions of one store, for tests that kill them."""

import json
import os
import time
from pathlib import Path

import numpy as np
from fakes import FakeBackbone

from setscore import SetScoreClassifier
from setscore.backbones import cached
from setscore.datasets import Dataset
from setscore.experiments import prepare_file
from setscore.experiments.report import score_parts
from setscore.records import LabelSet
from setscore.store.folder import FolderStore

LABELS = ["oil", "sports", "music", "weather"]
TEXTS = tuple(f"A note about {LABELS[n % 4]} and {LABELS[n % 3]}, number {n}." for n in range(240))
GOLD = np.array([[n % 4 == label for label in range(4)] for n in range(240)])
BLOCK = 8


class LoggingBackbone(FakeBackbone):
    """Takes a moment for every block of questions, and writes them to a log before it answers."""

    def __init__(self, log: Path, seconds: float) -> None:
        super().__init__()
        self.log, self.seconds = log, seconds

    def log_odds(self, queries):
        keys = cached.query_keys(self.identity, queries)
        line = json.dumps({"process": os.getpid(), "keys": [key.hex() for key in keys]}) + "\n"
        with self.log.open("ab", buffering=0) as file:  # one write: lines of several processes do not mix
            file.write(line.encode())
        time.sleep(self.seconds)
        return super().log_odds(queries)


def logged(log: Path) -> list[str]:
    """Every question that was asked, in order."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [key for line in lines for key in json.loads(line)["keys"]]


def work(log: Path, store: Path, out: Path | None = None, seconds: float = 0.0) -> None:
    """An evaluation's scoring, in small blocks of questions; writes what came out."""
    cached.BLOCK = BLOCK
    ready = prepare_file(Dataset("made-up", "", TEXTS, tuple(map(str, range(len(TEXTS)))), LabelSet.of(LABELS), GOLD))
    found = score_parts(ready, SetScoreClassifier(backbone=LoggingBackbone(log, seconds), store=store))
    if out is not None:
        np.save(out.with_suffix(".part.npy"), found["pool"].log_odds)
        out.with_suffix(".part.npy").rename(out)


def fork_with_a_store(folder: Path) -> None:
    """A parent with an open store forks; the child reads what is there, claims, answers, and leaves one claim open."""
    store = FolderStore(folder)
    store.put({b"parent": np.array([1.0])})
    child = os.fork()
    if child == 0:
        ok = store.get([b"parent"])[b"parent"] == [1.0] and store.claim([b"left", b"child"], 2) == [b"left", b"child"]
        store.put({b"child": np.array([2.0])})
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert store.claim([b"left"], 1) == [b"left"]
