"""The numbers that stand in before `fit`, chosen for a packaged model: its temperature and its competition.

    python -m recipes.unfitted --validation validation.json --backbone setscore-small

Asks the model about the documents of validation.json (`recipes.validate --data-dir`), of which nothing was learned: the
validation slices of the public sets, whose labels are asked by description, and judged texts with their whole label
sets, asked by name and by name and description. Prints micro-F1 at a probability of 0.5 for each competition, and the
log loss for each temperature. The competition is the one with the best mean of the three kinds; the temperature, which
moves no decision, is the one with the least log loss there.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from setscore import SetScoreClassifier
from setscore.calibration import UnfittedCalibration
from setscore.records import BoolArray, FloatArray, Label, LabelSet

TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0)
COMPETITIONS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7)
KINDS = ("public sets", "judged, by name", "judged, by both")


@dataclass(frozen=True)
class Asked:
    """Documents of one label set: log-odds, gold, and what is sure enough to be counted, all [documents, labels]."""

    log_odds: FloatArray
    gold: BoolArray
    sure: BoolArray

    def probabilities(self, temperature: float, competition: float) -> FloatArray:
        numbers = UnfittedCalibration(temperature=temperature, competition=competition)
        return numbers.for_labels(self.gold.shape[1]).transform(self.log_odds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validation", type=Path, required=True)
    parser.add_argument("--backbone", default="setscore-small")
    parser.add_argument("--documents", type=int, default=200, help="of each public set")
    arguments = parser.parse_args()
    sets = json.loads(arguments.validation.read_text())
    judged = by_label_set(sets.get("judged", {}).get("rows", []))
    public = {name: one for name, one in sets.items() if "documents" in one}
    found = {
        KINDS[0]: [ask_public(one, arguments.backbone, arguments.documents) for one in public.values()],
        KINDS[1]: [ask_judged(rows, "name", arguments.backbone) for rows in judged],
        KINDS[2]: [ask_judged(rows, "both", arguments.backbone) for rows in judged],
    }
    competition, temperature = choose({kind: each for kind, each in found.items() if each})
    print(f"\nchosen: competition {competition:g}, temperature {temperature:g}")


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


def choose(found: Mapping[str, Sequence[Asked]]) -> tuple[float, float]:
    print("| competition | " + " | ".join([*found, "mean", *(f"log loss, T = {t:g}" for t in TEMPERATURES)]) + " |")
    print("|---:|" + "---:|" * (len(found) + 1 + len(TEMPERATURES)))
    micro, losses = dict[float, float](), dict[float, list[float]]()
    for competition in COMPETITIONS:
        kinds = [micro_f1(kind, each, competition) for kind, each in found.items()]
        micro[competition] = float(np.mean(kinds))
        losses[competition] = [
            float(np.mean([surprise(each, t, competition) for each in found.values()])) for t in TEMPERATURES
        ]
        cells = [f"{value:.1f}" for value in [*kinds, micro[competition]]]
        cells += [f"{value:.3f}" for value in losses[competition]]
        print(f"| {competition:g} | " + " | ".join(cells) + " |", flush=True)
    best = max(COMPETITIONS, key=lambda competition: micro[competition])
    return best, TEMPERATURES[int(np.argmin(losses[best]))]


def micro_f1(kind: str, found: Sequence[Asked], competition: float) -> float:
    """In percent: the mean over public sets; of judged texts, whose sets are small, over all of them together."""
    counts = []
    for each in found:
        decided = each.probabilities(1.0, competition) >= 0.5
        right, said = (decided & each.gold).sum(), (decided & each.sure).sum()
        counts.append([2 * right, said + each.gold.sum()])
    if kind == KINDS[0]:
        return 100 * float(np.mean([right / max(1, both) for right, both in counts]))
    right, both = np.sum(counts, axis=0)
    return 100 * float(right / max(1, both))


def surprise(found: Sequence[Asked], temperature: float, competition: float) -> float:
    """Log loss in nats, a mean over the label sets of the mean over pairs of document and label."""
    losses = []
    for each in found:
        probabilities = each.probabilities(temperature, competition)[each.sure]
        losses.append(log_loss(each.gold[each.sure], probabilities, labels=[False, True]))
    return float(np.mean(losses))


if __name__ == "__main__":
    main()
