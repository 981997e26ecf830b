"""An autoregressive model as the paper asks Qwen2.5-7B-Instruct: naming the labels, or answering yes or no."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from setscore.baselines.base import (
    DOCUMENT_TOKENS,
    Untrained,
    batches,
    beginning,
    beside,
    finished,
    library,
    on_device,
    pretrained,
)
from setscore.errors import VerbalizerError
from setscore.prompts import Template
from setscore.records import BoolArray, Label, LabelSet, Progress, Scores, steps

QWEN = "Qwen/Qwen2.5-7B-Instruct"
# The paper says "prompted to emit applicable labels as comma-separated text" and gives no wording.
NAMING = (
    "Document:\n{document}\n\nLabels:{labels}\n\nWhich of these labels apply to the document? Answer with the labels"
    " alone, separated by commas, or with none."
)
NAMED, NOT_NAMED = 4.0, -4.0  # a text has no scores; these stand for a decision
NEW_TOKENS = 96


@dataclass(frozen=True)
class LabelGeneration(Untrained):
    """The model writes the labels that apply. It has no scores: log-odds are +4 where a label was written, else -4.

    It is offered the labels with their descriptions, where they have some, and writes their names.

    The scores' detail "unread" marks answers that held something that is no label.
    """

    checkpoint: str = QWEN
    batch_size: int = 16
    document_tokens: int = DOCUMENT_TOKENS
    device: str = "auto"

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        step = steps(progress, "scoring", len(texts))
        asked = np.ones((len(texts), len(labels)), dtype=np.bool_) if candidates is None else candidates
        log_odds, unreadable = np.full(asked.shape, NOT_NAMED), np.zeros(len(texts))
        rows = list(range(len(texts)))
        for batch in batches(rows, self.batch_size):
            offered = [[labels.labels[i] for i in np.flatnonzero(asked[row])] for row in batch]
            prompts = [
                self._prompt(texts[row], some, labels.asked_as) for row, some in zip(batch, offered, strict=True)
            ]
            answers = _generate(self.checkpoint, self.device, prompts)
            for row, some, answer in zip(batch, offered, answers, strict=True):
                found, unread = parse_answer(answer, [label.name for label in some])
                unreadable[row] = bool(unread)
                log_odds[row, [labels.names.index(name) for name in found]] = NAMED
            step(len(batch))
        return finished(log_odds, candidates, len(texts), unreadable)

    def _prompt(self, text: str, labels: Sequence[Label], asked: str) -> str:
        tokenizer, _ = _loaded(self.checkpoint, self.device)
        offered = " " + ", ".join(label.name for label in labels)
        if asked != "name":
            offered = "".join(f"\n- {label.name}: {label.text('description')}" for label in labels)
        before, after = NAMING.split("{document}")
        return before + beginning(tokenizer, text, self.document_tokens) + after.replace("{labels}", offered)


@dataclass(frozen=True)
class CausalYesNo(Untrained):
    """The paper's question, read at the next token: log p(yes) - log p(no)."""

    checkpoint: str = QWEN
    template: str = "express"
    batch_size: int = 16
    document_tokens: int = DOCUMENT_TOKENS
    device: str = "auto"

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        torch = library("torch", "the causal baselines")
        tokenizer, model = _loaded(self.checkpoint, self.device)
        yes, no = (_single(tokenizer, word) for word in (" yes", " no"))
        template = Template.of(self.template)
        asked = np.ones((len(texts), len(labels)), dtype=np.bool_) if candidates is None else candidates
        pairs = sorted(np.argwhere(asked).tolist(), key=lambda pair: -len(texts[pair[0]]))
        log_odds = np.full(asked.shape, -np.inf)
        for batch in batches(pairs, self.batch_size):
            inputs = _padded(tokenizer, [self._ids(tokenizer, template, texts[r], labels.texts[i]) for r, i in batch])
            with torch.inference_mode():
                logits = model(**beside(model, inputs)).logits[:, -1].float().cpu().numpy()
            for (row, i), found in zip(batch, logits[:, yes] - logits[:, no], strict=True):
                log_odds[row, i] = found
        steps(progress, "scoring", len(texts))(len(texts))
        return finished(log_odds, candidates, len(pairs))

    def _ids(self, tokenizer: Any, template: Template, text: str, label: str) -> list[int]:
        """The document is cut where it must be, the question never."""
        query = template.query(text, label)
        before, after = (
            tokenizer.encode(query.prefix),
            tokenizer.encode(str(query.question[0]), add_special_tokens=False),
        )
        return [*before, *tokenizer.encode(text, add_special_tokens=False)[: self.document_tokens], *after]


def parse_answer(answer: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels that an answer names, and the parts of it that are none of them.

    Case, quotes, bullets and a full stop do not matter. "none" or nothing at all names no label, and is no failure.
    """
    known = {_plain(name): name for name in names}
    found: dict[str, None] = {}
    unread = []
    for part in re.split(r"[,;\n]", answer):
        text = _plain(re.sub(r"^\s*(?:[-*•]|\d+[.)])\s*", "", part))
        if text in known:
            found[known[text]] = None
        elif text not in ("", "none", "no labels", "none of these"):
            unread.append(part.strip())
    return list(found), unread


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("_", " ").strip().strip("\"'`.[]() ").split())


@lru_cache(maxsize=1)
def _loaded(place: str, device: str) -> tuple[Any, Any]:
    tokenizer = pretrained("AutoTokenizer", place, "the causal baselines", padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = pretrained("AutoModelForCausalLM", place, "the causal baselines", dtype="auto")
    return tokenizer, on_device(model, device)


def _padded(tokenizer: Any, rows: Sequence[list[int]]) -> dict[str, Any]:
    """Padding on the left, so that the last position is the next token of every row."""
    made = tokenizer.pad({"input_ids": list(rows)}, padding=True, padding_side="left", return_tensors="pt")
    return {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"]}


def _generate(place: str, device: str, prompts: Sequence[str]) -> list[str]:
    torch = library("torch", "the causal baselines")
    tokenizer, model = _loaded(place, device)
    if tokenizer.chat_template:
        prompts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
            )
            for prompt in prompts
        ]
    inputs = beside(model, _padded(tokenizer, [tokenizer.encode(prompt) for prompt in prompts]))
    with torch.inference_mode():
        made = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    width = inputs["input_ids"].shape[1]
    return [tokenizer.decode(row[width:], skip_special_tokens=True) for row in made]


def _single(tokenizer: Any, word: str) -> int:
    ids = tokenizer.encode(word, add_special_tokens=False)
    if len(ids) != 1:
        raise VerbalizerError(f"{word!r} is {len(ids)} tokens for this model; the answers must be one token each.")
    return int(ids[0])
