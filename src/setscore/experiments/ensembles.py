"""Ensembles of saved scores, measured over seeds: weights and threshold from validation documents only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from setscore import ensemble
from setscore.errors import SetScoreError, counted
from setscore.experiments.evaluation import Summary, Trial, summarise, trials
from setscore.experiments.scored import Outcome, Scored, fit, measure
from setscore.metrics import decision_metrics

GLOBAL = "temperature"  # one threshold for all labels, as the paper's blends have


def measure_ensembles(
    members: Mapping[str, Mapping[str, Scored]], seeds: Sequence[int], kind: str = GLOBAL
) -> list[Summary]:
    """Every member alone, their ensemble, and the oracle ensemble; `members` are saved parts by name."""
    drawn = {name: trials(parts, seeds) for name, parts in members.items()}
    rows = {}
    for number, seed in enumerate(seeds):
        rows[seed] = _rows({name: made[number] for name, made in drawn.items()}, kind)
    return summarise(rows)


def _rows(members: Mapping[str, Trial], kind: str) -> list[Outcome]:
    for part in ("validation", "test"):
        check_documents({name: getattr(trial, part) for name, trial in members.items()})
    first = next(iter(members.values()))
    validation = {name: trial.validation.log_odds for name, trial in members.items()}
    test = {name: trial.test.log_odds for name, trial in members.items()}
    chosen = ensemble.fit(validation, first.validation.gold)
    found = [_measured(name, f"{name} alone", trial, kind, what="member") for name, trial in members.items()]
    mixed = Trial(
        first.seed,
        replace(first.validation, log_odds=chosen.mix(validation)),
        replace(first.test, log_odds=chosen.mix(test)),
    )
    found.append(_measured("ensemble", chosen.sentence(), mixed, kind, what="model"))
    best, _ = ensemble.oracle(test, first.test.gold)
    oracle = best.mix(test)
    decided = oracle >= ensemble.best_cut(oracle, first.test.gold)
    metrics = decision_metrics(first.test.gold, decided)
    found.append(Outcome("oracle ensemble", "oracle", f"{best.sentence()}, tuned on the test documents", metrics))
    return found


def _measured(name: str, choice: str, trial: Trial, kind: str, *, what: str) -> Outcome:
    test, calibration = trial.test, fit(trial.validation, trial.test, kind)
    probabilities, decisions = calibration.decide(test.log_odds)
    return measure(name, what, choice, test, decisions=decisions, probabilities=probabilities)


def check_documents(members: Mapping[str, Scored]) -> None:
    """The same documents and labels in the same order, or an error with both counts."""
    (first, one), *others = members.items()
    for name, other in others:
        if (one.ids, one.labels) != (other.ids, other.labels):
            raise SetScoreError(
                f"{first} has scores of {counted(len(one.ids), 'document')} and {counted(len(one.labels), 'label')},"
                f" {name} of {counted(len(other.ids), 'document')} and {counted(len(other.labels), 'label')}, and they"
                " are not the same. An ensemble's members score the same documents and labels."
            )
