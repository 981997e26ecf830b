"""The ways that benchmarks/speed/gpu.py times: the usual one, and ours with exact and with shared attention."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from setscore.backbones.asking import Documents, Question, Row, fit_blocks, make_rows
from setscore.backbones.native.architecture import Architecture
from setscore.backbones.native.experts import Experts
from setscore.backbones.native.layout import Layout, Part, lay_out
from setscore.backbones.native.model import Layer, Transformer
from setscore.backbones.native.operations import rms_norm, rotate, rotation, swiglu
from setscore.backbones.running import in_batches

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
def naive(model: Transformer, asked: Documents, *, block: int = 0) -> Done:
    """The usual way: padded batches, every position in every layer, the whole vocabulary at every position.

    Experts take their tokens one after the other, and blocks are a dense mask, as the checkpoints' own code does both.
    """
    a = model.architecture
    fitted = fit_blocks(asked, shared=False, block=block, mask=1)
    texts = [([*document, *question.tokens], len(document) + question.slots[0])
             for document, questions in fitted.items() for question in questions]  # fmt: skip
    values: list[float] = []
    tokens, work = 0, 0.0
    for start in range(0, len(texts), NAIVE_BATCH):
        batch = [text for text, _ in texts[start : start + NAIVE_BATCH]]
        slots = torch.tensor([slot for _, slot in texts[start : start + NAIVE_BATCH]], device=model.embedding.device)
        width = max(map(len, batch))
        ids = torch.tensor([[*text, *[0] * (width - len(text))] for text in batch], device=slots.device)
        mask = _dense_mask([len(text) for text in batch], width, block, slots.device)
        x = model.embedding[ids]
        turn = [part[None] for part in rotation(torch.arange(width, device=ids.device), a.rotary, a.rope_theta)]
        for layer in model.layers:
            x = _naive_layer(a, layer, x, turn, mask)
        logits = rms_norm(x, model.norm, a.norm_eps) @ model.head.T
        read = logits[torch.arange(len(batch), device=ids.device), slots].float().log_softmax(-1)
        values += (read[:, YES] - read[:, NO]).tolist()
        tokens += ids.numel()
        work += ids.numel() * (a.layers * layer_flops(a) + 2 * a.vocabulary * a.width)
        work += a.layers * 4 * a.heads * a.head_width * len(batch) * width**2
    return Done(values, tokens, work)


def _naive_layer(a: Architecture, layer: Layer, x: Tensor, turn: list[Tensor], mask: Tensor | None) -> Tensor:
    """x [texts, width, C]"""
    normed = rms_norm(x, layer.attention_norm, a.norm_eps)
    q = layer.q(normed).unflatten(-1, (-1, a.head_width))
    k, v = layer.kv(normed).unflatten(-1, (2, -1, a.head_width)).unbind(2)
    if layer.q_norm is not None and layer.k_norm is not None:
        q, k = rms_norm(q, layer.q_norm, a.norm_eps), rms_norm(k, layer.k_norm, a.norm_eps)
    q, k, v = (y.transpose(1, 2) for y in (rotate(q, *turn), rotate(k, *turn), v))
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=a.heads != a.key_heads)
    x = x + layer.out(mixed.transpose(1, 2).flatten(2))
    normed = rms_norm(x, layer.mlp_norm, a.norm_eps)
    if isinstance(layer.mlp, Experts):
        return x + layer.mlp.one_by_one(normed.flatten(0, 1)).view_as(x)
    return x + layer.mlp.down(swiglu(layer.mlp.gate_up(normed)))


def _dense_mask(lengths: list[int], width: int, block: int, device: torch.device) -> Tensor | None:
    """[texts, 1, 1 or width, width]: no padding is seen, and with blocks nothing after a token's own; None: all is."""
    places = torch.arange(width, device=device)
    seen = places < torch.tensor(lengths, device=device)[:, None]
    if block:
        return (seen[:, None] & (places // block <= places[:, None] // block))[:, None]
    return None if bool(seen.all()) else seen[:, None, None]


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
