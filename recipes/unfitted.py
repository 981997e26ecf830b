"""The numbers that stand in before `fit`, chosen for a packaged model: temperature, competition and handicap.

    python -m recipes.unfitted --validation validation.json --backbone setscore-small

Asks the model about the documents of validation.json (`recipes.validate --data-dir`), of which nothing was learned: the
validation slices of the public sets, whose labels are asked by description, and judged texts, asked by name and by name
and description, with their whole label sets and each label by itself. Prints micro-F1 at a probability of 0.5 for each
competition and handicap, and the log loss for each temperature. Chosen are the smallest competition and handicap whose
mean over the five kinds lies within a tenth of a point of the best; the temperature, which moves no decision, is the
one with the least log loss there.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from setscore import SetScoreClassifier
from setscore.calibration import UnfittedCalibration
from setscore.records import BoolArray, FloatArray, Label, LabelSet

TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0)
COMPETITIONS, HANDICAPS = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0), (0.0, 0.5, 1.0)
PUBLIC = "public sets"
AS_GOOD = 0.1  # points of micro-F1 that are no reason to change more


@dataclass(frozen=True)
class Asked:
    """Documents of one label set: log-odds, gold, and what is sure enough to be counted, all [documents, labels]."""

    log_odds: FloatArray
    gold: BoolArray
    sure: BoolArray

    def probabilities(self, **numbers: float) -> FloatArray:
        return UnfittedCalibration(**numbers).for_labels(self.gold.shape[1]).transform(self.log_odds)

    def alone(self) -> "Asked":
        """Each label as a set of its own. What the model answers about a label does not depend on the others."""
        return Asked(*(part.reshape(-1, 1) for part in (self.log_odds, self.gold, self.sure)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validation", type=Path, required=True)
    parser.add_argument("--backbone", default="setscore-small")
    parser.add_argument("--documents", type=int, default=200, help="of each public set")
    arguments = parser.parse_args()
    sets = json.loads(arguments.validation.read_text())
    judged = by_label_set(sets.get("judged", {}).get("rows", []))
    public = {name: one for name, one in sets.items() if "documents" in one}
    found = {PUBLIC: [ask_public(one, arguments.backbone, arguments.documents) for one in public.values()]}
    for text in ("name", "both"):
        whole = [ask_judged(rows, text, arguments.backbone) for rows in judged]
        found |= {f"judged, by {text}": whole, f"by {text}, each by itself": [one.alone() for one in whole]}
    chosen = choose({kind: each for kind, each in found.items() if each})
    print("\nchosen: " + ", ".join(f"{name} {value:g}" for name, value in chosen.items()))


def ask_public(one: Mapping[str, Any], backbone: str, most: int) -> Asked:
    labels, documents = LabelSet.of(one["labels"]), one["documents"][:most]
    gold = np.zeros((len(documents), len(labels)), dtype=bool)
    for row, numbers in enumerate(one["gold"][:most]):
        gold[row, numbers] = True
    return Asked(SetScoreClassifier(labels, backbone=backbone).decision_function(documents), gold, np.ones_like(gold))


def by_label_set(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Judged texts of one label set have the same id."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["id"]].append(row)
    return list(groups.values())


def ask_judged(rows: Sequence[Mapping[str, Any]], label_text: str, backbone: str) -> Asked:
    wordings = {label[0]: label[1] for row in rows for label in (*row["yes"], *row["no"])}
    labels = LabelSet(tuple(Label(*pair) for pair in wordings.items()), label_text)
    gold, no = (labels.indicator([[label[0] for label in row[side]] for row in rows]) for side in ("yes", "no"))
    classifier = SetScoreClassifier(labels, backbone=backbone)
    return Asked(classifier.decision_function([row["text"] for row in rows]), gold, gold | no)


def choose(found: Mapping[str, Sequence[Asked]]) -> dict[str, float]:
    heads = ["competition", "handicap", *found, "mean", *(f"log loss, T = {t:g}" for t in TEMPERATURES)]
    print("| " + " | ".join(heads) + " |\n|" + "---:|" * len(heads))
    tried = list[tuple[float, dict[str, float]]]()
    for competition, handicap in product(COMPETITIONS, HANDICAPS):
        if competition == 0 and handicap > 0:  # the same as without
            continue
        numbers = {"competition": competition, "handicap": handicap}
        kinds = [micro_f1(each, together=kind != PUBLIC, **numbers) for kind, each in found.items()]
        losses = [np.mean([surprise(each, temperature=t, **numbers) for each in found.values()]) for t in TEMPERATURES]
        mean = float(np.mean(kinds))
        cells = [f"{competition:g}", f"{handicap:g}", *(f"{value:.1f}" for value in kinds), f"{mean:.2f}"]
        print("| " + " | ".join(cells + [f"{value:.3f}" for value in losses]) + " |", flush=True)
        tried.append((mean, {"temperature": TEMPERATURES[int(np.argmin(losses))]} | numbers))
    best = max(mean for mean, _ in tried)
    return next(numbers for mean, numbers in tried if mean >= best - AS_GOOD)


def micro_f1(found: Sequence[Asked], *, together: bool, **numbers: float) -> float:
    """In percent: the mean over sets, or of all of them `together` where they are small."""
    counts = []
    for each in found:
        decided = each.probabilities(**numbers) >= 0.5
        right, said = (decided & each.gold).sum(), (decided & each.sure).sum()
        counts.append([2 * right, said + each.gold.sum()])
    if together:
        counts = [np.sum(counts, axis=0)]
    return 100 * float(np.mean([right / max(1, both) for right, both in counts]))


def surprise(found: Sequence[Asked], **numbers: float) -> float:
    """Log loss in nats, a mean over the label sets of the mean over pairs of document and label."""
    losses = []
    for each in found:
        probabilities = each.probabilities(**numbers)[each.sure]
        losses.append(log_loss(each.gold[each.sure], probabilities, labels=[False, True]))
    return float(np.mean(losses))


if __name__ == "__main__":
    main()
