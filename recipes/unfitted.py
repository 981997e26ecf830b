"""The numbers that stand in before `fit`: micro-F1 at 0.5 and log loss for temperatures and competitions, and what the
share of the model's own cosine does where it is blended in.

    python -m recipes.unfitted --scores scores

`--scores` is the folder of `setscore evaluate all --save scores`. Only the validation documents of each seed are looked
at: 200 of every set.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.metrics import f1_score, log_loss

from benchmarks.saved import check_scores, saved_trials
from setscore.backbones import backbone_spec
from setscore.calibration import UnfittedCalibration
from setscore.ensemble import COSINE_SCALE, Ensemble
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS
from setscore.experiments.blending import EMBEDDED_BLEND, mixed
from setscore.experiments.scored import Scored

SEEDS = (13, 17, 23)
TEMPERATURES = (1.0, 0.5, 0.33)
COMPETITIONS = (0.0, 0.2, 0.35, 0.5, 0.7, 1.0)
SHARES = (0.0, 0.125, 0.25, 0.375, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scores", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        check_scores(arguments.scores)  # says what to do where there is nothing
        drawn = {name: validation(arguments.scores, name) for name in PAPER_SETS}
        cosines = {name: validation(arguments.scores, name, EMBEDDED_BLEND) for name in PAPER_SETS}
    except SetScoreError as error:
        parser.error(str(error))
    compare_competitions(drawn)
    compare_shares(drawn, cosines)


def validation(folder: Path, dataset: str, blend: str | None = None) -> list[Scored]:
    """The validation documents of each seed."""
    return [trial.validation for trial in saved_trials(folder, dataset, SEEDS, blend)]


def compare_competitions(drawn: dict[str, list[Scored]]) -> None:
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


def compare_shares(drawn: dict[str, list[Scored]], cosines: dict[str, list[Scored]]) -> None:
    print("\n| share of the cosine | " + " | ".join([*PAPER_SETS, "mean"]) + " |")
    print("|---:|" + "---:|" * (len(PAPER_SETS) + 1))
    spec = backbone_spec("setscore-mini")
    numbers = UnfittedCalibration(temperature=spec.temperature, competition=spec.competition)
    ready = {name: clone(numbers).for_labels(len(found[0].labels)) for name, found in drawn.items()}
    for share in SHARES:
        blend = Ensemble(("model", EMBEDDED_BLEND), (1 - share, share), ((1.0, 0.0), COSINE_SCALE))
        means = []
        for name, found in drawn.items():
            blended = [mixed(blend, *pair, EMBEDDED_BLEND) for pair in zip(found, cosines[name], strict=True)]
            means.append(np.mean([both_f1(one.gold, ready[name].predict(one.log_odds)) for one in blended], axis=0))
        cells = [f"{100 * micro:.1f} / {100 * macro:.1f}" for micro, macro in [*means, np.mean(means, axis=0)]]
        print(f"| {share:g} | " + " | ".join(cells) + " |")


def both_f1(gold: np.ndarray, decided: np.ndarray) -> list[float]:
    """Micro and macro F1."""
    return [float(f1_score(gold, decided, average=kind, zero_division=0)) for kind in ("micro", "macro")]


def at_half(scored: Scored, competition: float) -> float:
    """Micro-F1 at a probability of one half, whatever the temperature."""
    ready = UnfittedCalibration(competition=competition).for_labels(len(scored.labels))
    return both_f1(scored.gold, ready.predict(scored.log_odds))[0]


def surprise(scored: Scored, competition: float, temperature: float) -> float:
    """Log loss in nats, a mean over all pairs of document and label."""
    ready = UnfittedCalibration(temperature=temperature, competition=competition).for_labels(len(scored.labels))
    return float(log_loss(scored.gold.ravel(), ready.transform(scored.log_odds).ravel()))


if __name__ == "__main__":
    main()
