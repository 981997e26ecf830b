"""A folder that `recipes.tutor` made, as a backbone: a causal language model that learned what was judged by hand.

It is many times as large as the embedded models, and answers label sets that it never saw far better. It needs torch,
and a GPU or patience. Its head says how far yes is before no, so it has no other pair of answers.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setscore.backbones.asking import Adjustment, AskingBackbone, Documents, Prompter, Row, make_rows, pack
from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.causal.model import CausalModel, build
from setscore.backbones.causal.weights import LEARNED, TOKENIZER, WEIGHTS, corrected, unpack, weights_in
from setscore.backbones.devices import device_of, most_memory
from setscore.backbones.options import RunOptions
from setscore.backbones.running import in_batches
from setscore.backbones.tokens import TextTokenizer
from setscore.backbones.vocabulary import check_prompt, check_texts
from setscore.errors import BackboneError
from setscore.prompts import Verbalizer

ANSWERS = Verbalizer("yes", "no")
BATCH_TOKENS = {"cuda": 32768, "cpu": 2048}
ROW_TOKENS = 2048  # beyond this, a row's questions are parted, and its document is read again
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
REFUSED = {"chat", "compile", "allow", "revision"}  # options that mean nothing to it
PIECE = 2**22  # bytes that are hashed at a time


class CausalBackbone(AskingBackbone):
    """Answers queries with a causal model. No question sees another, so shared and exact attention are one."""

    def __init__(
        self,
        model: CausalModel,
        prompter: Prompter,
        attention: Attention,
        *,
        digest: str,
        adjustment: Adjustment | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        super().__init__(prompter, attention, adjustment)
        self.model, self.device, self._digest = model, model.head.weight.device, digest
        self.batch_tokens = batch_tokens or BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])

    def values(self, documents: Documents) -> Iterator[tuple[int, float]]:
        rows = make_rows(documents, shared=self.attention == "shared", row_tokens=ROW_TOKENS)
        for owners, odds in in_batches(rows, self.batch_tokens, self._compute, device=self.device):
            yield from zip(owners, odds.tolist(), strict=True)

    @torch.inference_mode()
    def _compute(self, rows: list[Row]) -> tuple[list[int], Tensor]:
        """Query numbers and log-odds [S] of the rows' slots, each read at the token before it."""
        packed = pack(rows, shared=self.attention == "shared")
        read = packed.owners >= 0
        places = np.stack([np.nonzero(read)[0], packed.slots[read] - self.spec.shift], axis=1)
        parts = (packed.segments > 0).astype(np.int64)
        arrays = (packed.token_ids, packed.positions, parts, packed.segments, places)
        odds = self.model(*(torch.from_numpy(array).to(self.device) for array in arrays))
        return packed.owners[read].tolist(), odds

    def weights(self) -> dict[str, str]:
        return {"weights": self._digest, "dtype": str(self.model.word.weight.dtype).removeprefix("torch.")}

    def facts(self) -> dict[str, str]:
        """The shared facts, and those of the weights and the device."""
        more = {
            "revision": f"files with SHA-256 {self._digest[:12]}...",
            "weights": f"{self.spec.parameters / 1e9:.2f} B parameters, {len(self.model.layers)} layers",
            "dtype": f"{self.weights()['dtype']} on {self.device}; passes of {self.batch_tokens} tokens",
            "memory": f"{most_memory(self.device) / 1e9:.2f} GB at most so far",
        }
        return super().facts() | {"blocks": "none, causal"} | more


def spec_of(name: str, options: RunOptions) -> BackboneSpec:  # noqa: ARG001
    return BackboneSpec(
        name=name,
        family="causal",
        summary="a causal model that learned hand-made answers; from a folder",
        parameters=weights_in(Path(name) / WEIGHTS),
        context=2048,
        attention=("shared", "exact"),
        licence="that of the language model it was made from",
        mask="<|endoftext|>",
        leading_space=True,
        shift=1,
    )


def load(
    name: str, *, attention: Attention, verbalizer: Verbalizer, threads: int | None, options: RunOptions
) -> CausalBackbone:
    if verbalizer != ANSWERS:
        raise BackboneError(f"{name} learned to say yes and no; it has no other answers, such as {verbalizer}.")
    if refused := sorted(REFUSED & set(options.changed())):
        raise BackboneError(f"{name} is a causal model in a folder; leave out {', '.join(refused)}.")
    if options.dtype not in ("auto", *DTYPES):
        raise BackboneError(f"{name} runs in auto, {', '.join(DTYPES)}; got dtype {options.dtype!r}.")
    if threads is not None:
        torch.set_num_threads(threads)
    folder, device = Path(name), device_of(options.device)
    kept = DTYPES["bf16" if device.type == "cuda" else "fp32"] if options.dtype == "auto" else DTYPES[options.dtype]
    state, numbers = unpack(folder / WEIGHTS)
    state = corrected(state, folder / LEARNED)
    model = build({key: _kept(key, value, kept).to(device) for key, value in state.items()}, *numbers).eval()
    prompter = Prompter(spec_of(name, options), TextTokenizer(folder / TOKENIZER), verbalizer)
    check_texts(prompter.tokenizer, model.shape.tokens, name)
    check_prompt(prompter, model.shape.tokens, name)
    return CausalBackbone(
        model,
        prompter,
        attention,
        digest=_digest(folder / WEIGHTS, folder / LEARNED),
        adjustment=Adjustment(options.guidance, options.prior),
        batch_tokens=options.batch_tokens,
    )


def _kept(name: str, value: Tensor, dtype: torch.dtype) -> Tensor:
    """Norms and the head stay as they are: they are few, and small differences show there."""
    matrices = name.startswith("word.") or (name.startswith("layers.") and ".n" not in name)
    return value.to(dtype) if matrices else value


def _digest(*paths: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE):
                found.update(piece)
    return found.hexdigest()
