"""What a seeded scorer learns from a labelled slice: where its seed says yes, and which labels occur together."""

from typing import Any

import numpy as np

from setscore.calibration.base import Calibration
from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray
from setscore.scorers import Learner, Scorer

FAR = 60.0  # log-odds beyond which no label lies
STEPS = 64  # halvings: the cut is exact to the last bit


def learn_from(
    scorer: Scorer, seeds: FloatArray | None, gold: BoolArray | None, calibration: Calibration
) -> dict[str, Any]:
    """What `scorer` learns from its seed's log-odds `seeds` and the gold labels, as JSON values; else nothing.

    The seed's log-odds are calibrated with `calibration`, a fresh one, and the seed's decisions are those of that,
    label by label: the level of a document has no cut.
    """
    if not isinstance(scorer, Learner) or seeds is None:
        return {}
    if gold is None:
        raise SetScoreError("this scorer learns from gold labels; pass y to fit, or use the scorer per_label.")
    return scorer.learn(log_odds_cuts(calibration.label_by_label().fit(seeds, gold), gold.shape[1]), gold).learned


def log_odds_cuts(calibration: Calibration, labels: int) -> FloatArray:
    """The log-odds [n_labels] from which a fitted calibration predicts each label, in [-FAR, FAR].

    Probabilities never fall as log-odds grow, so the place is found by halving. A cap or a floor on the number of
    labels per document is not part of it.
    """
    low, high = np.full(labels, -FAR), np.full(labels, FAR)
    for _ in range(STEPS):
        middle = (low + high) / 2
        reached = calibration.transform(middle[None])[0] >= calibration.thresholds_
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high
