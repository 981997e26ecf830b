"""The classifier's option `blend` in experiments: weights from labelled documents, as `fit` of the classifier has them.

The model's scores are saved and re-used without the blend; the cosine is scored beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from setscore import ensemble
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.ensemble import BLENDS, Ensemble
from setscore.experiments.evaluation import Row, Trial, evaluate
from setscore.experiments.scored import Scored, Tell
from setscore.experiments.slices import trials
from setscore.experiments.yardsticks import score_cosine

OWN = "own-cosine"  # the blend that costs least: of the embedded model with its own sentence embedding
DEFAULT = "auto"


def split_blend(classifier: SetScoreClassifier) -> tuple[SetScoreClassifier, str | None]:
    """The classifier without its blend, and the blend's name; one that is weighed already stays where it is."""
    if not isinstance(classifier.blend, str):
        return classifier, None
    return SetScoreClassifier(**classifier.get_params(deep=False) | {"blend": None}), classifier.blend


def score_blend(
    parts: Mapping[str, Dataset], name: str, folder: Path | None = None, tell: Tell | None = None
) -> dict[str, Scored]:
    """The cosines that a blend of this name mixes in; with a folder, kept there."""
    options = {"encoder": BLENDS[name], "purpose": f"blend={name!r}"}
    return {
        part: score_cosine(dataset, None, folder and folder / name / part, **options, tell=tell)
        for part, dataset in parts.items()
    }


def weigh(model: Scored, cosine: Scored, name: str) -> tuple[Scored, Ensemble]:
    """The mixture, with weights chosen by cross-validation on these very documents."""
    chosen = ensemble.fit({"model": model.log_odds, name: cosine.log_odds}, model.gold, in_doubt="model")
    return mixed(chosen, model, cosine, name), chosen


def before_fit(model: Scored, cosine: Scored, name: str) -> Scored:
    """The mixture before anything is fitted."""
    plain = ensemble.blend_of(name)
    assert plain is not None  # a name was given
    return mixed(plain, model, cosine, name)


def mixed(blend: Ensemble, model: Scored, cosine: Scored, name: str) -> Scored:
    """The model's scores with the cosine's say in them; a label that was not asked stays so."""
    log_odds = blend.mix({"model": model.log_odds, name: cosine.log_odds})
    return replace(model, log_odds=np.where(np.isneginf(model.log_odds), -np.inf, log_odds))


def blend_trials(
    drawn: Sequence[Trial], cosines: Mapping[str, Scored], name: str
) -> tuple[list[Trial], list[Trial], list[str]]:
    """The trials blended: as before `fit`, and with the weights of each seed's validation documents; these in words."""
    before, after, chosen = [], [], []
    for trial, other in zip(drawn, trials(cosines, [trial.seed for trial in drawn]), strict=True):
        validation, weighed = weigh(trial.validation, other.validation, name)
        before.append(replace(trial, test=before_fit(trial.test, other.test, name)))
        after.append(Trial(trial.seed, validation, mixed(weighed, trial.test, other.test, name)))
        chosen.append(weighed.sentence())
    return before, after, chosen


def beside(drawn: Sequence[Trial], cosines: Mapping[str, Scored], name: str = OWN) -> dict[int, Row]:
    """What a blend would give with the default calibration, by seed: a row beside those of the model alone."""
    _, after, chosen = blend_trials(drawn, cosines, name)
    title, found = f"{DEFAULT} + {name}", {}
    for trial, weights in zip(after, chosen, strict=True):
        row = evaluate(trial.validation, trial.test, [DEFAULT])[0]
        choice, metrics = f"{weights}; {row.choice}", row.without_raw()
        found[trial.seed] = replace(row, name=title, kind="yardstick", choice=choice, metrics=metrics)
    return found
