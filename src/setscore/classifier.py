"""Read this first: the whole method on one page.

To decide which of m labels apply to a document, SetScore asks a masked-diffusion language model m questions,

    Document:
    <document>

    Question: Does this document express <label>?
    Answer:[MASK]

and reads one number per label at the masked position: u = log p(yes) - log p(no), the log-odds (Eq. 2 of the paper).
A calibration turns log-odds into probabilities, and decisions where probability >= tau. The model's weights are never
touched: `fit` only fits the calibration on a few labelled documents, and everything works without it too.

    Document -> [Shortlist] -> Template -> Query -> Backbone -> Scores -> [Ensemble] -> Calibration -> Prediction
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

import setscore.calibration as calibrations
from setscore import scorers
from setscore.backbones import Backbone, load_backbone
from setscore.ensemble import Ensemble, blended
from setscore.errors import SetScoreError
from setscore.estimators import TextClassifier
from setscore.prompts import Template, Verbalizer
from setscore.records import FloatArray, IntArray, LabelSet, Scores, as_documents, names_in
from setscore.shortlist import Descent, Shortlist, ask_shortlisted, remember, shortlist_of
from setscore.storage import reading_json, write_json

Candidates = Sequence[Collection[str]] | None  # a label set per document; None asks every label of every document
FORMAT = "setscore.classifier/1"


class SetScoreClassifier(TextClassifier):
    """A training-free multi-label text classifier with scikit-learn's conventions.

    labels          names, {name: description}, Label objects or a LabelSet; None takes the names seen in `fit`
    scorer          the method: "per_label", or another of `setscore.scorers.SCORERS`, as in "permutation?orders=8"
    backbone        a name (see `setscore models`) or an object with the Backbone interface
    template        the name of a question, a question with {label}, or a whole prompt with {document} and {label}
    verbalizer      the answers to compare: "yes/no", "true/false", "relevant/irrelevant", "present/absent"
    attention       "auto" (native to the backbone), "shared" (document read once) or "exact" (once per label)
    long_documents  "truncate" (read the beginning), "chunk" (overlapping windows), "auto" (as suits the backbone)
    shortlist       32, "cosine:32": only the labels nearest to a document; "parents": children of likely parents
    blend           "cosine" or "own-cosine" averages log-odds with all-MiniLM's or setscore-mini's; `fit` weighs both
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
        long_documents: str = "auto",
        pool: str = "logmeanexp",
        overlap: int = 64,
        shortlist: int | str | Shortlist | Descent | None = None,
        blend: str | Ensemble | None = None,
        calibration: str | calibrations.Calibration = "auto",
        threshold: float = 0.5,
    ) -> None:
        self.labels, self.scorer, self.shortlist, self.blend, self.overlap = labels, scorer, shortlist, blend, overlap
        self.backbone, self.attention, self.template, self.verbalizer = backbone, attention, template, verbalizer
        self.long_documents, self.pool, self.calibration, self.threshold = long_documents, pool, calibration, threshold

    def fit(self, X: Iterable[Any], y: Any = None) -> Self:
        """Fits `calibration_` on documents `X` with gold `y`: an indicator matrix or lists of names."""
        documents, self.labels_ = as_documents(X), LabelSet.of(names_in(y) if self.labels is None else self.labels)
        gold = None if y is None else self.labels_.gold(y, len(documents))  # the calibration "bias" needs none
        self.shortlist_, self.blend_, self.learned_ = remember(self.shortlist, documents, self.labels_, gold), None, {}
        self.learned_ = calibrations.learn(self.calibration, *self._method(), documents, self.labels_, gold)
        scores, self.blend_ = blended(self.blend, self.score_documents(documents), documents, self.labels_, gold)
        self.calibration_ = calibrations.fit(self.calibration, scores.log_odds, gold)
        return self

    def score_documents(self, X: Iterable[Any], *, candidates: Candidates = None) -> Scores:
        """The method itself: log-odds of every label, or of each document's own `candidates`."""
        documents, labels = as_documents(X), self._labels()
        (scorer, backbone), asked = self._method(), labels.asked(documents, candidates)
        texts, shortlist = [document.text for document in documents], getattr(self, "shortlist_", self.shortlist)
        scores = ask_shortlisted(partial(scorer.score, backbone, texts), texts, labels, asked, shortlist_of(shortlist))
        scores.warn()
        return blended(getattr(self, "blend_", self.blend), scores, documents, labels)[0]

    def decision_function(self, X: Iterable[Any], *, candidates: Candidates = None) -> FloatArray:
        """Log-odds [n_documents, n_labels]; -inf for labels that were not asked."""
        return self.score_documents(X, candidates=candidates).log_odds

    def predict_proba(self, X: Iterable[Any], *, candidates: Candidates = None) -> FloatArray:
        """Probabilities [n_documents, n_labels], one for each yes/no question; they do not add up to 1."""
        return self.current_calibration().transform(self.decision_function(X, candidates=candidates))

    def predict(self, X: Iterable[Any], *, candidates: Candidates = None) -> IntArray:
        """Decisions [n_documents, n_labels], 0 or 1."""
        return self.current_calibration().predict(self.decision_function(X, candidates=candidates)).astype(np.int64)

    def predict_labels(self, X: Iterable[Any], *, candidates: Candidates = None) -> list[set[str]]:
        """The set of label names of each document."""
        return self._labels().sets(self.predict(X, candidates=candidates))

    def current_calibration(self) -> calibrations.Calibration:
        """The fitted calibration; before `fit`, one that needs no labelled document and cuts at `threshold`."""
        fitted: calibrations.Calibration | None = getattr(self, "calibration_", None)
        return fitted or calibrations.unfitted(self.backbone, len(self._labels()), self.threshold)

    def save(self, path: str | Path) -> None:
        """Writes parameters, labels and calibration as JSON; no weights, no pickle."""
        if not isinstance(self.backbone, str):
            raise SetScoreError("only a classifier whose backbone is given by name can be saved.")
        params = self.get_params(deep=False) | {"labels": self._labels().plain()}
        params |= {"template": Template.of(self.template).text, "verbalizer": vars(Verbalizer.of(self.verbalizer))}
        params |= {"calibration": calibrations.describe(self.calibration)}
        params |= {name: v for name in ("shortlist", "blend") if (v := getattr(self, f"{name}_", params.pop(name)))}
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
