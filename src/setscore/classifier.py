"""Read this first: the whole method on one page.

To decide which of m labels apply to a document, SetScore asks a masked-diffusion language model m questions,

    Document:
    <document>

    Question: Does this document express <label>?
    Answer:[MASK]

and reads one number per label at the masked position: u = log p(yes) - log p(no), the log-odds (Eq. 2 of the paper).
A calibration turns log-odds into probabilities, and a label is predicted where its probability reaches a threshold.
The model's weights are never touched. Before `fit` a few numbers that belong to the model stand in for a calibration:
a temperature, and how much the labels of a document compete (`competition`: where no other label stands out, one needs
less evidence; 0 treats labels independently). `fit` replaces them with values learned from labelled documents.

    Document -> [Shortlist] -> Query -> Backbone -> Scores -> [Ensemble] -> [Read-out] -> Calibration -> Prediction

What stands in brackets is optional: a shortlist asks only the labels nearest to a document (`shortlist`), an ensemble
mixes in a cosine of sentence embeddings (`blend`), a read-out is what `fit` learned on top of the scores (`head`).
"""

import copy
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

import setscore.calibration as calibrations
from setscore import fitting, persistence, scorers
from setscore.backbones import Backbone, ask_embedded, backbone_spec, check_backbone, embed_documents, load_backbone
from setscore.backbones.cached import CachedBackbone
from setscore.calibration import Calibration, UnfittedCalibration, check_objective
from setscore.ensemble import Ensemble, blend_of, members_of
from setscore.errors import IdentityWarning, SetScoreError
from setscore.estimators import TextClassifier
from setscore.fitting import MODEL, Fitted, Known
from setscore.predictions import Ask, Predictions, score_each
from setscore.prompts import Template, Verbalizer
from setscore.records import (
    BoolArray,
    FloatArray,
    IntArray,
    LabelSet,
    Progress,
    Scores,
    as_documents,
    names_in,
    readable,
)
from setscore.shortlist import Descent, Shortlist, ask_shortlisted, remember, shortlist_of
from setscore.store import Store, open_store
from setscore.suggesting import Suggestion, suggest

Candidates = Sequence[Collection[str]] | None  # a label set per document; None asks every label of every document


