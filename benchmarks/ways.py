"""The ways that gpu.py times: the usual one, and ours with exact and with shared attention."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional

from setscore.backbones.native.architecture import Architecture
from setscore.backbones.native.layout import Layout, Part, lay_out
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.operations import rms_norm, rotate, rotation, swiglu
from setscore.backbones.native.running import fit_blocks, in_batches
from setscore.backbones.packing import Documents, Question, Row, make_rows

QUESTION = 20  # tokens, the slot is the last
NAIVE_BATCH = 64
YES, NO = 5, 6


def documents(lengths: list[int], labels: int, vocabulary: int) -> Documents:
    """Random documents of these lengths, each with every label's question; the slot ends a question."""
    draw = random.Random(7)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.choices(range(vocabulary), k=count))

    asked = [tokens(QUESTION) for _ in range(labels)]
    made: Documents = {}
    for length in lengths:
        number = sum(map(len, made.values()))
        made[tokens(length)] = [Question(number + i, asked[i], (QUESTION - 1,)) for i in range(labels)]
    return made


@dataclass(frozen=True)
class Done:
    """What a way gave and did: log-odds in the order of its batches, tokens, and multiply-adds times two."""

    values: list[float]
    tokens: int
    flops: float


def ours(model: Transformer, asked: Documents, batch_tokens: int, *, shared: bool, block: int = 0) -> Done:
    """One pass over the documents as the backbone does it."""
    rows = make_rows(fit_blocks(asked, shared=shared, block=block, mask=1), shared=shared, row_tokens=batch_tokens)

    @torch.inference_mode()
    def compute(batch: list[Row]) -> tuple[list[float], Layout]:
        layout = lay_out(batch, shared=shared, block=block, shift=0, device=model.embedding.device)
        return model.log_odds(model(layout), YES, NO).tolist(), layout

    done = list(in_batches(rows, batch_tokens, compute))
    values = [value for values, _ in done for value in values]
    a = model.architecture
    return Done(values, sum(layout.tokens for _, layout in done), sum(flops(a, layout) for _, layout in done))


@torch.inference_mode()
def naive(model: Transformer, asked: Documents) -> Done:
    """The usual way: padded batches, every position in every layer, the whole vocabulary at every position."""
    a = model.architecture
    texts = [[*document, *question.tokens] for document, questions in asked.items() for question in questions]
    values: list[float] = []
    tokens, work = 0, 0.0
    for start in range(0, len(texts), NAIVE_BATCH):
        batch = texts[start : start + NAIVE_BATCH]
        width = max(map(len, batch))
        ids = torch.tensor([[*text, *[0] * (width - len(text))] for text in batch], device=model.embedding.device)
        seen = torch.tensor([[True] * len(t) + [False] * (width - len(t)) for t in batch], device=ids.device)
        mask = None if bool(seen.all()) else seen[:, None, None]
        x = model.embedding[ids]
        cos, sin = (turn[None] for turn in rotation(torch.arange(width, device=ids.device), a.rotary, a.rope_theta))
        for layer in model.layers:
            normed = rms_norm(x, layer.attention_norm, a.norm_eps)
            q = layer.q(normed).unflatten(-1, (-1, a.head_width))
            k, v = layer.kv(normed).unflatten(-1, (2, -1, a.head_width)).unbind(2)
            q, k, v = (y.transpose(1, 2) for y in (rotate(q, cos, sin), rotate(k, cos, sin), v))
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=a.heads != a.key_heads)
            x = x + layer.out(mixed.transpose(1, 2).flatten(2))
            inner = swiglu(layer.mlp.gate_up(rms_norm(x, layer.mlp_norm, a.norm_eps)))
            x = x + layer.mlp.down(inner)
        logits = rms_norm(x, model.norm, a.norm_eps) @ model.head.T
        ends = seen.sum(dim=1) - 1
        read = logits[torch.arange(len(batch), device=ids.device), ends].float().log_softmax(-1)
        values += (read[:, YES] - read[:, NO]).tolist()
        tokens += ids.numel()
        work += ids.numel() * (a.layers * layer_flops(a) + 2 * a.vocabulary * a.width)
        work += a.layers * 4 * a.heads * a.head_width * len(batch) * width**2
    return Done(values, tokens, work)


def layer_flops(a: Architecture, *, keys: bool = True, rest: bool = True) -> float:
    """Multiply-adds times two of a layer's matrices for one token: its keys and values, and the rest."""
    query, key = a.heads * a.head_width, a.key_heads * a.head_width
    inner = a.mlp_width
    if a.router is not None:  # nearly all layers have experts
        inner = a.router.width * a.router.chosen + a.router.shared_width
    return 2 * a.width * (2 * key * keys + (2 * query + 3 * inner) * rest)


def flops(a: Architecture, layout: Layout) -> float:
    """What our transformer multiplies for a batch."""
    reads = len(layout.reads)
    matrices = layout.tokens * ((a.layers - 1) * layer_flops(a) + layer_flops(a, rest=False))
    matrices += reads * layer_flops(a, keys=False)
    pairs = (a.layers - 1) * sum(map(_pairs, _parts(layout, last=False))) + sum(map(_pairs, _parts(layout, last=True)))
    return matrices + 4 * a.heads * a.head_width * pairs


def _parts(layout: Layout, *, last: bool) -> Iterator[Part]:
    sight = layout.last_sight if last else layout.sight
    yield sight.own
    if sight.context is not None:
        yield sight.context


def _pairs(part: Part) -> int:
    return sum(q * k for q, k in zip(part.query_lengths, part.key_lengths, strict=True))
