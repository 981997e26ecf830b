"""Baselines measured as the method is: the same documents, calibrations and seeds.

A baseline that learns does so from the training split, without the texts that are measured. Where there is none it can
learn from the validation documents of each seed. A calibration fitted on scores of documents that the baseline was
trained on would trust them too much, so validation scores are cross-fitted then: each part is scored by a model trained
on the others. The test documents are scored by one that was trained on all of them.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from setscore.baselines import LOOPED, TRAINED, TUNED, Baseline, load_baseline
from setscore.baselines.base import device_name
from setscore.datasets import Dataset
from setscore.encoders import load_encoder
from setscore.errors import SetScoreError, counted
from setscore.experiments.evaluation import VALIDATION_SIZE, Kind, Summary, over_trials
from setscore.experiments.scored import FILE, Scored
from setscore.experiments.shortlists import Remembering
from setscore.experiments.slices import SEED, Experiment, trials
from setscore.records import FloatArray
from setscore.storage import read_json, write_json

ENCODING = ("cosine", "linear")  # they only read vectors, so texts are encoded once for all folds and seeds
FOLDS, FOLDS_SLOW = 5, 2  # of cross-fitting; training an encoder five times more would take hours
SPEED = "setscore.speed/1"

Watch = Callable[[str, int, int], None]  # what is going on, steps done, and of how many


@dataclass(frozen=True)
class Measured:
    """`scored` are its saved parts, for ensembles; `documents_per_second` counts scoring alone, not training.

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
    save: Path | None = None,
    watch: Watch | None = None,
) -> Measured:
    """Trained, calibrated on each seed's validation documents and measured on the others.

    `options` are those of the baseline. It learns from `training`, or else from the validation documents. Scores are
    saved part by part; what a run that was stopped has finished is not done again.
    """
    folder = None if save is None else save / experiment.folder / "baselines" / name
    run = Run(name, dict(options or {}), experiment.name, folder, watch)
    if name in TRAINED or name in TUNED:
        parts = {part: scored for seed in seeds for part, scored in _learned(run, experiment, seed, training).items()}
    else:
        parts = {part: run.scored(part, dataset, run.make) for part, dataset in experiment.parts.items()}
    remarks = [*_training_remarks(run, training), *run.unread()]
    summaries = over_trials(trials(parts, seeds), kinds)
    return Measured(name, experiment.name, summaries, parts, *run.rate(), tuple(remarks))


@dataclass
class Run:
    """One baseline on one experiment: makes it, scores with it, saves, and counts."""

    name: str
    options: dict[str, Any]
    dataset: str
    folder: Path | None
    watch: Watch | None
    documents: int = 0
    seconds: float = 0.0
    failures: dict[str, tuple[int, int]] = field(default_factory=dict)  # unreadable answers of how many, by part

    def __post_init__(self) -> None:
        load_baseline(self.name, **self.options)  # a mistake is an error before anything is read
        if self.name in ENCODING:
            place = {"name": self.options["checkpoint"]} if "checkpoint" in self.options else {}
            where = {"device": self.options["device"]} if "device" in self.options else {}
            self.options["encode"] = Remembering(load_encoder(**place, **where, purpose=f"the baseline {self.name}"))

    def make(self, place: str = "", seed: int | None = None) -> Baseline:
        """A fresh one; for a training loop its folder, its seed, and who hears of its steps."""
        more: dict[str, Any] = {}
        if self.name in LOOPED:
            more["folder"] = None if self.folder is None else self.folder / f"training-{place}"
            if self.watch is not None:
                more["tell"] = partial(_told, self.watch, f"{self.dataset} {self.name}, training {place}")
            if self.name == "setfit":
                more["seed"] = seed
        return load_baseline(self.name, **self.options | more)

    def score(self, baseline: Baseline, dataset: Dataset, part: str) -> FloatArray:
        """Log-odds, timed; unreadable answers of a model that writes text are counted."""
        begun = time.perf_counter()
        found = baseline.score(dataset.texts, dataset.labels)
        self.seconds += time.perf_counter() - begun
        self.documents += len(dataset)
        if "unread" in found.details:
            unread, asked = self.failures.get(part, (0, 0))
            self.failures[part] = (unread + int(found.details["unread"].sum()), asked + len(dataset))
        return found.log_odds

    def scored(self, part: str, dataset: Dataset, make: Callable[[], Baseline], about: str = "") -> Scored:
        """From the folder if the same was scored before."""
        return self.saved(part, dataset, about) or self.keep(part, dataset, self.score(make(), dataset, part), about)

    def saved(self, part: str, dataset: Dataset, about: str = "") -> Scored | None:
        if self.folder is None or not (self.folder / part / FILE).exists():
            return None
        found = Scored.load(self.folder / part)
        return found if found.config == self._config(dataset, about) else None

    def keep(self, part: str, dataset: Dataset, log_odds: FloatArray, about: str = "") -> Scored:
        scored = as_scored(dataset, log_odds, self._config(dataset, about))
        if self.folder is not None:
            scored.save(self.folder / part)
            rate, device = self.rate()
            write_json(self.folder / "speed.json", SPEED, {"documents_per_second": rate, "device": device})
        return scored

    def rate(self) -> tuple[float | None, str | None]:
        """Documents a second and on what; where all was saved, what was measured then.

        What only reads vectors costs encoding.
        """
        encode = self.options.get("encode")
        if isinstance(encode, Remembering) and encode.texts:
            return encode.texts / encode.seconds, device_name(self.options.get("device", "auto"))
        if self.documents:
            return self.documents / self.seconds, device_name(self.options.get("device", "auto"))
        found = read_json(self.folder / "speed.json", SPEED) if self.folder is not None else {}
        return found.get("documents_per_second"), found.get("device")

    def unread(self) -> list[str]:
        """A sentence on the answers that held something that is no label."""
        unread, asked = (
            (sum(counts) for counts in zip(*self.failures.values(), strict=True)) if self.failures else (0, 0)
        )
        return [f"{unread} of {asked} answers of {self.name} held something that is no label."] if asked else []

    def done(self, place: str) -> None:
        """The state of a training is of no use once its scores are saved."""
        if self.folder is not None:
            shutil.rmtree(self.folder / f"training-{place}", ignore_errors=True)

    def _config(self, dataset: Dataset, about: str) -> dict[str, Any]:
        # What was scored on a GPU is not scored again without one.
        plain = {key: value for key, value in self.options.items() if key not in ("encode", "device")}
        return {"backbone": self.name, "fingerprint": dataset.fingerprint, "learned": about, **plain}


