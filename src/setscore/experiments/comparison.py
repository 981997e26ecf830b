"""Ways of scoring beside each other: the same documents, the same calibration, what each costs."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import setscore.calibration as calibrations
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.errors import SetScoreError, TruncationWarning
from setscore.experiments.evaluation import Kind, Spread, Trial, fit
from setscore.experiments.scored import Scored, describe, with_learned
from setscore.experiments.slices import Experiment, trials
from setscore.metrics import decision_metrics
from setscore.prompts import Template
from setscore.records import FloatArray
from setscore.scorers import Reading, make, seed_of

Tell = Callable[[str], None]  # what is going on, as a sentence


@dataclass(frozen=True)
class Method:
    """One way of scoring, measured.

    metrics       of the calibrated decisions on test documents, over seeds
    uncalibrated  of the decisions at log-odds of 0: what refinement and programmes themselves decide
    forwards      for a document
    speed         documents a second, everything counted
    details       means over documents of what the scorer reports besides
    """

    name: str
    metrics: Spread
    uncalibrated: Spread
    forwards: float
    speed: float
    details: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        """As JSON values; without a second seed the deviation is null."""
        spreads = {
            what: {
                key: {"mean": mean, "sd": None if math.isnan(spread.sd[key]) else spread.sd[key]}
                for key, mean in spread.mean.items()
            }
            for what, spread in (("metrics", self.metrics), ("uncalibrated", self.uncalibrated))
        }
        return {"forwards": self.forwards, "documents_per_second": self.speed, "details": dict(self.details)} | spreads


@dataclass(frozen=True)
class _Timed:
    """A part scored: with how many forwards, in how many seconds."""

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
    tell: Tell | None = None,
) -> list[Method]:
    """Every scorer of `names` on the same documents.

    One that starts from another scorer's decisions learns on each seed's validation documents, and scores again.
    """
    known: dict[str, dict[str, _Timed]] = {}

    def plain(name: str) -> dict[str, _Timed]:
        if name not in known:
            model = with_scorer(classifier, name)
            known[name] = {part: _score(model, dataset) for part, dataset in experiment.parts.items()}
        return known[name]

    made = []
    for name in names:
        if tell:
            tell(f"{experiment.name}: scoring with {name}")
        seed = seed_of(name)
        if seed is None:
            parts = plain(name)
            drawn = trials({part: timed.scored for part, timed in parts.items()}, seeds)
            made.append(_method(name, drawn, list(parts.values()), kind))
            continue
        if seed_of(seed) is not None:
            raise SetScoreError(
                f"{name} starts from {seed}, which itself starts from another scorer; that is too deep."
            )
        starts = trials({part: timed.scored for part, timed in plain(seed).items()}, seeds)
        drawn, timed = [], []
        for start in starts:
            model = learnt(with_scorer(classifier, name), start.validation, kind)
            parts = {part: _score(model, dataset) for part, dataset in experiment.parts.items()}
            timed += list(parts.values())
            drawn += trials({part: one.scored for part, one in parts.items()}, [start.seed])
        made.append(_method(name, drawn, timed, kind))
    return made


def with_scorer(classifier: SetScoreClassifier, name: str) -> SetScoreClassifier:
    return SetScoreClassifier(**classifier.get_params(deep=False) | {"scorer": name})


def seed_classifier(classifier: SetScoreClassifier) -> SetScoreClassifier | None:
    """The same classifier with the scorer that its own starts from, if it starts from one."""
    seed = seed_of(classifier.scorer)
    return None if seed is None else with_scorer(classifier, seed)


def learnt(classifier: SetScoreClassifier, seeds: Scored, kind: Kind) -> SetScoreClassifier:
    """A copy whose scorer has learnt from the seed's scores of labelled documents."""
    reading = Reading(classifier.long_documents, classifier.pool, classifier.overlap)
    scorer = make(classifier.scorer, Template.of(classifier.template), reading)
    learned = calibrations.learn_from(scorer, seeds.log_odds, seeds.gold, calibrations.make(kind))
    return with_learned(with_scorer(classifier, classifier.scorer), learned)


def _score(classifier: SetScoreClassifier, dataset: Dataset) -> _Timed:
    params = classifier.get_params(deep=False) | {"labels": dataset.labels}
    model = with_learned(SetScoreClassifier(**params), getattr(classifier, "learned_", None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # counted in `truncated`
        model.score_documents(dataset.texts[:1])  # loading is not timed
        begun = time.perf_counter()
        scores = model.score_documents(dataset.texts)
        seconds = time.perf_counter() - begun
    scored = Scored(
        dataset.name,
        dataset.split,
        dataset.labels.names,
        dataset.ids,
        scores.log_odds,
        dataset.gold,
        scores.truncated,
        dataset.notes,
        describe(model, dataset),
    )
    return _Timed(scored, scores.forwards, seconds, scores.details)


def _method(name: str, drawn: Sequence[Trial], timed: Sequence[_Timed], kind: Kind) -> Method:
    documents = sum(len(one.scored) for one in timed)
    calibrated, plain = [], []
    for trial in drawn:
        calibration = fit(trial.validation, trial.test, kind)
        calibrated.append(decision_metrics(trial.test.gold, calibration.predict(trial.test.log_odds)))
        plain.append(decision_metrics(trial.test.gold, trial.test.log_odds > 0))
    details = {key: float(np.concatenate([one.details[key] for one in timed]).mean()) for key in timed[0].details}
    return Method(
        name,
        Spread.of(calibrated),
        Spread.of(plain),
        sum(one.forwards for one in timed) / documents,
        documents / sum(one.seconds for one in timed),
        details,
    )
