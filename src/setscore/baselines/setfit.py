"""SetFit (Tunstall et al., 2022): a few documents a label, contrastive pairs for the encoder, a logistic head.

The pairs and the head are those of the library setfit. Its training loop cannot go on after a kill, so the encoder is
trained by the loop that the other supervised baselines have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from setscore.baselines.base import finished, library
from setscore.baselines.linear import check_fitted
from setscore.baselines.training import Settings, train
from setscore.encoders import ENCODER, load_sentence_transformer
from setscore.errors import SetScoreError
from setscore.records import BoolArray, IntArray, LabelSet, Progress, Scores, steps

PER_LABEL, PER_LABEL_LARGE = 8, 4  # documents a label; the paper takes 4 for high-cardinality sets
LARGE = 50  # labels from which an inventory counts as such here; the paper does not say
FLOOR = 1e-6
STRATEGY = "one-vs-rest"


@dataclass(frozen=True)
class FewShot:
    """Fitted: `model` and the labels it knows, `usable`. `per_label` None means the paper's 8, and 4 from 50 labels on.

    steps   of contrastive training, 16 pairs each; pairs are drawn, so this bounds the time
    length  tokens that are read of a document in training; None reads what the encoder reads
    device  "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:1"
    folder  keeps the training's state, so that it goes on after a kill; `progress` hears of every step
    """

    checkpoint: str = ENCODER
    per_label: int | None = None
    steps: int = 200
    length: int | None = None
    seed: int = 13
    save_every: int = 50
    device: str = "auto"
    folder: Path | None = None
    progress: Progress | None = None
    labels: tuple[str, ...] = ()
    model: Any = field(default=None, repr=False)
    usable: tuple[int, ...] = ()

    def fit(self, texts: Sequence[str], gold: BoolArray, labels: LabelSet) -> Self:
        setfit = library("setfit", "SetFit")
        few = self.per_label or (PER_LABEL_LARGE if len(labels) >= LARGE else PER_LABEL)
        rows = draw_few(gold, few, self.seed)
        usable = np.flatnonzero(gold[rows].any(axis=0) & ~gold[rows].all(axis=0))
        if not len(usable):
            raise SetScoreError(f"none of {len(labels)} labels has documents with it and without it to learn from.")
        body = load_sentence_transformer(self.checkpoint, "SetFit", self.device)
        known = gold[rows][:, usable]
        if len(usable) == 1:  # a head for several labels takes no single one: its opposite goes along
            known = np.column_stack([known, ~known])
        chosen, targets = [texts[row] for row in rows], known.astype(int).tolist()
        self._train(body, chosen, targets)
        head = OneVsRestClassifier(LogisticRegression(max_iter=1000))
        model = setfit.SetFitModel(model_body=body, model_head=head, multi_target_strategy=STRATEGY)
        model.fit(chosen, targets, num_epochs=1)
        return replace(self, labels=labels.names, model=model, usable=tuple(usable.tolist()))

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        check_fitted(self.labels, labels)
        found = np.asarray(self.model.predict_proba(list(texts), as_numpy=True, show_progress_bar=False))
        log_odds = np.full((len(texts), len(labels)), float(logit(FLOOR)))
        log_odds[:, self.usable] = logit(np.clip(found[:, : len(self.usable)], FLOOR, 1 - FLOOR))
        steps(progress, "scoring", len(texts))(len(texts))
        return finished(log_odds, candidates, len(texts))

    def _train(self, body: Any, texts: list[str], targets: list[list[int]]) -> None:
        """Documents that share a label are drawn together, others apart: mean squared error of the pairs' cosine."""
        torch, sampler = library("torch", "SetFit"), library("setfit.sampler", "SetFit")
        losses = library("sentence_transformers.losses", "SetFit")
        moved = library("sentence_transformers.util", "SetFit").batch_to_device
        settings = Settings(epochs=1, warmup=0.1, precision="fp32", seed=self.seed, save_every=self.save_every)
        drawn = sampler.ContrastiveDataset(texts, targets, STRATEGY, max_pairs=self.steps * settings.batch_size)
        one_kind = not (drawn.pos_pairs and drawn.neg_pairs)  # of which the library cannot draw equally often
        pairs: list[Mapping[str, Any]] = [*drawn.pos_pairs, *drawn.neg_pairs] if one_kind else list(drawn)
        pairs = pairs[: self.steps * settings.batch_size]
        criterion, whole = losses.CosineSimilarityLoss(body), body.max_seq_length
        body.max_seq_length = min(whole, self.length or whole)

        def loss(numbers: Sequence[int]) -> Any:
            sides = [body.preprocess([pairs[n][side] for n in numbers]) for side in ("sentence_1", "sentence_2")]
            wanted = torch.tensor([float(pairs[n]["label"]) for n in numbers], device=body.device)
            return criterion([moved(side, body.device) for side in sides], wanted)

        train(body, loss, len(pairs), settings, folder=self.folder, progress=self.progress)
        body.max_seq_length = whole


def draw_few(gold: BoolArray, few: int, seed: int) -> IntArray:
    """Rows with up to `few` documents of every label, rare labels first; one document may stand for several.

    Documents without any label are drawn as those of a label are: where one label is in all the others, as "toxic" is
    among insults and threats, nothing else shows what it is not.
    """
    rng = np.random.default_rng(seed)
    chosen: set[int] = set()
    kinds = np.column_stack([gold, ~gold.any(axis=1)])
    for i in np.argsort(kinds.sum(axis=0), kind="stable"):
        rows = np.flatnonzero(kinds[:, i])
        have = sum(int(row) in chosen for row in rows)
        fresh = [int(row) for row in rng.permutation(rows) if int(row) not in chosen]
        chosen.update(fresh[: max(0, few - have)])
    return np.array(sorted(chosen), dtype=np.int64)
