"""How good the default is before it has seen a single labelled document.

    python benchmarks/studies/everyday.py [--competition 0.5 0.7] [--json FILE]

50 everyday documents and 12 labels, written for this (tests/data/everyday.*), classified by the unfitted classifier at
threshold 0.5; "found" is the share of the labels that apply. Beside it, two yardsticks that read no text: every label
for every document, and the most frequent label for every document (chosen with the gold labels, so an oracle).
--competition adds what other competitions between labels would decide than the embedded model's own.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score, recall_score

from setscore import SetScoreClassifier, read_labels
from setscore.calibration import UnfittedCalibration

DATA = Path(__file__).parents[2] / "tests" / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--competition", type=float, nargs="*", default=[])
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in (DATA / "everyday.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = read_labels(DATA / "everyday_labels.yaml")
    gold = labels.indicator([row["labels"] for row in rows])
    texts = [row["text"] for row in rows]
    frequent = np.zeros_like(gold)
    frequent[:, gold.sum(axis=0).argmax()] = True
    predictions = {
        "setscore-mini, shared attention": SetScoreClassifier(labels).predict(texts),
        "setscore-mini, exact attention": SetScoreClassifier(labels, attention="exact").predict(texts),
        "setscore-mini, blend=own-cosine": SetScoreClassifier(labels, blend="own-cosine").predict(texts),
        "every label": np.ones_like(gold),
        "the most frequent label (oracle)": frequent,
    }
    if arguments.competition:
        log_odds = SetScoreClassifier(labels).decision_function(texts)
    for value in arguments.competition:
        other = UnfittedCalibration(competition=value).for_labels(len(labels))
        predictions[f"setscore-mini, shared attention, competition {value:g}"] = other.predict(log_odds)
    result = {}
    print("| | micro-F1 | macro-F1 | found | labels a document |")
    print("|---|---:|---:|---:|---:|")
    for name, predicted in predictions.items():
        micro, macro = (100 * f1_score(gold, predicted, average=a, zero_division=0) for a in ("micro", "macro"))
        found, labels_each = 100 * recall_score(gold, predicted, average="micro"), float(predicted.sum(axis=1).mean())
        result[name] = {"micro_f1": micro, "macro_f1": macro, "found": found, "cardinality": labels_each}
        print(f"| {name} | {micro:.1f} | {macro:.1f} | {found:.1f}% | {labels_each:.2f} |")
    print(f"| gold | | | | {gold.sum(axis=1).mean():.2f} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
