"""The classifier's option `blend` in experiments: weights from labelled documents, as `fit` of the classifier has them.

The model's scores are saved and re-used without the blend; the cosine is scored beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from setscore import ensemble
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.ensemble import BLENDS, Ensemble
from setscore.experiments.evaluation import Trial
from setscore.experiments.scored import Scored
from setscore.experiments.slices import trials
from setscore.experiments.yardsticks import score_cosine


def split_blend(classifier: SetScoreClassifier) -> tuple[SetScoreClassifier, str | None]:
    """The classifier without its blend, and the blend's name; one that is weighed already stays where it is."""
    if not isinstance(classifier.blend, str):
        return classifier, None
    return SetScoreClassifier(**classifier.get_params(deep=False) | {"blend": None}), classifier.blend


def score_blend(parts: Mapping[str, Dataset], name: str, folder: Path | None = None) -> dict[str, Scored]:
    """The cosines that a blend of this name mixes in; with a folder, kept there."""
    return {
        part: score_cosine(dataset, None, folder and folder / name / part, BLENDS[name], f"blend={name!r}")
        for part, dataset in parts.items()
    }


def weigh(model: Scored, cosine: Scored, name: str) -> tuple[Scored, Ensemble]:
    """The mixture, with weights chosen by cross-validation on these very documents."""
    members = {"model": model.log_odds, name: cosine.log_odds}
    chosen = ensemble.fit(members, model.gold)
    return replace(model, log_odds=chosen.mix(members)), chosen


def halves(model: Scored, cosine: Scored, name: str) -> Scored:
    """The mixture before anything is fitted."""
    plain = ensemble.blend_of(name)
    assert plain is not None  # a name was given
    return replace(model, log_odds=plain.mix({"model": model.log_odds, name: cosine.log_odds}))


def blend_trials(
    drawn: Sequence[Trial], cosines: Mapping[str, Scored], name: str
) -> tuple[list[Trial], list[Trial], list[str]]:
    """The trials blended: as before `fit`, and with the weights of each seed's validation documents; and a remark."""
    before, after, chosen = [], [], []
    for trial, other in zip(drawn, trials(cosines, [trial.seed for trial in drawn]), strict=True):
        validation, weighed = weigh(trial.validation, other.validation, name)
        test = {"model": trial.test.log_odds, name: other.test.log_odds}
        before.append(replace(trial, test=halves(trial.test, other.test, name)))
        after.append(Trial(trial.seed, validation, replace(trial.test, log_odds=weighed.mix(test))))
        chosen.append(f"seed {trial.seed} {weighed.sentence()}")
    return before, after, [f"blend: {'; '.join(chosen)}."]
