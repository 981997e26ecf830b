"""Ways of scoring beside each other: the same documents, the same calibration, what each costs."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setscore import fitting
from setscore.backbones import Backbone, load_backbone
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.errors import SetScoreError, TruncationWarning
from setscore.experiments.evaluation import Kind, Spread, Trial, fit
from setscore.experiments.scored import Scored, describe, learned_of, with_learned
from setscore.experiments.slices import Experiment, trials
from setscore.metrics import decision_metrics
from setscore.prompts import Template
from setscore.records import FloatArray, Query
from setscore.scorers import Reading, make, seed_of

Tell = Callable[[str], None]  # what is going on, as a sentence


@dataclass(frozen=True)
class Method:
    """One way of scoring, measured.

    metrics       of the calibrated decisions on test documents, over seeds
    uncalibrated  of the decisions at log-odds of 0: what refinement and programmes themselves decide
    forwards      for a document
    speed         documents a second, everything counted; of the first seed, where each seed scores anew
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
class Timed:
    """A part scored: with how many forwards, in how many seconds."""

    scored: Scored
    forwards: int
    seconds: float
    details: Mapping[str, FloatArray]


class RememberingBackbone:
    """Asks nothing twice. The seeds of an experiment refine nearly the same sets, so they share most questions.

    The forwards that a scorer counts are its own: what another seed has asked is counted again.
    """

    def __init__(self, backbone: Backbone, most: int = 400_000) -> None:
        self.backbone, self.spec, self.attention, self.most = backbone, backbone.spec, backbone.attention, most
        self.identity = backbone.identity
        self._known: dict[Query, FloatArray] = {}

    def spans(self, text: str) -> list[tuple[int, int]]:
        return self.backbone.spans(text)

    def log_odds(self, queries: Sequence[Query]) -> list[FloatArray]:
        found = [self._known.get(query) for query in queries]
        new = list(dict.fromkeys(query for query, known in zip(queries, found, strict=True) if known is None))
        answers = dict(zip(new, self.backbone.log_odds(new) if new else [], strict=True))
        if len(self._known) + len(answers) > self.most:  # some hundred megabytes
            self._known.clear()
        self._known |= answers
        return [answers[query] if known is None else known for query, known in zip(queries, found, strict=True)]


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
    known: dict[str, dict[str, Timed]] = {}

    def plain(name: str) -> dict[str, Timed]:
        if name not in known:
            model = with_scorer(classifier, name)
            known[name] = {part: score_timed(model, dataset) for part, dataset in experiment.parts.items()}
        return known[name]

    made = []
    for name in names:
        if tell:
            tell(f"{experiment.name}: scoring with {name}")
        seed = check_depth(name)
        if seed is None:
            parts = plain(name)
            drawn = trials({part: timed.scored for part, timed in parts.items()}, seeds)
            made.append(measured(name, drawn, list(parts.values()), kind))
            continue
        drawn, timed = [], []
        starts = trials({part: one.scored for part, one in plain(seed).items()}, seeds)
        for start, model in zip(starts, learnt_models(classifier, name, starts, kind), strict=True):
            if tell:
                tell(f"{experiment.name}: {name} learnt with seed {start.seed}")
            parts = {part: score_timed(model, dataset) for part, dataset in experiment.parts.items()}
            timed += list(parts.values())
            drawn += trials({part: one.scored for part, one in parts.items()}, [start.seed])
        made.append(measured(name, drawn, timed, kind, clock=timed[: len(experiment.parts)]))
    return made


def check_depth(name: str) -> str | None:
    """The scorer that this one starts from, if it starts from one; that one starts from nothing."""
    seed = seed_of(name)
    if seed is not None and seed_of(seed) is not None:
        raise SetScoreError(f"{name} starts from {seed}, which itself starts from another scorer; that is too deep.")
    return seed


def with_scorer(classifier: SetScoreClassifier, name: str) -> SetScoreClassifier:
    return SetScoreClassifier(**classifier.get_params(deep=False) | {"scorer": name})


def seed_classifier(classifier: SetScoreClassifier) -> SetScoreClassifier | None:
    """The same classifier with the scorer that its own starts from, if it starts from one."""
    seed = seed_of(classifier.scorer)
    return None if seed is None else with_scorer(classifier, seed)


def learnt_models(
    classifier: SetScoreClassifier, name: str, starts: Sequence[Trial], kind: Kind
) -> list[SetScoreClassifier]:
    """For every seed a classifier whose scorer has learnt on that seed's validation documents; they share a memory."""
    backbone = classifier.backbone
    if isinstance(backbone, str):
        backbone = load_backbone(backbone, attention=classifier.attention, verbalizer=classifier.verbalizer)
    params = classifier.get_params(deep=False) | {"scorer": name, "backbone": RememberingBackbone(backbone)}
    return [learnt(SetScoreClassifier(**params), start.validation, kind) for start in starts]


def learnt(classifier: SetScoreClassifier, seeds: Scored, kind: Kind) -> SetScoreClassifier:
    """A copy whose scorer has learnt from the seed's scores of labelled documents."""
    reading = Reading(classifier.long_documents, classifier.pool, classifier.overlap)
    scorer = make(classifier.scorer, Template.of(classifier.template), reading)
    learned = fitting.learn(scorer, seeds.log_odds, seeds.gold, kind)
    labels = seeds.labels if classifier.labels is None else classifier.labels
    return with_learned(SetScoreClassifier(**classifier.get_params(deep=False) | {"labels": labels}), learned)


def score_timed(classifier: SetScoreClassifier, dataset: Dataset) -> Timed:
    """Scores of a dataset, and the time they took; loading is not timed."""
    params = classifier.get_params(deep=False) | {"labels": dataset.labels}
    model = with_learned(SetScoreClassifier(**params), learned_of(classifier))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # counted in `truncated`
        SetScoreClassifier(**params | {"scorer": "per_label"}).score_documents(dataset.texts[:1])
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
    return Timed(scored, scores.forwards, seconds, scores.details)


def decided(trial: Trial, kind: Kind) -> tuple[dict[str, float], dict[str, float]]:
    """Metrics of the calibrated decisions on a trial's test documents, and of those at log-odds of 0."""
    calibration = fit(trial.validation, trial.test, kind)
    ways = (calibration.predict(trial.test.log_odds), trial.test.log_odds > 0)
    calibrated, plain = (decision_metrics(trial.test.gold, way) for way in ways)
    return calibrated, plain


def measured(
    name: str, drawn: Sequence[Trial], timed: Sequence[Timed], kind: Kind, *, clock: Sequence[Timed] | None = None
) -> Method:
    """A scorer's row. `clock` are the parts whose time counts: those asked before anything was remembered."""
    documents = sum(len(one.scored) for one in timed)
    calibrated, plain = zip(*(decided(trial, kind) for trial in drawn), strict=True)
    details = {key: float(np.concatenate([one.details[key] for one in timed]).mean()) for key in timed[0].details}
    watched = clock or timed
    return Method(
        name,
        Spread.of(calibrated),
        Spread.of(plain),
        sum(one.forwards for one in timed) / documents,
        sum(len(one.scored) for one in watched) / sum(one.seconds for one in watched),
        details,
    )
