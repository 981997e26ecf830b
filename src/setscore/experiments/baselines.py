"""Baselines measured as the method is: the same documents, calibrations and seeds.

A baseline that learns does so from the training split, without the texts that are measured. Where there is none it can
learn from the validation documents of each seed. A calibration fitted on scores of documents that the baseline was
trained on would trust them too much, so validation scores are cross-fitted then: each part is scored by a model trained
on the others. The test documents are scored by one that was trained on all of them. The supervised models, whose
training takes hours, are trained once on a training split, whatever the seeds of the validation documents are.

With a shortlist only its labels are asked; what is not asked is never predicted. Labels that a model writes as text are
its decisions, and are not calibrated.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from setscore.baselines import GENERATIVE, LOOPED, SUPERVISED, TRAINED, TUNED, Baseline, load_baseline
from setscore.baselines.base import device_name
from setscore.baselines.nli import Entailment
from setscore.datasets import Dataset
from setscore.encoders import load_encoder
from setscore.errors import SetScoreError, counted
from setscore.experiments import saved
from setscore.experiments.deciding import over_own
from setscore.experiments.evaluation import SEED, Experiment, Summary, named, over_trials, split, trials
from setscore.experiments.saved import open_folder, score_rows, weights_of
from setscore.experiments.scored import Kind, Scored
from setscore.experiments.shortlists import EncodedOnce
from setscore.records import BoolArray, FloatArray, Progress
from setscore.shortlist import Shortlist
from setscore.store import Store, digest

ENCODING = ("cosine", "linear")  # they only read vectors, so texts are encoded once for all folds and seeds
FOLDS, FOLDS_SLOW = 5, 2  # of cross-fitting; training an encoder five times more would take hours
BLOCK = 64  # documents that are scored between two savings
PLACES = ("encode", "device", "folder", "progress")  # options that change no score: what a GPU made is kept
READ = -1.0  # in the place of whether an answer was unreadable, for baselines that write no text

Make = Callable[[], Baseline]


@dataclass(frozen=True)
class BaselineReport:
    """`scored` are its parts, for ensembles; `documents_per_second` counts scoring alone, not training.

    `device` is where they were scored.
    """

    name: str
    dataset: str
    summaries: list[Summary]
    scored: Mapping[str, Scored]
    documents_per_second: float | None
    device: str | None
    remarks: tuple[str, ...]


def measure_baseline(
    name: str,
    experiment: Experiment,
    seeds: Sequence[int],
    kinds: Sequence[Kind] = ("auto",),
    *,
    options: Mapping[str, Any] | None = None,
    training: Dataset | None = None,
    shortlist: Shortlist | None = None,
    save: Path | None = None,
    progress: Progress | None = None,
) -> BaselineReport:
    """Trained, calibrated on each seed's validation documents and measured on the others.

    `options` are those of the baseline, `shortlist` says which labels are asked of a document. It learns from
    `training`, or else from the validation documents. Scores are kept in the store of `save`, document by document:
    what a run that was stopped has found is not asked again.
    """
    parts, run = score_baseline(
        name,
        experiment,
        seeds,
        options=options,
        training=training,
        shortlist=shortlist,
        save=save,
        progress=progress,
    )
    drawn = trials(parts, seeds)
    made = over_own(drawn) if name in GENERATIVE else over_trials(drawn, kinds)
    # The paper's trained models learn from the training split; those that learn all labels see all of them.
    config: dict[str, Any] = {} if shortlist is None else {"shortlist": shortlist.settings()}
    config |= {"learned": "validation"} if name in TRAINED and training is None else {}
    summaries = [one.under(experiment.name, config, prompted=name not in TRAINED) for one in made]
    return BaselineReport(name, experiment.name, summaries, parts, *run.rate(parts), tuple(run.remarks(training)))


def score_baseline(
    name: str,
    experiment: Experiment,
    seeds: Sequence[int],
    *,
    options: Mapping[str, Any] | None = None,
    training: Dataset | None = None,
    shortlist: Shortlist | None = None,
    save: Path | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, Scored], "Run"]:
    """The scored parts of an experiment, and the run that knows what they cost and what is to be said about them."""
    run = Run(name, dict(options or {}), experiment, open_folder(save), save, progress, shortlist)
    if name in TRAINED or name in TUNED:
        parts = {part: scored for seed in seeds for part, scored in _learned(run, experiment, seed, training).items()}
    else:
        parts = {part: run.scored(part, dataset, run.make) for part, dataset in experiment.parts.items()}
    return parts, run


@dataclass
class Run:
    """One baseline on one experiment: makes it, scores with it, keeps, and counts."""

    name: str
    options: dict[str, Any]
    experiment: Experiment
    store: Store | None
    folder: Path | None  # keeps the state of a training
    progress: Progress | None
    shortlist: Shortlist | None = None
    documents: int = 0
    seconds: float = 0.0
    failures: dict[str, tuple[int, int]] = field(default_factory=dict)  # unreadable answers of how many, by part
    fitted: dict[str, Make] = field(default_factory=dict)  # what was trained, by where its state lies

    def __post_init__(self) -> None:
        load_baseline(self.name, **self.options)  # a mistake is an error before anything is read
        if self.name in ENCODING:
            place = {"name": self.options["checkpoint"]} if "checkpoint" in self.options else {}
            where = {"device": self.options["device"]} if "device" in self.options else {}
            self.options["encode"] = EncodedOnce(load_encoder(**place, **where, purpose=f"the baseline {self.name}"))

    def make(self, place: str = "", seed: int | None = None) -> Baseline:
        """A fresh one; for a training loop its folder, its seed, and who hears of its steps."""
        more: dict[str, Any] = {}
        if self.name in LOOPED:
            more["folder"] = self._training(place)
            more["progress"] = named(self.progress, f"{self.experiment.name} {self.name} {place}")
            if self.name == "setfit":
                more["seed"] = seed
        return load_baseline(self.name, **self.options | more)

    def scored(self, part: str, dataset: Dataset, make: Make, learned: Mapping[str, Any] | None = None) -> Scored:
        """The scores of a part. `make` makes the baseline where some are not stored, `learned` says from what."""
        return self.known(part, dataset, learned) or self.keep(
            part, dataset, self.rows(dataset, make, learned, part), learned
        )

    def rows(self, dataset: Dataset, make: Make, learned: Mapping[str, Any] | None, part: str) -> FloatArray:
        """Log-odds [n, m], stored document by document; -inf where the shortlist leaves a label out."""
        ready, kept = cache(make), self.candidates(dataset)
        places = {text: row for row, text in enumerate(dataset.texts)}

        def score(texts: Sequence[str]) -> FloatArray:
            baseline = ready()
            asked = None if kept is None else kept[[places[text] for text in texts]]
            begun = time.perf_counter()
            found = baseline.score(texts, dataset.labels, candidates=asked)
            self.seconds += time.perf_counter() - begun
            self.documents += len(texts)
            numbers = np.where(found.scored, found.log_odds, 0.0)  # a store keeps numbers, and no -inf
            return np.column_stack([numbers, found.details.get("unread", np.full(len(texts), READ))])

        # Two processes that train side by side would do the work twice, so one of them claims all documents.
        block = len(dataset) if self.name in TRAINED else BLOCK
        found = score_rows(self.store, self._identity(learned), dataset, score, block)
        asked = found[:, -1] != READ
        if asked.any():
            unread, before = self.failures.get(part, (0, 0))
            self.failures[part] = (unread + int(found[asked, -1].sum()), before + int(asked.sum()))
        return found[:, :-1] if kept is None else np.where(kept, found[:, :-1], -np.inf)

    def candidates(self, dataset: Dataset) -> BoolArray | None:
        """The labels of each document that are asked [n, m]; None for all."""
        return None if self.shortlist is None else self.shortlist.select(dataset.texts, dataset.labels)

    def known(self, part: str, dataset: Dataset, learned: Mapping[str, Any] | None) -> Scored | None:
        """The table that another run has finished."""
        if self.store is None:
            return None
        found = saved.known(self.store, dataset, self._config(dataset, learned))
        if found is not None:
            saved.keep(self.store, self.experiment.saved_as, part, found)
        return found

    def keep(self, part: str, dataset: Dataset, log_odds: FloatArray, learned: Mapping[str, Any] | None) -> Scored:
        rate, device = self.rate({})
        facts = {"documents_per_second": rate, "device": device}
        scored = Scored.of(dataset, log_odds, self._config(dataset, learned), facts=facts)
        if self.store is not None:
            saved.keep(self.store, self.experiment.saved_as, part, scored)
        return scored

    def rate(self, parts: Mapping[str, Scored]) -> tuple[float | None, str | None]:
        """Documents a second and on what; where all was stored, what was measured when it was scored.

        What only reads vectors costs encoding.
        """
        encode = self.options.get("encode")
        if isinstance(encode, EncodedOnce) and encode.texts:
            return encode.texts / encode.seconds, device_name(self.options.get("device", "auto"))
        if self.documents:
            return self.documents / self.seconds, device_name(self.options.get("device", "auto"))
        facts: Mapping[str, Any] = next((one.facts for one in reversed(list(parts.values())) if one.facts), {})
        return facts.get("documents_per_second"), facts.get("device")

    def remarks(self, training: Dataset | None) -> list[str]:
        """What it learned from, and the answers that held something that is no label, as sentences."""
        unread, asked = (sum(counts) for counts in zip((0, 0), *self.failures.values(), strict=True))
        told = [f"{unread} of {asked} answers of {self.name} held something that is no label."] if asked else []
        return [*_training_remarks(self, training), *told]

    def identity(self) -> str:
        """What tells its weights and options from others."""
        return digest(self._identity(None)).hex()

    def done(self, place: str) -> None:
        """The state of a training is of no use once its scores are stored."""
        if (folder := self._training(place)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # others may be there
                folder.parent.rmdir()

    def _training(self, place: str) -> Path | None:
        if self.folder is None:
            return None
        return self.folder / "training" / f"{self.experiment.saved_as}-{self.name}-{place}"

    def _identity(self, learned: Mapping[str, Any] | None) -> dict[str, Any]:
        """What the scores depend on beside documents and labels."""
        plain = {key: repr(value) for key, value in self.options.items() if key not in (*PLACES, "checkpoint")}
        weights = weights_of(self.options["checkpoint"]) if "checkpoint" in self.options else None
        cut = {} if self.shortlist is None else {"shortlist": self.shortlist.settings()}
        return {"title": f"baselines/{self.name}", "weights": weights, **plain, "training": dict(learned or {})} | cut

    def _config(self, dataset: Dataset, learned: Mapping[str, Any] | None) -> dict[str, Any]:
        return self._identity(learned) | {"label_text": dataset.labels.asked_as, "fingerprint": dataset.fingerprint}


def _learned(run: Run, experiment: Experiment, seed: int, training: Dataset | None) -> dict[str, Scored]:
    """The scored parts of one seed."""
    validation, test = split(experiment, seed)
    slices = {f"validation-{seed}": validation, f"test-{seed}": test}
    if run.name in TUNED:  # a hypothesis chosen on the validation documents; nothing is trained
        return _trained(run, slices, seed, validation)
    if training is None:
        return _cross_fitted(run, slices, seed)
    if run.name in SUPERVISED:
        whole = {
            part: data for part, data in experiment.parts.items() if part in ("pool", "test", f"validation-{seed}")
        }
        return _trained(run, whole, None, training)
    return _trained(
        run, {f"pool-{seed}": experiment.parts["pool"]} if "pool" in experiment.parts else slices, seed, training
    )


def _trained(run: Run, parts: Mapping[str, Dataset], seed: int | None, training: Dataset) -> dict[str, Scored]:
    """Every part scored by one model that learned from `training`; without a seed, once for all seeds."""
    place = "once" if seed is None else str(seed)
    make = run.fitted.setdefault(place, cache(partial(_fit, run, place, seed, training)))
    learned = {"documents": training.fingerprint, "seed": seed}
    found = {part: run.scored(part, dataset, make, learned) for part, dataset in parts.items()}
    run.done(place)
    return found


def _cross_fitted(run: Run, slices: Mapping[str, Dataset], seed: int) -> dict[str, Scored]:
    """Trained on the other parts of the validation documents for each, and on all of them for the test documents."""
    (first, validation), (second, test) = slices.items()
    if len(validation) < 2:
        raise SetScoreError(
            f"{run.experiment.name} has {counted(len(validation), 'validation document')}; training needs at least 2."
        )
    learned = {"cross-fitted": validation.fingerprint, "seed": seed}
    crossed = run.known(first, validation, learned)
    if crossed is None:
        folds = np.random.default_rng(SEED).permutation(len(validation)) % (FOLDS_SLOW if run.name in LOOPED else FOLDS)
        log_odds = np.zeros(validation.gold.shape)
        for fold in np.unique(folds):
            rest, held = (validation.take(np.flatnonzero(which)) for which in (folds != fold, folds == fold))
            make = partial(_fit, run, f"{seed}-{fold}", seed, rest)
            log_odds[folds == fold] = run.rows(held, make, {"documents": rest.fingerprint, "seed": seed}, first)
        crossed = run.keep(first, validation, log_odds, learned)
        for fold in np.unique(folds):
            run.done(f"{seed}-{fold}")
    return {first: crossed, **_trained(run, {second: test}, seed, validation)}


def _fit(run: Run, place: str, seed: int | None, training: Dataset) -> Baseline:
    made = run.make(place, seed)
    if isinstance(made, Entailment):
        return made.fit(training.texts, training.gold, training.labels, candidates=run.candidates(training))
    return made.fit(training.texts, training.gold, training.labels)


def _training_remarks(run: Run, training: Dataset | None) -> list[str]:
    if run.name in TUNED:
        return [f"{run.name} chose its hypothesis on the validation documents of each seed."]
    if run.name not in TRAINED:
        return []
    if training is None:
        return [f"{run.name} learned from the validation documents of each seed, cross-fitted for the calibration."]
    return [f"{run.name} learned from {counted(len(training), 'document')} of the training split.", *training.notes]
