"""One experiment from documents to a report: scored (or read back), evaluated over seeds, beside the yardsticks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

import setscore.calibration as calibrations
from setscore import fitting
from setscore.classifier import SetScoreClassifier
from setscore.encoders import Encode
from setscore.ensemble import BLENDS
from setscore.errors import MissingExtraError, truncation
from setscore.experiments.blending import DEFAULT, EMBEDDED_BLEND, beside, blend_trials, score_blend
from setscore.experiments.evaluation import (
    Experiment,
    Summary,
    Trial,
    ask_dataset,
    named,
    oracles,
    over_trials,
    predict_dataset,
    summarise,
    trials,
    with_labels,
)
from setscore.experiments.learning import Learner, learned
from setscore.experiments.pairs import Pair, between, within
from setscore.experiments.pictures import reliability_diagram, threshold_curve
from setscore.experiments.saved import keep, known
from setscore.experiments.scored import UNFITTED, Kind, Scored, describe, fit, flattery, measure_model, unfitted
from setscore.experiments.yardsticks import cosine, every_label, label_prior, score_cosine
from setscore.records import Progress
from setscore.store import Store, open_store
from setscore.theory import shortlist_ceilings

if TYPE_CHECKING:
    from setscore.experiments.baselines import BaselineReport

WHOLE = 0  # stands for the seed where nothing is drawn


@dataclass(frozen=True)
class Report:
    """What was measured on one dataset.

    summaries  calibrations of the model and the plain threshold 0.5, yardsticks, then oracles
    trials     the scores that were measured, by seed; of a saved classifier one without validation documents
    remarks    what was left out, cut or stands in for something else, as sentences
    pairs      paired tests, where they were asked for
    """

    name: str
    slices: str
    summaries: tuple[Summary, ...]
    trials: tuple[Trial, ...]
    config: Mapping[str, Any]
    remarks: tuple[str, ...]
    pairs: tuple[Pair, ...] = ()


def score_parts(
    experiment: Experiment,
    classifier: SetScoreClassifier | None = None,
    *,
    embed: bool = False,
    progress: Progress | None = None,
) -> dict[str, Scored]:
    """Every part of an experiment scored. With a store in the classifier, tables are kept there, and taken if known.

    With `embed` scores have the documents' vectors; of a table without them the model is asked for these alone.
    """
    asked = classifier or SetScoreClassifier()
    store = None if asked.store is None else open_store(asked.store)
    scored = {}
    for part, dataset in experiment.parts.items():
        model, told = with_labels(asked, dataset.labels), named(progress, part)
        found = None if store is None else known(store, dataset, describe(model, dataset))
        if found is None or (embed and found.vectors is None):
            found = ask_dataset(dataset, model, told, embed=embed)
        elif told is not None:
            told(f"re-using the scores in {asked.store}", len(dataset), len(dataset))
        if store is not None:
            keep(store, experiment.saved_as, part, found)
        scored[part] = found
    return scored


def report(
    experiment: Experiment,
    scored: Mapping[str, Scored],
    seeds: Sequence[int],
    kinds: Sequence[Kind] = ("auto", "paper"),
    *,
    yardsticks: bool = False,
    with_oracles: bool = True,
    blend: str | None = None,
    store: Store | None = None,
    encode: Encode | None = None,
    learner: Learner | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measures what `score_parts` scored, blended with a cosine if one is named, its weights by seed.

    With a `learner` there is a row of what `fit` learns from the same validation documents; it wants vectors.
    `encode` takes the place of the sentence encoder. `progress` hears of documents that are embedded for a cosine.
    """
    drawn = before = trials(scored, seeds)
    remarks = [*_remarks(experiment, scored), *few_documents(drawn)]
    if blend is not None:
        cosines = score_blend(experiment.parts, blend, store, experiment.saved_as, progress=progress)
        before, drawn, chosen = blend_trials(drawn, cosines, blend)
        told = (f"seed {trial.seed} {weights}" for trial, weights in zip(drawn, chosen, strict=True))
        remarks.append(f"blend: {'; '.join(told)}.")
    model = over_trials(drawn, kinds, with_oracles=with_oracles)
    plain = summarise({trial.seed: [unfitted(trial.test)] for trial in before})
    if learner is not None:
        plain = summarise({trial.seed: [learned(trial.validation, trial.test, learner)] for trial in drawn}) + plain
    config = dict(next(iter(scored.values())).config) | ({} if blend is None else {"blend": blend})
    others: list[Summary] = []
    if yardsticks:
        outcomes = {trial.seed: [label_prior(trial.validation, trial.test), every_label(trial.test)] for trial in drawn}
        if blend is None and DEFAULT in kinds and config.get("model") == BLENDS[EMBEDDED_BLEND]:
            cosines = score_blend(experiment.parts, EMBEDDED_BLEND, store, experiment.saved_as, progress=progress)
            for seed, outcome in beside(drawn, cosines).items():
                outcomes[seed].insert(0, outcome)
        try:
            found = _cosines(experiment, encode, store, progress)
            for trial in trials(found, seeds):
                outcomes[trial.seed] += cosine(trial.validation, trial.test, kinds)
            remarks.append("the cosine yardstick reads at most the first 256 tokens of a document.")
        except MissingExtraError as error:
            remarks.append(f"left out: {error}")
        others = summarise(outcomes)
    honest, oracle = ([s for s in model if (s.kind == "oracle") == wanted] for wanted in (False, True))
    summaries = tuple(one.under(experiment.name, config) for one in honest + plain + others + oracle)
    return Report(experiment.name, experiment.slices, summaries, tuple(drawn), config, tuple(remarks))


