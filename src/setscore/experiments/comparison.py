"""Ways of scoring beside each other: the same documents, the same calibration, what each costs."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import setscore.calibration as calibrations
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.errors import SetScoreError
from setscore.experiments.evaluation import Experiment, Spread, Trial, changed, split, trials, with_labels
from setscore.experiments.protocol import made_under
from setscore.experiments.scored import Kind, Scored, describe, fit
from setscore.metrics import decision_metrics
from setscore.records import FloatArray, Progress, steps
from setscore.scorers import seed_of
from setscore.store import MemoryStore


@dataclass(frozen=True)
class Method:
    """One way of scoring, measured.

    metrics       of the calibrated decisions on test documents, over seeds
    uncalibrated  of the decisions at log-odds of 0: what refinement and programmes themselves decide
    forwards      for a document
    speed         documents a second, everything counted; of the first seed, where each seed scores anew; None with a
                  store, whose answers cost nothing
    details       means over documents of what the scorer reports besides
    protocol      the word of the protocol that the calibrated decisions were made under
    """

    name: str
    metrics: Spread
    uncalibrated: Spread
    forwards: float
    speed: float | None
    details: Mapping[str, float]
    protocol: str

    def as_json(self) -> dict[str, Any]:
        """As JSON values; without a second seed the deviation is null."""
        spreads = {
            what: {
                key: {"mean": mean, "sd": None if math.isnan(spread.sd[key]) else spread.sd[key]}
                for key, mean in spread.mean.items()
            }
            for what, spread in (("metrics", self.metrics), ("uncalibrated", self.uncalibrated))
        }
        about = {"protocol": self.protocol, "forwards": self.forwards, "documents_per_second": self.speed}
        return about | {"details": dict(self.details)} | spreads


@dataclass(frozen=True)
class Timed:
    """Documents scored: with how many forwards, in how many seconds."""

    scored: Scored
    forwards: int
    seconds: float
    details: Mapping[str, FloatArray]


def compare_scorers(
    experiment: Experiment,
    names: Sequence[str],
    classifier: SetScoreClassifier,
    seeds: Sequence[int],
    kind: Kind = "auto",
    *,
    progress: Progress | None = None,
) -> list[Method]:
    """Every scorer of `names` on the same documents.

    One that starts from another scorer's decisions is fitted on each seed's validation documents. The seeds refine
    nearly the same sets, and the classifier's store, or one in memory, keeps what they have in common. The forwards
    that a scorer counts are its own: what another seed has asked is counted again.
    """
    made = []
    documents = sum(len(dataset) for dataset in experiment.parts.values())
    for name in names:
        step = steps(progress, f"scoring with {name}", documents)
        step(0)
        model = changed(classifier, scorer=name, calibration=kind)
        compare = _compare_plain if check_depth(name) is None else _compare_learner
        made.append(compare(experiment, model, seeds))
        step(documents)
    return made


def _compare_plain(experiment: Experiment, model: SetScoreClassifier, seeds: Sequence[int]) -> Method:
    """A scorer that learns nothing: its scores are calibrated on the validation documents of each seed."""
    timed = {part: score_timed(model, dataset) for part, dataset in experiment.parts.items()}
    drawn = trials({part: one.scored for part, one in timed.items()}, seeds)
    return measured(model, drawn, list(timed.values()), clock=list(timed.values()))


def _compare_learner(experiment: Experiment, model: SetScoreClassifier, seeds: Sequence[int]) -> Method:
    """A scorer that learns: fitted on the validation documents of each seed, measured on its test documents."""
    store = model.store or MemoryStore()
    drawn, timed = [], []
    for seed in seeds:
        validation, test = split(experiment, seed)
        calibrated = changed(model, labels=validation.labels, store=store, head="none")  # scorers are compared
        fitted = calibrated.fit(validation.texts, validation.gold)
        seen = fitted.fit_scores_
        known = Scored.of(validation, seen.log_odds, describe(fitted, validation), truncated=seen.truncated)
        found = score_timed(fitted, test)
        timed += [Timed(known, seen.forwards, 0.0, seen.details), found]
        drawn.append(Trial(seed, known, found.scored))
    return measured(model, drawn, timed, clock=timed[1:2])


def check_depth(name: str) -> str | None:
    """The scorer that this one starts from, if it starts from one; that one starts from nothing."""
    start = seed_of(name)
    if start is not None and seed_of(start) is not None:
        raise SetScoreError(f"{name} starts from {start}, which itself starts from another scorer; that is too deep.")
    return start


def score_timed(classifier: SetScoreClassifier, dataset: Dataset) -> Timed:
    """Scores of a dataset, and the time they took; loading is not timed."""
    model = with_labels(classifier, dataset.labels)
    changed(model, labels=dataset.labels, scorer="per_label", store=None).classify(dataset.texts[:1])
    begun = time.perf_counter()
    scores = model.classify(dataset.texts).checked().scores
    seconds = time.perf_counter() - begun
    scored = Scored.of(dataset, scores.log_odds, describe(model, dataset), truncated=scores.truncated)
    return Timed(scored, scores.forwards, seconds, scores.details)


def decided(trial: Trial, kind: Kind) -> tuple[dict[str, float], dict[str, float]]:
    """Metrics of the calibrated decisions on a trial's test documents, and of those at log-odds of 0."""
    calibration = fit(trial.validation, trial.test, kind)
    ways = (calibration.predict(trial.test.log_odds), trial.test.log_odds > 0)
    calibrated, plain = (decision_metrics(trial.test.gold, way) for way in ways)
    return calibrated, plain


def measured(
    model: SetScoreClassifier, drawn: Sequence[Trial], timed: Sequence[Timed], *, clock: Sequence[Timed]
) -> Method:
    """A scorer's row. `clock` are the documents whose time counts: those asked before anything was remembered."""
    documents = sum(len(one.scored) for one in timed)
    calibrated, plain = zip(*(decided(trial, model.calibration) for trial in drawn), strict=True)
    details = {key: float(np.concatenate([one.details[key] for one in timed]).mean()) for key in timed[0].details}
    speed = sum(len(one.scored) for one in clock) / sum(one.seconds for one in clock)
    return Method(
        model.scorer,
        Spread.of(calibrated),
        Spread.of(plain),
        sum(one.forwards for one in timed) / documents,
        speed if model.store is None else None,
        details,
        _protocol(model, timed[0].scored),
    )


def _protocol(model: SetScoreClassifier, scored: Scored) -> str:
    """What a scorer learned from validation documents is its start, not a read-out."""
    config = {key: value for key, value in scored.config.items() if key != "learned"}
    return made_under(scored.name, calibrations.spelt(calibrations.make(model.calibration)), config)
