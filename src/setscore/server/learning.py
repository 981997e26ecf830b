"""What is learned from the answers of a project, how good that is on unseen documents, and what to ask next."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from setscore.calibration.base import assign_folds
from setscore.classifier import SetScoreClassifier
from setscore.errors import counted
from setscore.metrics import bootstrap, per_label_table, probability_metrics, reliability
from setscore.records import BoolArray, Document, FloatArray, LabelSet
from setscore.server.projects import Entry, Fit
from setscore.suggesting import Suggestion

LEAST = 8  # answers before anything is fitted
EXAMPLES = 10  # gold documents of a label that a fit wants, about
GOOD = 0.7  # F1 from which a label needs nothing
BINS = 10
SHOWN = 50  # disagreements

Make = Callable[[], SetScoreClassifier]


def learn(make: Make, labels: LabelSet, entries: Sequence[Entry]) -> Fit:
    """A classifier fitted on all answers, and what its like, fitted on four fifths, say about the fifth they miss."""
    texts, gold = [entry.text for entry in entries], labels.indicator([entry.labels for entry in entries])
    probabilities, decisions = cross_validate(make, texts, gold)
    fitted = make().fit(texts, gold)
    intervals = bootstrap(gold, decisions)
    table = per_label_table(gold, decisions, labels.names)
    scores = {name: asdict(intervals[name]) for name in ("micro_f1", "macro_f1")}
    measured = {
        "scores": scores | {"ece": probability_metrics(gold, probabilities)["ece"]},
        "regime": fitted.regime,
        "labels": [row | {"needs": needs(row)} for row in table],
        "reliability": {name: values.tolist() for name, values in reliability(gold, probabilities, BINS).items()},
        "disagreements": disagreements(entries, labels, gold, probabilities, decisions),
    }
    return Fit(len(entries), measured, saved(fitted))


def cross_validate(make: Make, texts: Sequence[str], gold: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Probabilities and decisions [n, m] of each document by a classifier that was fitted on other folds."""
    fold = assign_folds(len(texts))
    probabilities, decisions = np.zeros(gold.shape), np.zeros(gold.shape, dtype=np.bool_)
    for number in range(fold.max() + 1):
        inside = np.flatnonzero(fold == number).tolist()
        others = np.flatnonzero(fold != number).tolist()
        found = make().fit([texts[i] for i in others], gold[others]).classify([texts[i] for i in inside])
        probabilities[inside], decisions[inside] = found.probabilities, found.decisions
    return probabilities, decisions


def needs(row: dict[str, Any]) -> str:
    """What a label still needs, in words; nothing where it is good."""
    if row["gold"] < EXAMPLES:
        return f"{counted(EXAMPLES - row['gold'], 'more example')}"
    if row["f1"] >= GOOD:
        return ""
    if row["precision"] < row["recall"]:
        return "is predicted too often: say in its description what it is not"
    return "is missed too often: say in its description what else it covers"


def disagreements(
    entries: Sequence[Entry], labels: LabelSet, gold: BoolArray, probabilities: FloatArray, decisions: BoolArray
) -> list[dict[str, Any]]:
    """Pairs of document and label where person and model differ, those first where the model is surest."""
    gap = np.where(decisions != gold, np.abs(probabilities - gold), -1.0)
    order = [divmod(int(place), len(labels)) for place in np.argsort(-gap, axis=None, kind="stable")[:SHOWN]]
    return [
        {
            "place": entries[row].place,
            "id": entries[row].id,
            "text": entries[row].text[:300],
            "label": labels.names[column],
            "gold": bool(gold[row, column]),
            "probability": float(probabilities[row, column]),
        }
        for row, column in order
        if gap[row, column] >= 0
    ]


def suggested(classifier: SetScoreClassifier, entries: Sequence[Entry], n: int) -> list[tuple[int, Suggestion]]:
    """Places of the documents to label next, the most useful first, and why."""
    found = classifier.suggest([Document(entry.text, entry.id) for entry in entries], n)
    return [(entries[one.index].place, one) for one in found]


def saved(classifier: SetScoreClassifier) -> bytes:
    """The one file that `SetScoreClassifier.load` reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "classifier.zip"
        classifier.save(path)
        return path.read_bytes()


def loaded(data: bytes) -> SetScoreClassifier:
    """What `saved` wrote. It came from this server, and still goes through every check of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "classifier.zip"
        path.write_bytes(data)
        return SetScoreClassifier.load(path)