def _cosines(
    experiment: Experiment, encode: Encode | None, store: Store | None, progress: Progress | None
) -> dict[str, Scored]:
    return {
        part: score_cosine(dataset, encode, store=store, place=(experiment.saved_as, part), progress=progress)
        for part, dataset in experiment.parts.items()
    }


def report_saved(
    experiment: Experiment,
    classifier: SetScoreClassifier,
    *,
    yardsticks: bool = True,
    with_oracles: bool = True,
    progress: Progress | None = None,
) -> Report:
    """A fitted classifier on all documents of one part; a remark if it was fitted on some of them."""
    ((part, dataset),) = experiment.parts.items()
    found = predict_dataset(dataset, with_labels(classifier, dataset.labels), named(progress, part))
    test = found.scored
    if classifier.store is not None:
        keep(open_store(classifier.store), experiment.saved_as, part, test)
    trial = Trial(WHOLE, test.take(np.arange(0)), test)
    calibration = classifier.current_calibration()
    outcomes = [
        measure_model(
            calibrations.spelt(calibration),
            calibration.choice_,
            test,
            decisions=found.decisions,
            probabilities=found.probabilities,
            undecided=found.undecided,
        )
    ]
    outcomes += [every_label(test)] if yardsticks else []
    outcomes += oracles(test) if with_oracles else []
    flattered = flattery(calibration, test)
    remarks = [*_remarks(experiment, {part: test}), *([flattered] if flattered else [])]
    if classifier.blend is None:
        outcomes.insert(1, unfitted(test))
    else:
        remarks.append(f"no row {UNFITTED}: the scores are a blend, whose weights are fitted too.")
    summaries = tuple(one.under(experiment.name, test.config) for one in summarise({WHOLE: outcomes}))
    return Report(experiment.name, experiment.slices, summaries, (trial,), test.config, tuple(remarks))


def paired(made: Report, others: Mapping[str, Mapping[str, Scored]] | None, kind: Kind) -> Report:
    """With paired tests of the first decisions against the others, and against other runs' scores, by their names."""
    pairs = within(made.summaries, made.trials)
    for name, parts in (others or {}).items():
        pairs.append(between(made.summaries[0], made.trials, parts, kind, name))
    return replace(made, pairs=tuple(pairs))


