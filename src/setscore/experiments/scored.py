"""Log-odds of documents beside their gold labels, and what decisions on them are worth.

`Scored` is the value that every evaluation works on; an `Outcome` is one way to decide on it, measured.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit

import setscore.calibration as calibrations
from setscore import __version__
from setscore.backbones import backbone_spec
from setscore.calibration.base import assign_folds
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.ensemble import blend_of
from setscore.errors import SetScoreError, counted, plural
from setscore.metrics import (
    Counts,
    Interval,
    all_metrics,
    bootstrap,
    by_group,
    micro_f1,
    per_label_table,
    probability_metrics,
)
from setscore.prompts import Template, Verbalizer
from setscore.records import BoolArray, FloatArray, IntArray
from setscore.shortlist import shortlist_of

UNFITTED = "threshold 0.5"
Kind = str | calibrations.Calibration


@dataclass(frozen=True, eq=False)
class Scored:
    """The log-odds of n documents and m labels beside their gold labels.

    name, split  of the dataset; `notes` say which slice of it, and what was left out
    labels, ids  [m] names, [n] unique ids
    log_odds     [n, m]; -inf where nothing was asked
    gold         [n, m]
    truncated    [n]: whether only the beginning of a document was read
    config       how it was asked (`describe`), as JSON values
    groups       [n] values of a user's column to measure by, or none
    facts        what was seen while scoring, such as documents a second
    vectors      [n, d] sentence embeddings, where something is to be learned from them; else None
    """

    name: str
    split: str
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    log_odds: FloatArray
    gold: BoolArray
    truncated: BoolArray
    notes: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    vectors: FloatArray | None = None

    def __post_init__(self) -> None:
        shape = (len(self.ids), len(self.labels))
        if not (self.log_odds.shape == self.gold.shape == shape and self.truncated.shape == shape[:1]):
            raise SetScoreError(
                f"{counted(shape[0], 'document')} and {counted(shape[1], 'label')} have log-odds of the shape"
                f" {self.log_odds.shape}, gold of {self.gold.shape} and truncation of {self.truncated.shape}; they"
                " must agree."
            )
        if self.groups and len(self.groups) != shape[0]:
            raise SetScoreError(
                f"{counted(len(self.groups), 'group value')} came with {counted(shape[0], 'document')}."
            )
        if self.gold.dtype != np.bool_ or np.isnan(self.log_odds).any() or np.isposinf(self.log_odds).any():
            raise SetScoreError(
                "gold holds bool, and log-odds are numbers or -inf; there is something else among them."
            )

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        log_odds: FloatArray,
        config: Mapping[str, Any],
        *,
        truncated: BoolArray | None = None,
        facts: Mapping[str, Any] | None = None,
        vectors: FloatArray | None = None,
    ) -> "Scored":
        """Scores of anything that gives a number for each document and label."""
        cut = np.zeros(len(dataset), dtype=np.bool_) if truncated is None else truncated
        about = (dataset.name, dataset.split, dataset.labels.names, dataset.ids)
        return cls(*about, log_odds, dataset.gold, cut, dataset.notes, config, dataset.groups, facts or {}, vectors)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: IntArray, *notes: str) -> Self:
        """The documents at `rows`, with more notes."""
        return replace(
            self,
            ids=tuple(self.ids[row] for row in rows),
            log_odds=self.log_odds[rows],
            gold=self.gold[rows],
            truncated=self.truncated[rows],
            notes=(*self.notes, *notes),
            groups=tuple(self.groups[row] for row in rows) if self.groups else (),
            vectors=None if self.vectors is None else self.vectors[rows],
        )


def describe(classifier: SetScoreClassifier, dataset: Dataset) -> dict[str, Any]:
    """Everything that the log-odds depend on, and what stands in for a calibration before `fit`, as JSON values."""
    backbone, verbalizer = classifier.backbone, Verbalizer.of(classifier.verbalizer)
    if isinstance(backbone, str):
        spec = backbone_spec(backbone)
        name, native = backbone, spec.attention[0]
    else:
        spec = backbone.spec
        name, native = spec.name, backbone.attention
    config: dict[str, Any] = {
        "backbone": name,
        "model": spec.name,
        "identity": classifier.identity,
        "template": Template.of(classifier.template).text,
        "attention": native if classifier.attention == "auto" else classifier.attention,
        "verbalizer": f"{verbalizer.yes}/{verbalizer.no}",
        **_reading(classifier, spec.windows),
        "temperature": spec.temperature,
        "competition": spec.competition if classifier.competition is None else classifier.competition,
        "handicap": spec.handicap,
        "label_text": dataset.labels.asked_as,
        "version": __version__,
        "fingerprint": dataset.fingerprint,
    }
    if classifier.scorer != "per_label":
        config["scorer"] = classifier.scorer
    fitted = getattr(classifier, "fitted_", None)
    if fitted is not None and fitted.learned:
        config["learned"] = dict(fitted.learned)
    blend = classifier.blend if fitted is None else fitted.blend
    if blend is not None and (made := blend_of(blend)) is not None:
        config |= {"blend": made.sentence(), "scales": [list(scale) for scale in made.scales]}
    shortlist = classifier.shortlist if fitted is None else fitted.shortlist
    if shortlist is not None:
        shortlist = shortlist_of(shortlist)
        config["shortlist"] = {key: value for key, value in vars(shortlist).items() if key not in ("cache", "memory")}
        if memory := getattr(shortlist, "memory", None):
            config["remembered"] = hashlib.sha256(json.dumps(memory.plain()).encode()).hexdigest()
    return config


def _reading(classifier: SetScoreClassifier, windows: int) -> dict[str, Any]:
    """How long documents are read, in the words that say the same whatever the defaults are."""
    mode = classifier.long_documents
    if mode == "auto" and (windows == 1 or classifier.scorer != "per_label"):
        mode = "truncate"
    if mode == "truncate":
        return {"long_documents": mode}
    most = {} if mode == "chunk" else {"windows": windows}
    return {"long_documents": mode, "pool": classifier.pool, "overlap": classifier.overlap} | most


class SameSliceWarning(UserWarning):
    """A calibration is measured on the documents it was fitted on, which flatters it."""


@dataclass(frozen=True)
class Outcome:
    """One way to decide, measured.

    name       of the calibration, the yardstick, or "oracle ..."
    kind       "model", "yardstick" or "oracle"
    choice     what was chosen and why
    metrics    of `all_metrics`, and "ece_raw" of the probabilities before calibration where there are any
    intervals  of `bootstrap`; oracles have none, nor what follows
    groups     of `by_group`, where the documents have groups
    labels     of `per_label_table`
    decisions, probabilities  [n, m], for paired tests and lists of mistakes
    """

    name: str
    kind: str
    choice: str
    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    labels: Sequence[Mapping[str, Any]] = ()
    decisions: BoolArray | None = field(default=None, repr=False, compare=False)
    probabilities: FloatArray | None = field(default=None, repr=False, compare=False)

    def without_raw(self) -> dict[str, float]:
        """The metrics without "ece_raw", for scores that were no probabilities before calibration."""
        return {key: value for key, value in self.metrics.items() if key != "ece_raw"}


def measure(
    name: str, kind: str, choice: str, test: Scored, *, decisions: BoolArray, probabilities: FloatArray
) -> Outcome:
    """All metrics and intervals, of each label and of each group too."""
    intervals = bootstrap(test.gold, decisions, probabilities)
    groups = by_group(test.gold, decisions, test.groups) if test.groups else {}
    metrics = all_metrics(test.gold, decisions, probabilities)
    labels = per_label_table(test.gold, decisions, test.labels)
    return Outcome(name, kind, choice, metrics, intervals, groups, labels, decisions, probabilities)


def fit(validation: Scored, test: Scored, kind: Kind) -> calibrations.Calibration:
    """A calibration fitted on `validation`; a warning if those are the documents of `test`, in whatever order."""
    calibration = calibrations.make(kind).fit(validation.log_odds, validation.gold)
    if calibration.fitted_on(test.log_odds, test.gold):
        warnings.warn(SameSliceWarning(flattery(calibration, test)), stacklevel=3)
    return calibration


def flattery(calibration: calibrations.Calibration, test: Scored) -> str:
    """A sentence if the calibration was fitted on some of the documents it is measured on; else nothing."""
    name, seen = calibration.name, calibration.seen(test.log_odds, test.gold)
    if calibration.fitted_on(test.log_odds, test.gold):
        what = "document" if len(test) == 1 else f"{len(test)} documents"
        return f"{name} is measured on the {what} it was fitted on; that flatters it. Measure on others."
    if not seen:
        return ""
    return (
        f"{seen} of the {len(test)} documents that {name} is measured on {plural(seen, 'has', 'have')} scores and"
        " labels of documents it was fitted on; that flatters it. Measure on others."
    )


def decided(calibration: calibrations.Calibration, test: Scored, name: str | None = None) -> Outcome:
    """What a fitted calibration makes of `test`; its name with its options, unless another is given."""
    title = calibrations.spelt(calibration) if name is None else name
    undecided = calibration.undecided(test.log_odds) if calibration.margin else None
    probabilities, decisions = calibration.decide(test.log_odds)
    return measure_model(
        title, calibration.choice_, test, decisions=decisions, probabilities=probabilities, undecided=undecided
    )


def unfitted(test: Scored) -> Outcome:
    """Every label whose probability reaches 0.5, before any labelled document was seen.

    Its numbers are those of the model's spec, so the same weights decide the same by whatever name.
    """
    numbers = {key: test.config[key] for key in ("temperature", "competition", "handicap") if key in test.config}
    return decided(calibrations.UnfittedCalibration(**numbers).for_labels(len(test.labels)), test, UNFITTED)


def measure_model(
    name: str,
    choice: str,
    test: Scored,
    *,
    decisions: BoolArray,
    probabilities: FloatArray,
    undecided: BoolArray | None,
) -> Outcome:
    """With the ECE before calibration and, where there is abstention, how much is left and how good that is."""
    found = measure(name, "model", choice, test, decisions=decisions, probabilities=probabilities)
    more = {"ece_raw": probability_metrics(test.gold, expit(test.log_odds))["ece"]}
    if undecided is not None:
        wrong, sure = decisions != test.gold, ~undecided
        more |= {
            "undecided": float(undecided.mean()),
            "undecided_documents": float(undecided.any(axis=1).mean()),
            "micro_f1_decided": float(micro_f1(Counts.of(test.gold & sure, decisions & sure))),
            "hamming_loss_decided": float(wrong[sure].mean()) if sure.any() else 0.0,
        }
    return replace(found, metrics={**found.metrics, **more})


def cross_validated(scored: Scored, kind: Kind) -> Outcome:
    """Measured on documents that the calibration was not fitted on, over five folds of `scored`."""
    fold, calibration = assign_folds(len(scored)), calibrations.make(kind)
    decisions, undecided = (np.zeros(scored.gold.shape, dtype=np.bool_) for _ in range(2))
    probabilities = np.zeros(scored.gold.shape)
    for number in range(fold.max() + 1):
        inside = fold == number
        calibration.fit(scored.log_odds[~inside], scored.gold[~inside])
        probabilities[inside], decisions[inside] = calibration.decide(scored.log_odds[inside])
        undecided[inside] = calibration.undecided(scored.log_odds[inside])
    choice = f"cross-validated over {fold.max() + 1} folds"
    left = undecided if calibration.margin else None
    return measure_model(
        calibrations.spelt(calibration),
        choice,
        scored,
        decisions=decisions,
        probabilities=probabilities,
        undecided=left,
    )