def _learned(run: Run, experiment: Experiment, seed: int, training: Dataset | None) -> dict[str, Scored]:
    """The scored parts of one seed."""
    if run.name in TUNED:
        return _tuned(run, experiment, seed)
    if training is None:
        return _cross_fitted(run, experiment, seed)
    parts = {f"pool-{seed}": experiment.parts["pool"]} if "pool" in experiment.parts else _slices(experiment, seed)
    about = f"{training.fingerprint}, seed {seed}"
    found = {part: run.saved(part, dataset, about) for part, dataset in parts.items()}
    if all(found.values()):
        return {part: scored for part, scored in found.items() if scored}
    model = run.make(str(seed), seed).fit(training.texts, training.gold, training.labels)
    made = {part: run.keep(part, dataset, run.score(model, dataset, part), about) for part, dataset in parts.items()}
    run.done(str(seed))
    return made


def _cross_fitted(run: Run, experiment: Experiment, seed: int) -> dict[str, Scored]:
    """Trained on the other parts of the validation documents for each, and on all of them for the test documents."""
    (first, validation), (second, test) = _slices(experiment, seed).items()
    if len(validation) < 2:
        raise SetScoreError(
            f"{experiment.name} has {counted(len(validation), 'validation document')}; training needs at least 2."
        )
    about = f"validation documents, seed {seed}"
    crossed = run.saved(first, validation, about)
    if crossed is None:
        folds = np.random.default_rng(SEED).permutation(len(validation)) % (FOLDS_SLOW if run.name in LOOPED else FOLDS)
        log_odds = np.zeros(validation.gold.shape)
        for fold in np.unique(folds):
            rest, held = (validation.take(np.flatnonzero(which)) for which in (folds != fold, folds == fold))
            model = run.make(f"{seed}-{fold}", seed).fit(rest.texts, rest.gold, rest.labels)
            log_odds[folds == fold] = run.score(model, held, first)
        crossed = run.keep(first, validation, log_odds, about)
        for fold in np.unique(folds):
            run.done(f"{seed}-{fold}")
    whole = run.scored(
        second, test, lambda: run.make(str(seed), seed).fit(validation.texts, validation.gold, validation.labels), about
    )
    run.done(str(seed))
    return {first: crossed, second: whole}


def _tuned(run: Run, experiment: Experiment, seed: int) -> dict[str, Scored]:
    """A hypothesis chosen on the validation documents; nothing is trained."""
    (_, validation), *_ = parts = list(_slices(experiment, seed).items())
    about = f"validation documents, seed {seed}"
    return {
        part: run.scored(
            part, dataset, lambda: run.make().fit(validation.texts, validation.gold, validation.labels), about
        )
        for part, dataset in parts
    }


def _slices(experiment: Experiment, seed: int) -> dict[str, Dataset]:
    """Validation and test documents of a seed, by the names they are saved under."""
    if "pool" in experiment.parts:
        pool = experiment.parts["pool"]
        validation, test = pool.draw(min(VALIDATION_SIZE, len(pool) // 2), seed)
    else:
        validation, test = experiment.parts[f"validation-{seed}"], experiment.parts["test"]
    return {f"validation-{seed}": validation, f"test-{seed}": test}


def _training_remarks(run: Run, training: Dataset | None) -> list[str]:
    if run.name in TUNED:
        return [f"{run.name} chose its hypothesis on the validation documents of each seed."]
    if run.name not in TRAINED:
        return []
    if training is None:
        return [f"{run.name} learnt from the validation documents of each seed, cross-fitted for the calibration."]
    return [f"{run.name} learnt from {counted(len(training), 'document')} of the training split.", *training.notes]


def _told(watch: Watch, what: str, done: int, total: int, loss: float) -> None:
    watch(f"{what}, loss {loss:.3f}", done, total)


def as_scored(dataset: Dataset, log_odds: FloatArray, config: Mapping[str, object]) -> Scored:
    """Scores of anything that gives a number for each document and label."""
    return Scored(
        name=dataset.name,
        split=dataset.split,
        labels=dataset.labels.names,
        ids=dataset.ids,
        log_odds=log_odds,
        gold=dataset.gold,
        truncated=np.zeros(len(dataset), dtype=np.bool_),
        notes=dataset.notes,
        config=config,
        groups=dataset.groups,
    )
