"""`hf:<id or folder>`: any AutoModelForMaskedLM of transformers (BERT, RoBERTa, DeBERTa, ModernBERT) as a backbone.

Attention is exact: the document sees the question. Rows of like length share a batch, padded to its longest, under the
model's own attention mask.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setscore.backbones.asking import Adjustment, AskingBackbone, Documents, Prompter, Row, make_rows
from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.checkpoints import origin
from setscore.backbones.devices import most_memory
from setscore.backbones.masked_files import DTYPES, Loaded, load_model, settings_of
from setscore.backbones.options import RunOptions
from setscore.backbones.running import in_batches
from setscore.backbones.vocabulary import check_prompt, check_texts
from setscore.errors import BackboneError
from setscore.prompts import Verbalizer
from setscore.records import FloatArray, Query

BATCH_TOKENS = {"cuda": 16384, "cpu": 2048}


class MaskedLmBackbone(AskingBackbone):
    """Answers queries with a masked language model of transformers."""

    def __init__(
        self,
        model: Any,
        prompter: Prompter,
        attention: Attention,
        *,
        adjustment: Adjustment | None = None,
        batch_tokens: int | None = None,
        origin: Callable[[], str] = lambda: "made in memory",
        loaded: Loaded | None = None,
    ) -> None:
        super().__init__(prompter, attention, adjustment)
        self.origin, self.loaded = origin, loaded
        self.model, self.device = model, model.device
        self.batch_tokens = batch_tokens or BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])

    def values(self, documents: Documents) -> Iterator[tuple[int, float]]:
        yes, no = self.prompter.answers
        for owners, logits in self._read(documents):
            yield from zip(owners, (logits[:, yes] - logits[:, no]).tolist(), strict=True)

    def answer_mass(self, queries: Sequence[Query]) -> list[FloatArray]:
        """A diagnostic: p(yes) + p(no) over the whole vocabulary at each open slot of each query."""
        found: list[list[float]] = [[] for _ in queries]
        for owners, logits in self._read(self.prompter.documents(queries)):
            mass = logits.softmax(dim=-1)[:, list(self.prompter.answers)].sum(dim=-1)
            for owner, value in zip(owners, mass.tolist(), strict=True):
                found[owner].append(value)
        return [np.array(values) for values in found]

    def most_likely(self, queries: Sequence[Query]) -> list[str]:
        """The most likely tokens of each query's open slots, as one text."""
        found: list[list[int]] = [[] for _ in queries]
        for owners, logits in self._read(self.prompter.documents(queries)):
            for owner, token in zip(owners, logits.argmax(dim=-1).tolist(), strict=True):
                found[owner].append(token)
        return [self.prompter.tokenizer.text(tokens) for tokens in found]

    def _read(self, documents: Documents) -> Iterator[tuple[list[int], Tensor]]:
        rows = make_rows(documents, shared=False, row_tokens=self.batch_tokens)
        return in_batches(rows, self.batch_tokens, self._compute, device=self.device)

    @torch.inference_mode()
    def _compute(self, rows: list[Row]) -> tuple[list[int], Tensor]:
        """Query numbers and logits [S, vocabulary] of the rows' slots."""
        owners: list[int] = []
        places: list[tuple[int, int]] = []
        texts: list[Tensor] = []
        for number, row in enumerate(rows):
            (question,) = row.questions
            texts.append(torch.tensor([*row.document, *question.tokens]))
            places += [(number, len(row.document) + slot) for slot in question.slots]
            owners += [question.query] * len(question.slots)
        padding = getattr(self.model.config, "pad_token_id", None) or 0  # masked, but some count positions by it
        ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=padding)
        seen = torch.nn.utils.rnn.pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
        logits = self.model(input_ids=ids.to(self.device), attention_mask=seen.to(self.device)).logits
        row_numbers, columns = torch.tensor(places).T
        return owners, logits[row_numbers.to(self.device), columns.to(self.device)].float()

    def weights(self) -> dict[str, str]:
        if self.loaded is None:
            raise BackboneError(f"{self.spec.name} was made in memory: no file tells its weights from others.")
        dtype = str(self.model.dtype).removeprefix("torch.")
        return {"weights": self.loaded.files.checksum(), "settings": self.loaded.settings, "dtype": dtype}

    def facts(self) -> dict[str, str]:
        """The shared facts, and those of the weights and the device."""
        weights = list(self.model.parameters())
        used = sum(weight.numel() * weight.element_size() for weight in weights)
        dtype = str(self.model.dtype).removeprefix("torch.")
        more = {
            "revision": self.origin(),
            "class": type(self.model).__name__,
            "weights": f"{sum(weight.numel() for weight in weights) / 1e9:.3f} B parameters, none missing",
            "dtype": f"{dtype} on {self.device}; passes of {self.batch_tokens} tokens",
            "memory": f"{used / 1e9:.2f} GB for the weights, {most_memory(self.device) / 1e9:.2f} GB at most so far",
        }
        return super().facts() | more


def spec_of(name: str, options: RunOptions) -> BackboneSpec:
    return settings_of(name, options.revision, options.allow).spec


def load(
    name: str, *, attention: Attention, verbalizer: Verbalizer, threads: int | None, options: RunOptions
) -> MaskedLmBackbone:
    """A masked language model by its id on the Hub or its folder."""
    if options.dtype not in DTYPES:
        raise BackboneError(f"{name} runs in {', '.join(DTYPES)}; dtype {options.dtype!r} is for native checkpoints.")
    if threads is not None:
        torch.set_num_threads(threads)
    settings = settings_of(name, options.revision, options.allow)
    spec, loaded = settings.spec, load_model(settings, options)
    prompter = Prompter(spec, settings.tokenizer, verbalizer, chat=options.chat)
    rows = loaded.model.get_input_embeddings().num_embeddings
    check_texts(settings.tokenizer, rows, name)
    check_prompt(prompter, rows, name)
    return MaskedLmBackbone(
        loaded.model,
        prompter,
        attention,
        adjustment=Adjustment(options.guidance, options.prior),
        batch_tokens=options.batch_tokens,
        origin=partial(origin, loaded.folder, loaded.files.paths, spec.repository, spec.revision),
        loaded=loaded,
    )