def _remarks(experiment: Experiment, scored: Mapping[str, Scored]) -> list[str]:
    found = []
    for part, dataset in experiment.parts.items():
        notes = list(dataset.notes)
        if cut := int(scored[part].truncated.sum()):
            notes.append(truncation(cut, len(dataset)))
        if not (asked := np.isfinite(scored[part].log_odds)).all():
            kept = shortlist_ceilings(scored[part].gold, asked)
            worst = kept.worst_labels(scored[part].labels)
            lost = ", ".join(f"{name} ({100 * share:.0f}%)" for name, share in worst)
            notes += [kept.sentence(), *([f"kept least of all labels: {lost}."] if lost else [])]
        found += [note if len(experiment.parts) == 1 else f"{part}: {note}" for note in notes]
    return found


def few_documents(drawn: Sequence[Trial]) -> list[str]:
    """The warning for slices that are too small to fit on, once for all seeds."""
    message = fitting.few_documents(min(len(trial.validation) for trial in drawn))
    return [] if message is None else [message]


def draw(made: Report, folder: str | Path, kind: Kind = "auto") -> list[Path]:
    """Two pictures of a report's first seed: a reliability diagram and a threshold curve."""
    trial = made.trials[0]
    calibration = fit(trial.validation, trial.test, kind)
    probabilities, gold = calibration.transform(trial.test.log_odds), trial.test.gold
    title = f"{made.name}, {made.slices} slices, seed {trial.seed}"
    paths = [Path(folder) / f"{made.name}-{what}.png" for what in ("reliability", "thresholds")]
    name = calibrations.spelt(calibration)
    lines = {"raw": expit(trial.test.log_odds), name: probabilities}
    reliability_diagram(paths[0], gold, lines, title)
    threshold_curve(paths[1], gold, probabilities, calibration.thresholds_, f"{title}, {name}")
    return paths


def as_json(made: Report) -> dict[str, Any]:
    """A report as JSON values; F1 and all other metrics as fractions."""
    first = made.trials[0]
    return {
        "slices": made.slices,
        "labels": len(first.test.labels),
        "documents": {str(trial.seed): [len(trial.validation), len(trial.test)] for trial in made.trials},
        "config": dict(made.config),
        "remarks": list(made.remarks),
        "rows": [_row_json(summary) for summary in made.summaries],
    } | ({"pairs": [pair.as_json() for pair in made.pairs]} if made.pairs else {})


def baseline_json(made: "BaselineReport") -> dict[str, Any]:
    """The same of a baseline."""
    return {
        "baseline": made.name,
        "labels": len(next(iter(made.scored.values())).labels),
        "documents": {part: len(scored) for part, scored in made.scored.items()},
        "documents_per_second": made.documents_per_second,
        "device": made.device,
        "remarks": list(made.remarks),
        "rows": [_row_json(summary) for summary in made.summaries],
    }


def _row_json(summary: Summary) -> dict[str, Any]:
    """A row as JSON values."""
    groups = {value: _spread(found.mean, found.sd) for value, found in summary.groups.items()}
    seeds = {
        str(seed): {
            "choice": row.choice,
            "metrics": dict(row.metrics),
            "intervals": {key: asdict(interval) for key, interval in row.intervals.items()},
        }
        | ({"groups": {value: dict(found) for value, found in row.groups.items()}} if row.groups else {})
        | ({"labels": [dict(label) for label in row.labels]} if summary.kind == "model" else {})
        for seed, row in summary.rows.items()
    }
    about = {"name": summary.name, "kind": summary.kind, "protocol": summary.protocol}
    found = about | {"metrics": _spread(summary.mean, summary.sd), "seeds": seeds}
    return found | ({"groups": groups} if groups else {})


def _spread(mean: Mapping[str, float], sd: Mapping[str, float]) -> dict[str, dict[str, float | None]]:
    """JSON has no NaN: without a second seed the deviation is null."""
    return {key: {"mean": value, "sd": None if math.isnan(sd[key]) else sd[key]} for key, value in mean.items()}
