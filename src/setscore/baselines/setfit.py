"""SetFit (Tunstall et al., 2022): a few documents a label, contrastive pairs for the encoder, a logistic head."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.special import logit

from setscore.baselines.base import Progress, finished, library
from setscore.baselines.linear import check_fitted
from setscore.records import BoolArray, IntArray, LabelSet, Scores
from setscore.shortlist import ENCODER, load_sentence_transformer

PER_LABEL, PER_LABEL_LARGE = 8, 4  # documents a label; the paper takes 4 for high-cardinality sets
LARGE = 50  # labels from which an inventory counts as such here; the paper does not say
FLOOR = 1e-6


@dataclass(frozen=True)
class FewShot:
    """Fitted: `model`. `per_label` None means the paper's 8, and 4 from 50 labels on."""

    checkpoint: str = ENCODER
    per_label: int | None = None
    steps: int = 200  # of contrastive training; pairs are drawn, so this bounds the time
    seed: int = 13
    labels: tuple[str, ...] = ()
    model: Any = field(default=None, repr=False)

    def fit(self, texts: Sequence[str], gold: BoolArray, labels: LabelSet) -> Self:
        setfit, datasets = library("setfit", "SetFit"), library("datasets", "SetFit")
        few = self.per_label or (PER_LABEL_LARGE if len(labels) >= LARGE else PER_LABEL)
        rows = draw_few(gold, few, self.seed)
        body = load_sentence_transformer(self.checkpoint, "SetFit")
        usable = np.flatnonzero(gold[rows].any(axis=0) & ~gold[rows].all(axis=0))
        head = _heads()
        model = setfit.SetFitModel(model_body=body, model_head=head, multi_target_strategy="one-vs-rest")
        examples = {"text": [texts[row] for row in rows], "label": gold[rows][:, usable].astype(int).tolist()}
        with tempfile.TemporaryDirectory() as folder:
            arguments = setfit.TrainingArguments(
                output_dir=folder, max_steps=self.steps, batch_size=16, seed=self.seed, report_to="none",
                save_strategy="no", show_progress_bar=False,
            )  # fmt: skip
            setfit.Trainer(model=model, args=arguments, train_dataset=datasets.Dataset.from_dict(examples)).train()
        return replace(self, labels=labels.names, model=(model, usable))

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        check_fitted(self.labels, labels)
        model, usable = self.model
        found = np.asarray(model.predict_proba(list(texts), as_numpy=True, show_progress_bar=False))
        log_odds = np.full((len(texts), len(labels)), float(logit(FLOOR)))
        log_odds[:, usable] = logit(np.clip(found, FLOOR, 1 - FLOOR))
        if progress:
            progress(len(texts))
        return finished(log_odds, candidates, len(texts))


def draw_few(gold: BoolArray, few: int, seed: int) -> IntArray:
    """Rows with up to `few` documents of every label, rare labels first; one document may stand for several."""
    rng = np.random.default_rng(seed)
    chosen: set[int] = set()
    for i in np.argsort(gold.sum(axis=0), kind="stable"):
        rows = np.flatnonzero(gold[:, i])
        have = sum(int(row) in chosen for row in rows)
        fresh = [int(row) for row in rng.permutation(rows) if int(row) not in chosen]
        chosen.update(fresh[: max(0, few - have)])
    return np.array(sorted(chosen), dtype=np.int64)


def _heads() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(LogisticRegression(max_iter=1000))
