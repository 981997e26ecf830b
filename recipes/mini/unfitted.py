"""The two numbers that stand in before `fit`: micro-F1 at 0.5 and log loss for temperatures and competitions.

    python recipes/mini/unfitted.py --scores scores

`--scores` is the folder of `setscore evaluate all --save scores`. Only the validation documents of each seed are looked
at: 200 of every set.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score, log_loss

from setscore.calibration import UnfittedCalibration
from setscore.experiments import PAPER_SETS
from setscore.experiments.scored import Scored
from setscore.experiments.slices import load_parts, trials

SEEDS = (13, 17, 23)
TEMPERATURES = (1.0, 0.5, 0.33)
COMPETITIONS = (0.0, 0.2, 0.35, 0.5, 0.7, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scores", type=Path, required=True)
    arguments = parser.parse_args()
    drawn = {
        name: [trial.validation for trial in trials(load_parts(arguments.scores / f"{name}-development"), SEEDS)]
        for name in PAPER_SETS
    }
    losses = [f"log loss at T = {temperature:g}" for temperature in TEMPERATURES]
    print("| competition | " + " | ".join([*PAPER_SETS, "mean", *losses]) + " |")
    print("|---:|" + "---:|" * (len(PAPER_SETS) + 1 + len(losses)))
    for competition in COMPETITIONS:
        micro = [np.mean([at_half(scored, competition) for scored in found]) for found in drawn.values()]
        loss = [
            np.mean([surprise(scored, competition, temperature) for found in drawn.values() for scored in found])
            for temperature in TEMPERATURES
        ]
        cells = [f"{100 * value:.1f}" for value in [*micro, np.mean(micro)]] + [f"{value:.3f}" for value in loss]
        print(f"| {competition:g} | " + " | ".join(cells) + " |")


def at_half(scored: Scored, competition: float) -> float:
    """Micro-F1 at a probability of one half, whatever the temperature."""
    ready = UnfittedCalibration(competition=competition).for_labels(len(scored.labels))
    return float(f1_score(scored.gold, ready.predict(scored.log_odds), average="micro", zero_division=0))


def surprise(scored: Scored, competition: float, temperature: float) -> float:
    """Log loss in nats, a mean over all pairs of document and label."""
    ready = UnfittedCalibration(temperature=temperature, competition=competition).for_labels(len(scored.labels))
    return float(log_loss(scored.gold.ravel(), ready.transform(scored.log_odds).ravel()))


if __name__ == "__main__":
    main()
