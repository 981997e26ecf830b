"""flan-T5 writes the set of labels as text, separated by semicolons, in the order of the inventory.

Long inventories overflow a decoder that writes them at once, so decoding goes on in chunks until the answer ends or its
budget is spent; answers that were cut there, or name something that is no label, are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from setscore.baselines.base import batches, beside, finished, library, on_device, pretrained
from setscore.baselines.causal import NAMED, NOT_NAMED, parse_answer
from setscore.baselines.linear import check_fitted
from setscore.baselines.training import Settings, train
from setscore.records import BoolArray, IntArray, LabelSet, Progress, Scores, steps

WHAT = "the text-to-set baseline"
IGNORED = -100  # the loss skips padding
T5_SETTINGS = Settings(learning_rate=1e-4, epochs=3, precision="fp32")


@dataclass(frozen=True)
class TextToSet:
    """Fitted: `parts`, tokenizer and model. Log-odds are +4 where a label was written, else -4.

    The scores' detail "unread" marks answers that held something that is no label.
    """

    checkpoint: str = "google/flan-t5-base"
    settings: Settings = T5_SETTINGS
    length: int = 512
    batch_size: int = 16
    chunk: int = 64  # tokens decoded at a time
    budget: int = 512  # tokens of an answer in all
    device: str = "auto"
    folder: Path | None = None
    progress: Progress | None = None
    labels: tuple[str, ...] = ()
    parts: tuple[Any, Any] | None = field(default=None, repr=False)

    def fit(self, texts: Sequence[str], gold: BoolArray, labels: LabelSet) -> Self:
        torch = library("torch", WHAT)
        torch.manual_seed(self.settings.seed)
        tokenizer = pretrained("AutoTokenizer", self.checkpoint, WHAT)
        model = on_device(pretrained("AutoModelForSeq2SeqLM", self.checkpoint, WHAT), self.device)
        answers = [as_text([labels.names[i] for i in np.flatnonzero(row)]) for row in gold]

        def loss(rows: Sequence[int]) -> Any:
            inputs = self._inputs(tokenizer, [texts[row] for row in rows])
            wanted = tokenizer(
                [answers[row] for row in rows],
                truncation=True,
                max_length=self.budget,
                padding=True,
                return_tensors="pt",
            )
            target = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, IGNORED)
            return model(**beside(model, inputs | {"labels": target})).loss

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
        log_odds, unreadable = np.full((len(texts), len(labels)), NOT_NAMED), np.zeros(len(texts))
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        for batch in batches(order, self.batch_size):
            for row, answer in zip(batch, self._answers([texts[row] for row in batch]), strict=True):
                found, unread = parse_answer(answer, labels.names)
                unreadable[row] = bool(unread)
                log_odds[row, [labels.names.index(name) for name in found]] = NAMED
            step(len(batch))
        return finished(log_odds, candidates, len(texts), unreadable)

    def _answers(self, texts: Sequence[str]) -> list[str]:
        """Greedy decoding, `chunk` tokens at a time, until every answer has ended or the budget is spent."""
        assert self.parts is not None
        torch, (tokenizer, model) = library("torch", WHAT), self.parts
        inputs = beside(model, self._inputs(tokenizer, texts))
        written = torch.full((len(texts), 1), model.config.decoder_start_token_id, device=model.device)
        while written.shape[1] - 1 < self.budget and not _ended(written.cpu().numpy(), model.config.eos_token_id).all():
            room = min(self.chunk, self.budget + 1 - written.shape[1])
            with torch.inference_mode():
                written = model.generate(**inputs, decoder_input_ids=written, max_new_tokens=room, do_sample=False)
        return [tokenizer.decode(_answer(row.tolist(), model.config.eos_token_id)) for row in written]

    def _inputs(self, tokenizer: Any, texts: Sequence[str]) -> dict[str, Any]:
        made = tokenizer(texts, truncation=True, max_length=self.length, padding=True, return_tensors="pt")
        return {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"]}


def as_text(names: Sequence[str]) -> str:
    return "; ".join(names) or "none"


def _answer(written: list[int], end: int) -> list[int]:
    """Without the start, and up to the end: an answer that is done is written on while others of its batch are not."""
    return written[1 : written.index(end)] if end in written else written[1:]


def _ended(written: IntArray, end: int) -> BoolArray:
    return np.asarray((written == end).any(axis=1))
