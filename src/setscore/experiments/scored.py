"""Log-odds of a whole dataset beside its gold labels: the value that every evaluation works on."""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from setscore import __version__
from setscore.backbones import backbone_spec
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.ensemble import blend_of
from setscore.errors import LabelError, SetScoreError, TruncationWarning, counted
from setscore.prompts import Template, Verbalizer
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet, Progress, steps
from setscore.shortlist import shortlist_of

BLOCK_QUESTIONS = 8192  # asked between two steps of the progress


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
    ) -> "Scored":
        """Scores of anything that gives a number for each document and label."""
        cut = np.zeros(len(dataset), dtype=np.bool_) if truncated is None else truncated
        about = (dataset.name, dataset.split, dataset.labels.names, dataset.ids)
        return cls(*about, log_odds, dataset.gold, cut, dataset.notes, config, dataset.groups, facts or {})

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
        )


def score_dataset(
    dataset: Dataset, classifier: SetScoreClassifier | None = None, *, progress: Progress | None = None
) -> Scored:
    """Asks `classifier` every label of every document; what its store holds is not asked again.

    Labels are the dataset's; a classifier with others is an error.
    """
    model = with_labels(classifier or SetScoreClassifier(), dataset.labels)
    scored = ask_dataset(dataset, model, progress)
    if cut := int(scored.truncated.sum()):
        warnings.warn(TruncationWarning.of(cut, len(dataset)), stacklevel=2)
    return scored


def ask_dataset(dataset: Dataset, model: SetScoreClassifier, progress: Progress | None) -> Scored:
    """The same for a classifier with the dataset's labels, and without a warning: what was cut is in the value."""
    return predict_dataset(dataset, model, progress).scored


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a classifier makes of a dataset: scores, and [n, m] probabilities, decisions and what is left undecided."""

    scored: Scored
    probabilities: FloatArray
    decisions: BoolArray
    undecided: BoolArray | None


def predict_dataset(dataset: Dataset, model: SetScoreClassifier, progress: Progress | None) -> Predicted:
    """Every document of a dataset classified, block by block."""
    if not len(dataset):
        raise SetScoreError(f"{dataset.name} {dataset.split} has no documents to score.")
    log_odds, probabilities = np.full(dataset.gold.shape, -np.inf), np.zeros(dataset.gold.shape)
    decisions, undecided = (np.zeros(dataset.gold.shape, dtype=np.bool_) for _ in range(2))
    truncated, abstains = np.zeros(len(dataset), dtype=np.bool_), False
    step = steps(progress, "scoring", len(dataset))
    step(0)
    # Long documents first and blocks of like length: little padding, and the time left is never underestimated.
    order = sorted(range(len(dataset)), key=lambda row: len(dataset.texts[row]), reverse=True)
    size = max(1, BLOCK_QUESTIONS // len(dataset.labels))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        found = model.classify([dataset.texts[row] for row in rows]).checked()
        log_odds[rows] = found.scores.log_odds
        truncated[rows] = found.scores.truncated
        probabilities[rows] = found.probabilities
        decisions[rows] = found.decisions
        if found.undecided is not None:
            undecided[rows], abstains = found.undecided, True
        step(len(rows))
    scored = Scored.of(dataset, log_odds, describe(model, dataset), truncated=truncated)
    return Predicted(scored, probabilities, decisions, undecided if abstains else None)


def with_labels(classifier: SetScoreClassifier, labels: LabelSet) -> SetScoreClassifier:
    """A fitted classifier itself; else one like it with these labels. Other labels than these are an error."""
    known = classifier.labels_ if hasattr(classifier, "fitted_") else classifier.labels
    if known is None:
        return changed(classifier, labels=labels)
    if LabelSet.of(known) != labels:
        raise LabelError(
            "the classifier has other labels than the dataset, or in another order. Make it without labels or with"
            " dataset.labels, or give the dataset the classifier's: dataset.with_labels(classifier.labels)."
        )
    return classifier


def changed(classifier: SetScoreClassifier, **params: Any) -> SetScoreClassifier:
    """An unfitted classifier like this one, but for these parameters; a backbone that is an object is shared."""
    return SetScoreClassifier(**classifier.get_params(deep=False) | params)


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
    most = {"windows": windows} if mode == "auto" else {}
    return {"long_documents": mode, "pool": classifier.pool, "overlap": classifier.overlap} | most


def named(progress: Progress | None, where: str) -> Progress | None:
    """The same progress, told of what goes on with `where` before it."""
    if progress is None:
        return None
    return lambda what, done, total: progress(f"{where}: {what}", done, total)
