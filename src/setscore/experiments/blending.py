"""The classifier's option `blend` in experiments: weights from labelled documents, as `fit` of the classifier has them.

The model's scores are kept without the blend; the cosine is scored beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from setscore import ensemble, fitting
from setscore.datasets import Dataset
from setscore.ensemble import BLENDS, Ensemble
from setscore.experiments.evaluation import Trial, evaluate, trials
from setscore.experiments.scored import Outcome, Scored
from setscore.experiments.yardsticks import score_cosine
from setscore.fitting import MODEL
from setscore.records import Progress
from setscore.store import Store

EMBEDDED_BLEND = "own-cosine"  # the one that costs least: of the embedded model with its own sentence embedding
DEFAULT = "auto"


def score_blend(
    parts: Mapping[str, Dataset],
    name: str,
    store: Store | None = None,
    saved_as: str = "",
    *,
    progress: Progress | None = None,
) -> dict[str, Scored]:
    """The cosines that a blend of this name mixes in; with a store, kept there."""
    return {
        part: score_cosine(
            dataset,
            store=store,
            place=(saved_as, part),
            encoder=BLENDS[name],
            title=name,
            purpose=f"blend={name!r}",
            progress=progress,
        )
        for part, dataset in parts.items()
    }


def weigh(model: Scored, cosine: Scored, name: str) -> tuple[Scored, Ensemble]:
    """The mixture, with weights chosen by cross-validation on these very documents."""
    chosen = ensemble.fit({MODEL: model.log_odds, name: cosine.log_odds}, model.gold, in_doubt=MODEL)
    return mixed(chosen, model, cosine, name), chosen


def before_fit(model: Scored, cosine: Scored, name: str) -> Scored:
    """The mixture before anything is fitted."""
    plain = ensemble.blend_of(name)
    assert plain is not None  # a name was given
    return mixed(plain, model, cosine, name)


def mixed(blend: Ensemble, model: Scored, cosine: Scored, name: str) -> Scored:
    """The model's scores with the cosine's say in them; a label that was not asked stays so."""
    return replace(model, log_odds=fitting.mixed({MODEL: model.log_odds, name: cosine.log_odds}, blend))


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


def beside(drawn: Sequence[Trial], cosines: Mapping[str, Scored], name: str = EMBEDDED_BLEND) -> dict[int, Outcome]:
    """What a blend would give with the default calibration, by seed: stands beside those of the model alone."""
    _, after, chosen = blend_trials(drawn, cosines, name)
    title, found = f"{DEFAULT} + {name}", {}
    for trial, weights in zip(after, chosen, strict=True):
        one = evaluate(trial.validation, trial.test, [DEFAULT], with_oracles=False)[0]
        choice, metrics = f"{weights}; {one.choice}", one.without_raw()
        found[trial.seed] = replace(one, name=title, kind="yardstick", choice=choice, metrics=metrics)
    return found
