"""A linear head on frozen embeddings: one logistic regression a label, the encoder untouched."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from setscore.baselines.base import finished
from setscore.encoders import ENCODER, Encode, load_encoder, unit
from setscore.errors import LabelError, SetScoreError, counted
from setscore.records import BoolArray, FloatArray, LabelSet, Progress, Scores, steps


@dataclass(frozen=True)
class LinearHead:
    """Fitted: `weights` [n_labels, d] and `biases` [n_labels]. A label that is always or never there has no weights."""

    checkpoint: str = ENCODER
    regularisation: float = 10.0  # scikit-learn's C
    device: str = "auto"
    encode: Encode | None = None
    labels: tuple[str, ...] = ()
    weights: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    biases: FloatArray = field(default_factory=lambda: np.zeros(0))

    def fit(self, texts: Sequence[str], gold: BoolArray, labels: LabelSet) -> Self:
        vectors = self._vectors(texts)
        weights = np.zeros((len(labels), vectors.shape[1]))
        rates = (gold.sum(axis=0) + 0.5) / (len(gold) + 1)
        biases = np.asarray(logit(rates))
        for i in np.flatnonzero(gold.any(axis=0) & ~gold.all(axis=0)):
            head = LogisticRegression(C=self.regularisation, max_iter=1000).fit(vectors, gold[:, i])
            weights[i], biases[i] = head.coef_[0], head.intercept_[0]
        return replace(self, labels=labels.names, weights=weights, biases=biases)

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        check_fitted(self.labels, labels)
        found = self._vectors(texts) @ self.weights.T + self.biases
        steps(progress, "scoring", len(texts))(len(texts))
        return finished(found, candidates, len(texts))

    def _vectors(self, texts: Sequence[str]) -> FloatArray:
        encode = self.encode or load_encoder(self.checkpoint, "the baseline linear", self.device)
        return unit(encode(texts)).astype(np.float64)


def check_fitted(known: tuple[str, ...], labels: LabelSet) -> None:
    """A head that learned other labels, or none, cannot score these."""
    if not known:
        raise SetScoreError("this baseline learns from labelled documents: call fit before score.")
    if known != labels.names:
        raise LabelError(
            f"the head was fitted on {counted(len(known), 'label')}, other than the"
            f" {counted(len(labels), 'label')} given."
        )