class SetScoreClassifier(TextClassifier):
    """A training-free multi-label text classifier with scikit-learn's conventions.

    labels          names, {name: description}, Label objects or a LabelSet; None takes the names seen in `fit`
    scorer          the method: "per_label", or another of `setscore.scorers.SCORERS`, as in "permutation?orders=8"
    backbone        a name (see `setscore models`) or an object with the Backbone interface
    template        the name of a question, a question with {label}, or a whole prompt with {document} and {label}
    verbalizer      the answers to compare: "yes/no", "true/false", "relevant/irrelevant", "present/absent"
    attention       "auto" (the backbone's own), "shared" (document read once) or "exact" (once per label)
    long_documents  "truncate" (read the beginning), "chunk" (overlapping windows), "auto" (as suits the backbone), or
                    "passages" (as auto, and each passage of longer texts on its own for the labels that are in doubt:
                    more is found, at about twice the cost)
    pool, overlap   how windows become one score ("max", "mean", "logmeanexp"), and the tokens they share
    shortlist       32, "cosine:32": only the labels nearest to a document; "parents": children of likely parents
    blend           "cosine" (of all-MiniLM) or "own-cosine" (of setscore-mini) is mixed in; `fit` chooses its weight
    calibration     what `fit` fits: "auto", a name of `setscore.calibration.CALIBRATIONS`, or an object from there
    threshold       the probability at or above which a label is predicted before `fit`, which chooses its own
    competition     how much labels compete before `fit`: 0 treats them independently; None is the model's own number
    head            what `fit` learns on top of the scores: "readout", if there are enough documents, or "none"; "auto"
                    is "readout" with the calibration "auto" and "none" with one that is named, such as "paper"
    objective       to optimise: "micro_f1", "macro_f1" or "balanced"; None: "balanced" with a read-out, else "micro_f1"
    store           a folder that keeps every answer of the model, so that nothing is asked twice; never saved
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        scorer: str = "per_label",
        backbone: str | Backbone = "setscore-small",
        template: str | Template = "express",
        verbalizer: str | Verbalizer = "yes/no",
        attention: str = "auto",
        long_documents: str = "auto",
        pool: str = "logmeanexp",
        overlap: int = 64,
        shortlist: int | str | Shortlist | Descent | None = None,
        blend: str | Ensemble | None = None,
        calibration: str | Calibration = "auto",
        threshold: float = 0.5,
        competition: float | None = None,
        head: str = "auto",
        objective: str | None = None,
        store: str | Path | Store | None = None,
    ) -> None:
        self.labels = labels
        self.scorer = scorer
        self.backbone = backbone
        self.template = template
        self.verbalizer = verbalizer
        self.attention = attention
        self.long_documents = long_documents
        self.pool = pool
        self.overlap = overlap
        self.shortlist = shortlist
        self.blend = blend
        self.calibration = calibration
        self.threshold = threshold
        self.competition = competition
        self.head = head
        self.objective = objective
        self.store = store

    def fit(self, X: Iterable[Any], y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learns from `X` with gold `y` (a matrix or lists of names) a blend's weight, a read-out and a calibration."""
        embed = fitting.learns(self.head, self.calibration)
        texts = [document.text for document in as_documents(X)]
        labels = LabelSet.of(names_in(y) if self.labels is None else self.labels)
        gold = None if y is None else labels.gold(y, len(texts))  # the calibration "bias" needs no gold
        backbone = self._backbone()
        shortlist = None if self.shortlist is None else remember(self.shortlist, texts, labels, gold)
        learned = self._prime(backbone, texts, labels, gold)
        start = replace(self._unfitted(labels), learned=learned, shortlist=shortlist, identity=backbone.identity)
        self.fit_scores_ = self._method(backbone, start, embed=embed)(texts, labels, progress=progress)
        members = self._members(start, self.fit_scores_, texts)
        if gold is None:
            self.fitted_ = replace(start, calibration=fitting.without_gold(members, self.aim(labels)))
        else:
            self.fitted_ = self._conclude(backbone, start, Known.of(members, gold, self.fit_scores_.vectors))
        return self

    def partial_fit(self, X: Iterable[Any], y: Any, *, progress: Progress | None = None) -> Self:
        """Learns from these and the first documents, which are not scored again; a shortlist stays as `fit` made it."""
        if not hasattr(self, "fitted_"):
            return self.fit(X, y, progress=progress)
        state = self.fitted_
        if state.known is None:
            raise SetScoreError("the documents of the first `fit` were not kept: call fit with all documents.")
        texts = [document.text for document in as_documents(X)]
        gold = state.labels.gold(y, len(texts))
        backbone = self._backbone()
        if state.identity != backbone.identity:
            raise SetScoreError("the model has changed since `fit`; scores of two models do not mix: call fit again.")
        scores = self._method(backbone, state, embed=state.known.embedded)(texts, state.labels, progress=progress)
        more = Known.of(self._members(state, scores, texts), gold, scores.vectors)
        self.fitted_ = self._conclude(backbone, state, state.known.and_more(more))
        return self

    def with_labels(self, labels: Any) -> Self:
        """A copy with other labels: those known by name keep what they learned, new ones start zero-shot."""
        other = copy.copy(self)
        other.labels = LabelSet.of(labels)
        if hasattr(self, "fitted_"):
            vectors = None if self.fitted_.readout is None else embed_documents(self._backbone(), other.labels.texts)
            other.fitted_ = self.fitted_.relabelled(other.labels, vectors)
        return other

    def classify(
        self, X: Iterable[Any], *, candidates: Candidates = None, progress: Progress | None = None, embed: bool = False
    ) -> Predictions:
        """One pass from documents to predictions; what cannot be scored is an error. `embed` adds `scores.vectors`."""
        state = self._state()
        documents, errors = readable(X, state.labels)
        texts = [document.text for document in documents]
        wanted = state.labels.asked(documents, candidates)
        backbone = self._backbone()
        self._warn_if_changed(state, backbone)
        embed = embed or state.readout is not None
        ask = partial(self._method(backbone, state, embed=embed), progress=progress)
        scores, failed = score_each(ask, texts, state.labels, wanted, skip=errors)
        if state.blend is not None:
            members = self._members(state, scores, texts)
            scores = replace(scores, log_odds=fitting.mixed(members, state.blend))
        log_odds = state.answer(scores.log_odds, scores.vectors)
        calibration = state.calibration
        probabilities, decisions = calibration.decide(log_odds)
        return Predictions(
            label_names=state.labels.names,
            ids=tuple(document.id or str(row) for row, document in enumerate(documents)),
            probabilities=probabilities,
            decisions=decisions,
            scores=scores,
            wanted=wanted,
            undecided=calibration.undecided(log_odds) if calibration.margin else None,
            errors=errors | failed,
            regime=state.regime,
            competition=getattr(calibration, "competition", 0.0),
        )

    def suggest(self, X: Iterable[Any], n: int = 20, *, progress: Progress | None = None) -> list[Suggestion]:
        """The `n` documents of `X` that are most worth labelling next, the best first. Then fit with them."""
        state = self._state()
        found = self.classify(X, progress=progress, embed=True)
        return suggest(found, n, state.known, state.known_probabilities())

    def score_documents(self, X: Iterable[Any], *, candidates: Candidates = None) -> Scores:
        """Log-odds of every label, or of each document's own `candidates`, and what it cost to ask them."""
        return self._checked(X, candidates).scores

    def decision_function(self, X: Iterable[Any], *, candidates: Candidates = None) -> FloatArray:
        """Log-odds [n_documents, n_labels] before read-out and calibration; -inf for labels that were not asked."""
        return self._checked(X, candidates).scores.log_odds

    def predict_proba(self, X: Iterable[Any], *, candidates: Candidates = None) -> FloatArray:
        """Probabilities [n_documents, n_labels], one for each yes/no question; they do not add up to 1."""
        return self._checked(X, candidates).probabilities

    def predict(self, X: Iterable[Any], *, candidates: Candidates = None) -> IntArray:
        """Decisions [n_documents, n_labels], 0 or 1."""
        return self._checked(X, candidates).decisions.astype(np.int64)

    def predict_labels(self, X: Iterable[Any], *, candidates: Candidates = None) -> list[set[str]]:
        """The set of label names of each document."""
        return [set(prediction.labels) for prediction in self._checked(X, candidates)]

    def current_calibration(self) -> Calibration:
        """The fitted calibration; before `fit`, one that needs no labelled document and cuts at `threshold`."""
        return self._state().calibration

    def with_threshold(self, threshold: float) -> Self:
        """A copy that cuts every label at this probability, whatever was fitted."""
        other = copy.copy(self)
        other.threshold = threshold
        if hasattr(self, "fitted_"):
            calibration = self.fitted_.calibration.with_threshold(threshold)
            other.fitted_ = replace(self.fitted_, calibration=calibration)
        return other

    def check(self) -> Self:
        """An error for options that are unknown or do not go together; needs neither weights nor documents."""
        self._scorer({})
        if self.shortlist is not None:
            shortlist_of(self.shortlist)
        if self.blend is not None:
            blend_of(self.blend)
        if self.calibration != "auto":
            calibrations.make(self.calibration)
        if isinstance(self.backbone, str):
            check_backbone(self.backbone, attention=self.attention, verbalizer=self.verbalizer)
        fitting.learns(self.head, self.calibration)
        if self.objective is not None:
            check_objective(self.objective)
        if self.store is not None:
            open_store(self.store)
        if self.labels is not None:
            self._state()
        return self

    def save(self, path: str | Path) -> None:
        """Writes parameters, labels and what was fitted as JSON; no weights, no pickle."""
        persistence.save(path, self.get_params(deep=False), self._labels(), getattr(self, "fitted_", None))

    @classmethod
    def load(cls, path: str | Path, *, allow: Sequence[str] = ()) -> Self:
        """The classifier that `save` wrote. `allow` is your consent to what its model needs, as in ["remote-code"]."""
        params, fitted = persistence.load(path, allow)
        classifier = cls(**params)
        if fitted is not None:
            classifier.fitted_ = fitted
        return classifier

    @property
    def classes_(self) -> Any:
        return np.array(self._labels().names, dtype=object)

    @property
    def regime(self) -> str:
        """What its probabilities rest on: "zero-shot" before `fit`, then "calibrated", or "learned" with a read-out."""
        return self._state().regime

    @property
    def identity(self) -> str:
        """A digest of the model: its weights and everything else that its answers depend on."""
        return self._backbone().identity

    @property
    def calibration_(self) -> Calibration:
        return self.fitted_.calibration

    @property
    def labels_(self) -> LabelSet:
        return self.fitted_.labels

    # The parts

    def _labels(self) -> LabelSet:
        return self.fitted_.labels if hasattr(self, "fitted_") else LabelSet.of(self.labels)

    def _state(self) -> Fitted:
        """What `fit` learned; before it, what stands in for that."""
        return self.fitted_ if hasattr(self, "fitted_") else self._unfitted(LabelSet.of(self.labels))

    def _unfitted(self, labels: LabelSet) -> Fitted:
        """The options, and three numbers of the model: its temperature, and how labels compete."""
        spec = backbone_spec(self.backbone) if isinstance(self.backbone, str) else self.backbone.spec
        competition = spec.competition if self.competition is None else self.competition
        ready = UnfittedCalibration(
            temperature=spec.temperature, competition=competition, handicap=spec.handicap, threshold=self.threshold
        )
        blend = None if self.blend is None else blend_of(self.blend)
        shortlist = None if self.shortlist is None else shortlist_of(self.shortlist)
        return Fitted(labels, ready.for_labels(len(labels)), blend, shortlist=shortlist)

    def _members(self, state: Fitted, scores: Scores, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """The sources of log-odds: the model, and a cosine where one is blended in."""
        if state.blend is None:
            return {MODEL: scores.log_odds}
        return members_of(state.blend, scores.log_odds, texts, state.labels)

    def aim(self, labels: LabelSet | None = None) -> fitting.Aim:
        """What `fit` has to choose: calibration, objective and blend."""
        start = self._unfitted(labels or self._labels())
        return fitting.Aim(self.calibration, self.objective, start.blend, start.calibration)

    def _conclude(self, backbone: Backbone, state: Fitted, known: Known) -> Fitted:
        """What all labelled documents teach together: with their embeddings a read-out, too."""
        vectors = embed_documents(backbone, state.labels.texts) if known.embedded else None
        calibration, blend, readout = fitting.conclude(known, vectors, self.aim(state.labels))
        learned = replace(state, calibration=calibration, blend=blend, readout=readout)
        return replace(learned, known=known, identity=backbone.identity)

    def _scorer(self, learned: Mapping[str, Any]) -> scorers.Scorer:
        reading = scorers.Reading(self.long_documents, self.pool, self.overlap)
        template = Template.of(self.template)
        if self.scorer == "per_label":  # the method that is told above
            return scorers.PerLabelScorer(template, reading)
        return scorers.make(self.scorer, template, reading, learned)

    def _backbone(self) -> Backbone:
        backbone = load_backbone(self.backbone, attention=self.attention, verbalizer=self.verbalizer)
        return backbone if self.store is None else CachedBackbone(backbone, open_store(self.store))

    def _method(self, backbone: Backbone, state: Fitted, *, embed: bool) -> Ask:
        """How texts and labels become scores; with `embed` sentence embeddings too, in the same pass if possible."""
        scorer = self._scorer(state.learned)
        ask: Ask = partial(scorer.score, backbone)
        if embed and isinstance(scorer, scorers.PerLabelScorer):
            ask = partial(ask, embed=True)
        if state.shortlist is not None:
            ask = partial(ask_shortlisted, state.shortlist, ask)
        return partial(ask_embedded, ask, backbone) if embed else ask

    def _prime(self, backbone: Backbone, texts: list[str], labels: LabelSet, gold: BoolArray | None) -> dict[str, Any]:
        """What a scorer that starts from another one's decisions (its seed) learns of them; most learn nothing."""
        scorer = self._scorer({})
        if not isinstance(scorer, scorers.Learner):
            return {}
        start = scorer.seed.score(backbone, texts, labels)
        return fitting.learn(scorer, start.log_odds, gold, self.calibration)

    def _checked(self, X: Iterable[Any], candidates: Candidates) -> Predictions:
        """Predictions where every document must be scored: an error names the others, a warning counts cut ones."""
        predictions = self.classify(X, candidates=candidates).checked()
        predictions.scores.warn()
        return predictions

    def _warn_if_changed(self, state: Fitted, backbone: Backbone) -> None:
        if state.identity is not None and state.identity != backbone.identity:
            warnings.warn(IdentityWarning.of(backbone.spec.name), stacklevel=4)
