"""A run: from a config to decisions on test documents, for every seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from setscore.backbones import EMBEDDED, is_place, load_backbone
from setscore.baselines import GENERATIVE
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset, find_source, load_files, parse_labels
from setscore.experiments.baselines import score_baseline
from setscore.experiments.deciding import CALIBRATED, OWN, decide
from setscore.experiments.evaluation import (
    Experiment,
    Predicted,
    Trial,
    asked_by,
    changed,
    named,
    predict_dataset,
    prepare,
    prepare_file,
    split,
    trials,
)
from setscore.experiments.protocol import best, validation_micro_f1
from setscore.experiments.runs.config import RunConfig
from setscore.experiments.runs.counting import Cost, CountingBackbone, most_memory
from setscore.experiments.scored import Outcome, Scored, describe, measure_model
from setscore.experiments.training import training_documents
from setscore.records import FloatArray, Progress
from setscore.shortlist import Shortlist
from setscore.store import Store, open_store

ZERO_SHOT = "zero-shot"


@dataclass(frozen=True, eq=False)
class SeedRun:
    """What came of one seed.

    validation, test  the scores; of a zero-shot run no validation documents
    texts             [n] of the test documents
    outcome           decisions and everything measured about them
    probabilities     [n, m]; None for a method that has none
    template          the question that was asked; `sweep` holds the validation micro-F1 of all that were tried
    """

    seed: int
    validation: Scored
    test: Scored
    texts: tuple[str, ...]
    outcome: Outcome
    probabilities: FloatArray | None
    template: str = ""
    sweep: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Executed:
    """All seeds of a run, what it cost, and which model answered."""

    config: RunConfig
    seeds: tuple[SeedRun, ...]
    cost: Cost
    identity: str
    remarks: tuple[str, ...]


def load_experiment(config: RunConfig) -> Experiment:
    """The documents of a resolved config, labels as they are asked."""
    data = config.dataset
    if data.file is not None:
        dataset = load_files(
            data.file,
            parse_labels(str(data.labels)),
            text_column=data.text_column,
            labels_column=data.labels_column,
            id_column=data.id_column,
            separator=data.separator,
            ignore_unknown=data.ignore_unknown,
        )
        return asked_by(prepare_file(dataset, limit=data.limit), data.label_text)
    source, slices = find_source(str(data.name)), str(data.slices)
    place = None if data.data_dir is None else Path(data.data_dir)
    ready = prepare(source.name, slices, config.drawn, data_dir=place, limit=data.limit)
    return asked_by(ready, data.label_text)


def fingerprints(experiment: Experiment) -> dict[str, str]:
    """What tells the documents from any others, by part."""
    return {part: dataset.fingerprint for part, dataset in experiment.parts.items()}


def quick_identity(config: RunConfig) -> str | None:
    """The identity of the model that a config names, where it may have changed under that name: embedded, or a folder.

    Public checkpoints are pinned; loading one takes minutes.
    """
    method = config.method
    if method.baseline is not None or not (method.backbone in EMBEDDED or is_place(method.backbone.partition("?")[0])):
        return None
    return load_backbone(method.backbone, attention=method.attention, verbalizer=method.verbalizer).identity


def execute(
    config: RunConfig,
    store: str | Path | Store,
    *,
    experiment: Experiment | None = None,
    progress: Progress | None = None,
) -> Executed:
    """Scores, decides and measures; what the store knows is not asked again."""
    ready = config.resolved()
    documents = experiment or load_experiment(ready)
    run = _baseline if ready.method.baseline is not None else _classified
    return run(ready, documents, store, progress)


def _classified(
    config: RunConfig, experiment: Experiment, store: str | Path | Store, progress: Progress | None
) -> Executed:
    method, cost = config.method, Cost()
    loaded = load_backbone(method.backbone, attention=method.attention, verbalizer=method.verbalizer)
    backbone = CountingBackbone(loaded, cost)
    models = {
        template: config.classifier(template, backbone=backbone, store=open_store(store))
        for template in method.templates
    }
    made = []
    for seed in config.drawn:
        validation, test = split(experiment, seed)
        told = named(progress, f"seed {seed}")
        made.append(_seed(config, models, Slices(seed, validation, test), cost, told))
    cost.memory = cost.memory or most_memory()
    return Executed(config, tuple(made), cost, backbone.identity, _remarks(experiment, made))


@dataclass(frozen=True)
class Slices:
    """The documents of a seed."""

    seed: int
    validation: Dataset
    test: Dataset


def _seed(
    config: RunConfig,
    models: Mapping[str, SetScoreClassifier],
    documents: Slices,
    cost: Cost,
    progress: Progress | None,
) -> SeedRun:
    """One seed: fitted on validation documents with the best template there, measured on test documents."""
    validation, test = documents.validation, documents.test
    if config.method.decided == ZERO_SHOT:
        ((template, model),) = models.items()
        model, sweep = changed(model, labels=validation.labels), {}
        seen = _empty(test)
    else:
        fitted = {name: _fitted(model, validation, progress) for name, model in models.items()}
        sweep = {name: validation_micro_f1(one.fit_scores_.log_odds, validation.gold) for name, one in fitted.items()}
        template = list(sweep)[best(list(sweep.values()))]
        model = fitted[template]
        cost.forwards += sum(one.fit_scores_.forwards for one in fitted.values())
        seen = Scored.of(
            validation,
            model.fit_scores_.log_odds,
            describe(model, validation),
            truncated=model.fit_scores_.truncated,
        )
    found = predict_dataset(test, model, progress)
    cost.forwards += found.forwards
    probabilities = None if config.method.decided == OWN else found.probabilities
    return SeedRun(
        documents.seed,
        seen,
        found.scored,
        test.texts,
        _outcome(config, model, seen, found),
        probabilities,
        template,
        sweep if len(sweep) > 1 else {},
    )


def _fitted(model: SetScoreClassifier, validation: Dataset, progress: Progress | None) -> SetScoreClassifier:
    return changed(model, labels=validation.labels).fit(validation.texts, validation.gold, progress=progress)


def _outcome(config: RunConfig, model: SetScoreClassifier, seen: Scored, found: Predicted) -> Outcome:
    way = config.method.decided
    if way not in (CALIBRATED, ZERO_SHOT):
        return decide(Trial(0, seen, found.scored), way, config.calibration)[0]
    calibration = model.current_calibration()
    return measure_model(
        model.regime,
        getattr(calibration, "choice_", "") or "nothing is fitted",
        found.scored,
        decisions=found.decisions,
        probabilities=found.probabilities,
        undecided=found.undecided,
    )


def _empty(test: Dataset) -> Scored:
    return Scored.of(test.head(0), np.zeros((0, len(test.labels))), {})


def _baseline(
    config: RunConfig, experiment: Experiment, store: str | Path | Store, progress: Progress | None
) -> Executed:
    method, name = config.method, str(config.method.baseline)
    given = {"device": method.device} | ({} if method.checkpoint is None else {"checkpoint": method.checkpoint})
    place = None if config.dataset.data_dir is None else Path(config.dataset.data_dir)
    train = "validation" if config.dataset.file is not None else method.train
    learn = training_documents(name, experiment, train, data_dir=place, limit=method.train_limit)
    shortlist = None if method.shortlist is None else Shortlist.of(method.shortlist)
    folder = store if isinstance(store, str | Path) else None
    parts, run = score_baseline(
        name,
        experiment,
        config.drawn,
        options=given,
        training=learn,
        shortlist=shortlist,
        save=None if folder is None else Path(folder),
        progress=progress,
    )
    way = OWN if name in GENERATIVE else method.decided
    made = []
    for trial, texts in zip(trials(parts, config.drawn), _texts(experiment, config.drawn), strict=True):
        outcome, probabilities = decide(trial, way, config.calibration)
        made.append(SeedRun(trial.seed, trial.validation, trial.test, texts, outcome, probabilities))
    cost = Cost(asked=run.documents, seconds=run.seconds, memory=most_memory())
    return Executed(config, tuple(made), cost, run.identity(), (*_remarks(experiment, made), *run.remarks(learn)))


def _texts(experiment: Experiment, seeds: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    for seed in seeds:
        yield split(experiment, seed)[1].texts


def _remarks(experiment: Experiment, made: list[SeedRun]) -> tuple[str, ...]:
    """What was left out or cut, as sentences."""
    found = [note for dataset in experiment.parts.values() for note in dataset.notes]
    for one in made:
        if cut := int(one.test.truncated.sum()):
            found.append(f"seed {one.seed}: {cut} of {len(one.test)} test documents were read in part.")
    return tuple(dict.fromkeys(found))
