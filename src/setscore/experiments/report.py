"""One experiment from documents to a report: scored (or read back), evaluated over seeds, beside the yardsticks."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import setscore.calibration as calibrations
from setscore import fitting
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset, draw_rows
from setscore.encoders import Encode
from setscore.ensemble import BLENDS, Ensemble
from setscore.errors import MissingExtraError, TruncationWarning, truncation
from setscore.experiments.blending import DEFAULT, OWN, beside, blend_trials, score_blend
from setscore.experiments.evaluation import (
    UNFITTED,
    Kind,
    Summary,
    Trial,
    decided,
    fit,
    flattery,
    oracles,
    over_trials,
    summarise,
    unfitted,
)
from setscore.experiments.pairs import Pair, between, within
from setscore.experiments.pictures import reliability_diagram, threshold_curve
from setscore.experiments.scored import Scored, Tell, saved_scores, score_dataset
from setscore.experiments.slices import Experiment, prepare_own, trials
from setscore.experiments.yardsticks import cosine, every_label, label_prior, score_cosine
from setscore.records import LabelSet
from setscore.shortlist import remember, retention, shortlist_of, worst_labels

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
    save: Path | None = None,
    tell: Tell | None = None,
) -> dict[str, Scored]:
    """Every part of an experiment scored; with `save`, kept in its folder there."""
    scored = {}
    for part, dataset in experiment.parts.items():
        folder = None if save is None else save / experiment.folder / part
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)  # a remark of the report
            scored[part] = score_dataset(dataset, classifier, folder, None if tell is None else partial(tell, part))
    return scored


def draw_slice(pool: Dataset, size: int | None, seed: int) -> Dataset:
    """`size` documents drawn from the pool with `seed`, or all of it."""
    return pool if size is None or size >= len(pool) else pool.draw(size, seed)[0]


def score_slice(
    pool: Dataset,
    size: int | None,
    seed: int,
    classifier: SetScoreClassifier,
    *,
    save: Path | None = None,
    tell: Tell | None = None,
) -> Scored:
    """A labelled slice to fit on (`draw_slice`), scored.

    Scores of the whole pool that `score_parts` saved are drawn from, so that nothing is asked again. What a shortlist
    that remembers the slice leaves out is another matter: those scores are kept beside them.
    """
    whole, drawn = prepare_own(pool), draw_slice(pool, size, seed)
    remembers = getattr(classifier.shortlist, "memory", None) is not None
    if drawn is pool and not remembers:
        return score_parts(whole, classifier, save=save, tell=tell)["pool"]
    if save is not None and (known := saved_scores(pool, classifier, save / whole.folder / "pool")):
        if tell is not None:
            tell("slice", len(drawn), len(drawn), f"re-using the scores in {save / whole.folder / 'pool'}")
        rows, _ = draw_rows(len(pool), len(drawn), seed)
        return replace(known.take(rows), notes=drawn.notes)
    part = f"{len(drawn)}-{seed}"  # one folder deeper than experiments: it has no test documents
    experiment = Experiment(pool.name, whole.slices, f"calibrate/{pool.name}", {part: drawn})
    return score_parts(experiment, classifier, save=save, tell=tell)[part]


def report(
    experiment: Experiment,
    scored: Mapping[str, Scored],
    seeds: Sequence[int],
    kinds: Sequence[Kind] = ("auto", "paper"),
    *,
    yardsticks: bool = False,
    blend: str | None = None,
    save: Path | None = None,
    encode: Encode | None = None,
    tell: Tell | None = None,
) -> Report:
    """Measures what `score_parts` scored, blended with a cosine if one is named, its weights by seed.

    `encode` takes the place of the sentence encoder. `tell` hears of documents that are embedded for a cosine.
    """
    drawn = before = trials(scored, seeds)
    folder = None if save is None else save / experiment.folder
    remarks = [*_remarks(experiment, scored), *few_documents(drawn)]
    if blend is not None:
        cosines = score_blend(experiment.parts, blend, folder, tell)
        before, drawn, chosen = blend_trials(drawn, cosines, blend)
        told = (f"seed {trial.seed} {weights}" for trial, weights in zip(drawn, chosen, strict=True))
        remarks.append(f"blend: {'; '.join(told)}.")
    model = [*over_trials(drawn, kinds), *summarise({trial.seed: [unfitted(trial.test)] for trial in before})]
    config = dict(next(iter(scored.values())).config) | ({} if blend is None else {"blend": blend})
    others: list[Summary] = []
    if yardsticks:
        rows = {trial.seed: [label_prior(trial.validation, trial.test), every_label(trial.test)] for trial in drawn}
        if blend is None and DEFAULT in kinds and config.get("backbone") == BLENDS[OWN]:
            for seed, row in beside(drawn, score_blend(experiment.parts, OWN, folder, tell)).items():
                rows[seed].insert(0, row)
        try:
            cosine_scores = _cosine_scores(experiment, folder and folder / "cosine", encode, tell)
            for trial in trials(cosine_scores, seeds):
                rows[trial.seed] += cosine(trial.validation, trial.test, kinds)
            remarks.append("the cosine yardstick reads at most the first 256 tokens of a document.")
        except MissingExtraError as error:
            remarks.append(f"left out: {error}")
        others = summarise(rows)
    honest, oracle = ([s for s in model if (s.kind == "oracle") == wanted] for wanted in (False, True))
    parts = tuple(honest + others + oracle)
    return Report(experiment.name, experiment.slices, parts, tuple(drawn), config, tuple(remarks))


def report_saved(experiment: Experiment, scored: Mapping[str, Scored], classifier: SetScoreClassifier) -> Report:
    """A fitted classifier on all documents of one part; a remark if it was fitted on some of them."""
    (test,) = scored.values()
    trial = Trial(WHOLE, test.take(np.arange(0)), test)
    rows = [decided(classifier.current_calibration(), test), every_label(test), *oracles(test)]
    flattered = flattery(classifier.current_calibration(), test)
    remarks = [*_remarks(experiment, scored), *([flattered] if flattered else [])]
    if classifier.blend is None:
        rows.insert(1, unfitted(test))
    else:
        remarks.append(f"no row {UNFITTED}: the scores are a blend, whose weights are fitted too.")
    parts = tuple(summarise({WHOLE: rows}))
    return Report(experiment.name, experiment.slices, parts, (trial,), test.config, tuple(remarks))


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
            kept = retention(scored[part].gold, asked)
            lost = ", ".join(f"{name} ({100 * share:.0f}%)" for name, share in worst_labels(kept, scored[part].labels))
            notes += [kept.sentence(), *([f"kept least of all labels: {lost}."] if lost else [])]
        found += [note if len(experiment.parts) == 1 else f"{part}: {note}" for note in notes]
    return found


def few_documents(drawn: Sequence[Trial]) -> list[str]:
    """The warning for slices that are too small to fit on, once for all seeds."""
    message = fitting.few_documents(min(len(trial.validation) for trial in drawn))
    return [] if message is None else [message]


def _cosine_scores(
    experiment: Experiment, folder: Path | None, encode: Encode | None, tell: Tell | None
) -> dict[str, Scored]:
    return {
        part: score_cosine(dataset, encode, folder and folder / part, tell=tell)
        for part, dataset in experiment.parts.items()
    }


def calibrated(
    classifier: SetScoreClassifier, labels: LabelSet, scored: Scored, kind: Kind, blend: Ensemble | None = None
) -> SetScoreClassifier:
    """A classifier with these labels, its calibration fitted on scores that are there; warns if they are few.

    `blend` is what mixed the scores.
    """
    params = classifier.get_params(deep=False) | {"labels": labels, "calibration": kind}
    model = SetScoreClassifier(**params if blend is None else params | {"blend": blend})
    calibration, _, _ = fitting.fit({"model": scored.log_odds}, scored.gold, kind)
    learned = getattr(getattr(classifier, "fitted_", None), "learned", {})
    model.fitted_ = fitting.Fitted(labels, calibration, blend, learned, shortlist_of(classifier.shortlist))
    return model


def remembering(classifier: SetScoreClassifier, drawn: Dataset) -> SetScoreClassifier:
    """The classifier with a shortlist that remembers a labelled slice, as its `fit` makes one; without one, itself."""
    if classifier.shortlist is None:
        return classifier
    shortlist = remember(classifier.shortlist, drawn.texts, drawn.labels, drawn.gold)
    return SetScoreClassifier(**classifier.get_params(deep=False) | {"shortlist": shortlist})


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
        "rows": [_summary(summary) for summary in made.summaries],
    } | ({"pairs": [pair.as_json() for pair in made.pairs]} if made.pairs else {})


def _summary(summary: Summary) -> dict[str, Any]:
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
    found = {"name": summary.name, "kind": summary.kind, "metrics": _spread(summary.mean, summary.sd), "seeds": seeds}
    return found | ({"groups": groups} if groups else {})


def _spread(mean: Mapping[str, float], sd: Mapping[str, float]) -> dict[str, dict[str, float | None]]:
    """JSON has no NaN: without a second seed the deviation is null."""
    return {key: {"mean": value, "sd": None if math.isnan(sd[key]) else sd[key]} for key, value in mean.items()}
