"""BERT and RoBERTa with a sigmoid head, trained on the training split with the paper's settings."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from setscore.baselines.base import batches, beside, finished, library, on_device, pretrained
from setscore.baselines.linear import check_fitted
from setscore.baselines.training import Settings, train
from setscore.records import BoolArray, LabelSet, Progress, Scores, steps

WHAT = "the supervised baselines"
BERT_SETTINGS = Settings()


@dataclass(frozen=True)
class SigmoidHead:
    """Every label is an output with its own sigmoid; its logit is the log-odds. Fitted: `parts`."""

    checkpoint: str = "bert-base-uncased"
    settings: Settings = BERT_SETTINGS
    length: int = 512
    batch_size: int = 32
    device: str = "auto"
    folder: Path | None = None
    progress: Progress | None = None
    labels: tuple[str, ...] = ()
    parts: tuple[Any, Any] | None = field(default=None, repr=False)  # tokenizer and model

    def fit(self, texts: Sequence[str], gold: BoolArray, labels: LabelSet) -> Self:
        torch = library("torch", WHAT)
        torch.manual_seed(self.settings.seed)
        tokenizer = pretrained("AutoTokenizer", self.checkpoint, WHAT)
        model = pretrained(
            "AutoModelForSequenceClassification",
            self.checkpoint,
            WHAT,
            num_labels=len(labels),
            problem_type="multi_label_classification",
            ignore_mismatched_sizes=True,
        )
        model = on_device(model, self.device)
        target = torch.from_numpy(gold.astype(np.float32))

        def loss(rows: Sequence[int]) -> Any:
            inputs = self._inputs(tokenizer, [texts[row] for row in rows]) | {"labels": target[list(rows)]}
            return model(**beside(model, inputs)).loss

        train(model, loss, len(texts), self.settings, folder=self.folder, progress=self.progress)
        return replace(self, labels=labels.names, parts=(tokenizer, model))

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        step = steps(progress, "scoring", len(texts))
        check_fitted(self.labels, labels)
        assert self.parts is not None
        torch, (tokenizer, model) = library("torch", WHAT), self.parts
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        log_odds = np.full((len(texts), len(labels)), -np.inf)
        for batch in batches(order, self.batch_size):
            with torch.inference_mode():
                logits = model(**beside(model, self._inputs(tokenizer, [texts[row] for row in batch]))).logits
            log_odds[list(batch)] = logits.float().cpu().numpy()
            step(len(batch))
        return finished(log_odds, candidates, len(texts))

    def _inputs(self, tokenizer: Any, texts: Sequence[str]) -> dict[str, Any]:
        return dict(tokenizer(texts, truncation=True, max_length=self.length, padding=True, return_tensors="pt"))
