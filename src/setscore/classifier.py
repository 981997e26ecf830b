"""Read this first: the whole method on one page.

To decide which of m labels apply to a document, SetScore asks a masked-diffusion language model m questions,

    Document:
    <document>

    Question: Does this document express <label>?
    Answer:[MASK]

and reads one number per label at the masked position: u = log p(yes) - log p(no), the log-odds (Eq. 2 of the paper).
A calibration turns log-odds into probabilities, and decisions where probability >= tau. The model's weights are never
touched: `fit` only fits the calibration on a few labelled documents, and everything works without it too.

    Document -> Template -> Query -> Backbone -> Scores -> Calibration -> Prediction
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import setscore.calibration as calibrations
from setscore import scorers
from setscore.backbones import Backbone, load_backbone
from setscore.errors import SetScoreError
from setscore.prompts import Template, Verbalizer
from setscore.records import FloatArray, IntArray, LabelSet, Scores, as_documents, names_in
from setscore.storage import reading_json, write_json

Candidates = Sequence[Collection[str]] | None  # a label set per document; None asks every label of every document
FORMAT = "setscore.classifier/1"


class SetScoreClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A training-free multi-label text classifier with scikit-learn's conventions.

    labels          names, {name: description}, Label objects or a LabelSet; None takes the names seen in `fit`
    scorer          the method: "per_label", or another of `setscore.scorers.SCORERS`, as in "permutation?orders=8"
    backbone        a name (see `setscore models`) or an object with the Backbone interface
    template        the name of a question, a question with {label}, or a whole prompt with {document} and {label}
    verbalizer      the answers to compare: "yes/no", "true/false", "relevant/irrelevant", "present/absent"
    attention       "auto" (native to the backbone), "shared" (document read once) or "exact" (once per label)
    long_documents  "truncate" (read the beginning; how many is reported) or "chunk" (overlapping windows)
    pool, overlap   how windows become one score ("max", "mean", "logmeanexp"), and the tokens they share
    calibration     what `fit` fits: "auto", a name of `setscore.calibration.CALIBRATIONS`, or an object from there
    threshold       the probability from which a label is predicted before `fit` has chosen one
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        scorer: str = "per_label",
        backbone: str | Backbone = "setscore-mini",
        template: str | Template = "express",
        verbalizer: str | Verbalizer = "yes/no",
        attention: str = "auto",
        long_documents: str = "truncate",
        pool: str = "max",
        overlap: int = 64,
        calibration: str | calibrations.Calibration = "auto",
        threshold: float = 0.5,
    ) -> None:
        self.labels, self.scorer, self.calibration, self.threshold = labels, scorer, calibration, threshold
        self.backbone, self.attention, self.template, self.verbalizer = backbone, attention, template, verbalizer
        self.long_documents, self.pool, self.overlap = long_documents, pool, overlap

    def fit(self, X: Iterable[Any], y: Any = None) -> Self:
        """Fits `calibration_` on documents `X` with gold `y`: an indicator matrix or lists of names."""
        documents = as_documents(X)
        self.labels_, self.learned_ = LabelSet.of(names_in(y) if self.labels is None else self.labels), {}
        gold = None if y is None else self.labels_.gold(y, len(documents))  # the calibration "bias" needs none
        self.learned_ = calibrations.learn(self.calibration, *self._method(), documents, self.labels_, gold)
        self.calibration_ = calibrations.fit(self.calibration, self.score_documents(documents).log_odds, gold)
        return self

    def score_documents(self, X: Iterable[Any], *, candidates: Candidates = None) -> Scores:
        """The method itself: log-odds of every label, or of each document's own `candidates`."""
        documents, labels = as_documents(X), self._labels()
        (scorer, backbone), asked = self._method(), labels.asked(documents, candidates)
        scores = scorer.score(backbone, [document.text for document in documents], labels, candidates=asked)
        scores.warn()
        return scores

    def decision_function(self, X: Iterable[Any], *, candidates: Candidates = None) -> FloatArray:
        """Log-odds [n_documents, n_labels]; -inf for labels that were not asked."""
        return self.score_documents(X, candidates=candidates).log_odds

    def predict_proba(self, X: Iterable[Any], *, candidates: Candidates = None) -> FloatArray:
        """Probabilities [n_documents, n_labels], one independent yes/no question each; they do not add up to 1."""
        return self.current_calibration().transform(self.decision_function(X, candidates=candidates))

    def predict(self, X: Iterable[Any], *, candidates: Candidates = None) -> IntArray:
        """Decisions [n_documents, n_labels], 0 or 1."""
        return self.current_calibration().predict(self.decision_function(X, candidates=candidates)).astype(np.int64)

    def predict_labels(self, X: Iterable[Any], *, candidates: Candidates = None) -> list[set[str]]:
        """The set of label names of each document."""
        return self._labels().sets(self.predict(X, candidates=candidates))

    def current_calibration(self) -> calibrations.Calibration:
        """The fitted calibration, or the neutral one (T = 1, `threshold`) before `fit`."""
        fitted: calibrations.Calibration | None = getattr(self, "calibration_", None)
        return fitted or calibrations.TemperatureCalibration.unfitted(len(self._labels()), self.threshold)

    def save(self, path: str | Path) -> None:
        """Writes parameters, labels and calibration as JSON; no weights, no pickle."""
        if not isinstance(self.backbone, str):
            raise SetScoreError("only a classifier whose backbone is given by name can be saved.")
        params = self.get_params(deep=False) | {"labels": {e.name: e.description for e in self._labels().labels}}
        params |= {"template": Template.of(self.template).text, "verbalizer": vars(Verbalizer.of(self.verbalizer))}
        params |= {"calibration": calibrations.describe(self.calibration)}
        fitted = self.calibration_.state() if hasattr(self, "calibration_") else None
        write_json(path, FORMAT, {"params": params, "calibration": fitted, "learned": getattr(self, "learned_", {})})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The classifier that `save` wrote."""
        with reading_json(path, FORMAT) as saved:
            classifier = cls(**saved["params"] | {"verbalizer": Verbalizer(**saved["params"]["verbalizer"])})
            labels = LabelSet.of(classifier.labels)
            if saved["calibration"] is not None:
                classifier.labels_, classifier.learned_ = labels, saved.get("learned", {})
                classifier.calibration_ = calibrations.restore(saved["calibration"], len(labels))
        return classifier

    @property
    def classes_(self) -> Any:
        return np.array(self._labels().names, dtype=object)

    def _labels(self) -> LabelSet:
        return getattr(self, "labels_", None) or LabelSet.of(self.labels)

    def _method(self) -> tuple[scorers.Scorer, Backbone]:
        reading = scorers.Reading(self.long_documents, self.pool, self.overlap)
        scorer = scorers.make(self.scorer, Template.of(self.template), reading, getattr(self, "learned_", None))
        return scorer, load_backbone(self.backbone, attention=self.attention, verbalizer=self.verbalizer)

    def __sklearn_is_fitted__(self) -> bool:
        return True  # training-free: every method works before `fit`

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.requires_fit = True, False, False
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
        return tags
