"""Question templates on validation documents: which one is chosen, and how much of that choice is luck.

The choice is the paper's: the highest micro-F1 of its calibrator on the validation documents that it is fitted on; of
equals the first. The noise: documents are drawn again, decisions stay, and it is counted how often each template comes
first, and how far the chosen one is above the default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setscore.calibration.paper import PaperCalibration
from setscore.classifier import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.experiments.evaluation import Experiment, ask_dataset, changed, named, split, with_labels
from setscore.experiments.protocol import best
from setscore.metrics import Comparison, Counts, compare
from setscore.prompts import Template
from setscore.records import BoolArray, Progress

ROUNDS, SEED = 1000, 13


@dataclass(frozen=True)
class Tried:
    """A template on the validation documents of a seed: micro and macro F1, and how often it would come first."""

    template: str
    micro_f1: float
    macro_f1: float
    first: float


@dataclass(frozen=True)
class Chosen:
    """One seed. `over_default` is the chosen one minus the default in micro-F1; None where the default was chosen."""

    seed: int
    template: str
    tried: tuple[Tried, ...]
    over_default: Comparison | None

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def sweep(
    experiment: Experiment,
    classifier: SetScoreClassifier,
    templates: Mapping[str, Template],
    seeds: Sequence[int],
    *,
    progress: Progress | None = None,
) -> list[Chosen]:
    """Every template on every seed's validation documents; the first of `templates` is the default."""
    if len(templates) < 2:
        raise SetScoreError("a sweep compares at least two templates.")
    made = []
    for seed in seeds:
        validation, _ = split(experiment, seed)
        decided: dict[str, BoolArray] = {}
        for name, template in templates.items():
            model = with_labels(changed(classifier, template=template), validation.labels)
            log_odds = ask_dataset(validation, model, named(progress, f"seed {seed}, {name}")).log_odds
            decided[name] = PaperCalibration().fit(log_odds, validation.gold).predict(log_odds)
        made.append(choose(seed, validation.gold, decided))
    return made


def choose(seed: int, gold: BoolArray, decided: Mapping[str, BoolArray]) -> Chosen:
    """The choice among decisions [n, m] by template."""
    names = list(decided)
    counts = [Counts.of(gold, one) for one in decided.values()]
    micro = [float(one.micro().f1()) for one in counts]
    drawn = np.random.default_rng(SEED).multinomial(len(gold), np.full(len(gold), 1 / len(gold)), size=ROUNDS)
    again = np.stack([Counts.of(gold, one, drawn.astype(np.float64)).micro().f1() for one in decided.values()])
    first = np.bincount(again.argmax(axis=0), minlength=len(names)) / ROUNDS
    place = best(micro)
    tried = tuple(Tried(name, micro[i], float(counts[i].f1().mean()), float(first[i])) for i, name in enumerate(names))
    over = None if place == 0 else compare(gold, decided[names[0]], decided[names[place]])["micro_f1"]
    return Chosen(seed, names[place], tried, over)
