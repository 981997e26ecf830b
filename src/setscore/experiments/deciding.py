"""How scores become decisions: calibrated as almost all are, by the method itself, or at one half.

Some methods have decisions and no scores: a model that writes labels as text, or a set that was refined. Calibrating
the numbers that stand for their decisions would only change some of them, so they are measured as they are.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit

from setscore.errors import SetScoreError, unknown_name
from setscore.experiments.evaluation import Summary, Trial, summarise
from setscore.experiments.scored import Kind, Outcome, Scored, decided, fit, measure_model
from setscore.metrics import bootstrap, decision_metrics, per_label_table
from setscore.records import FloatArray

CALIBRATED, OWN, HALF = "calibrated", "own", "half"
WAYS = (CALIBRATED, OWN, HALF)


def decide(trial: Trial, way: str = CALIBRATED, kind: Kind = "auto") -> tuple[Outcome, FloatArray | None]:
    """The decisions on a trial's test documents, measured, and the probabilities [n, m] behind them, if any are."""
    if way not in WAYS:
        raise SetScoreError(unknown_name("way to decide", way, WAYS))
    if way == OWN:
        return own_decisions(trial.test), None
    if way == HALF:
        probabilities = np.asarray(expit(trial.test.log_odds))
        choice = "probabilities of 0.5 and above; nothing is calibrated"
        found = measure_model(
            HALF, choice, trial.test, decisions=probabilities >= 0.5, probabilities=probabilities, undecided=None
        )
        return found, probabilities
    calibration = fit(trial.validation, trial.test, kind)
    return decided(calibration, trial.test), calibration.transform(trial.test.log_odds)


def own_decisions(test: Scored) -> Outcome:
    """Log-odds above 0 are yes. There are no probabilities behind them, so nothing is measured about any."""
    decisions = test.log_odds > 0
    return Outcome(
        OWN,
        "model",
        "its own decisions; nothing is calibrated",
        decision_metrics(test.gold, decisions),
        bootstrap(test.gold, decisions),
        labels=per_label_table(test.gold, decisions, test.labels),
        decisions=decisions,
    )


def over_own(trials: Sequence[Trial]) -> list[Summary]:
    """Own decisions over seeds."""
    rows: Mapping[int, list[Outcome]] = {trial.seed: [own_decisions(trial.test)] for trial in trials}
    return summarise(rows)
