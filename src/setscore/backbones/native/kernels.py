"""The experts' products as Triton kernels, for GPUs from Hopper on; imported only where they are used.

For one token and one layer of LLaDA2-mini (width 2048, 8 of 256 experts of width 512) the products are 50 million
operations. Done one after the other, gathering, both products, SwiGLU and the weighted sum move 190 KB. Here it is
96 KB: a product reads a row where its token stands, SwiGLU and the routing weight are applied before anything is
written, and a result is written where its token wants it.

Pairs of a token and an expert are sorted by expert (experts.Choice) and cut into tiles, each of one expert.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from setscore.backbones.native.architecture import Router

ROWS = 128  # of a tile
LEAST = 16  # the smallest side of a product on the matrix units


@triton.jit
def _choose(  # noqa: PLR0917
    logits, bias, experts, weights, scale,
    EXPERTS: tl.constexpr, GROUPS: tl.constexpr, KEPT: tl.constexpr, CHOSEN: tl.constexpr,
    BIAS: tl.constexpr, NORMALISE: tl.constexpr,
):  # fmt: skip
    """experts.route for one token with sigmoid scores: the best groups, then the best experts in them."""
    token = tl.program_id(0).to(tl.int64)
    number = tl.arange(0, EXPERTS)
    score = tl.sigmoid(tl.load(logits + token * EXPERTS + number))
    ranked = score
    if BIAS:
        ranked += tl.load(bias + number)
    if KEPT < GROUPS:
        grouped = tl.reshape(ranked, (GROUPS, EXPERTS // GROUPS))
        first = tl.arange(0, EXPERTS // GROUPS)[None, :] == tl.argmax(grouped, axis=1)[:, None]
        left = tl.max(grouped, axis=1) + tl.max(tl.where(first, float("-inf"), grouped), axis=1)
        for _ in tl.static_range(KEPT):
            left = tl.where(tl.arange(0, GROUPS) == tl.argmax(left, axis=0), float("-inf"), left)
        kept = (left == float("-inf"))[:, None]
        ranked = tl.reshape(tl.where(kept, grouped, float("-inf")), (EXPERTS,))
    chosen = tl.arange(0, CHOSEN)
    numbers = tl.zeros((CHOSEN,), dtype=tl.int32)
    found = tl.zeros((CHOSEN,), dtype=tl.float32)
    for rank in tl.static_range(CHOSEN):
        best = tl.argmax(ranked, axis=0)
        weight = tl.sum(tl.where(number == best, score, 0.0), axis=0)
        ranked = tl.where(number == best, float("-inf"), ranked)
        numbers = tl.where(chosen == rank, best, numbers)
        found = tl.where(chosen == rank, weight, found)
    if NORMALISE:
        found = found / (tl.sum(found, axis=0) + 1e-20)
    tl.store(experts + token * CHOSEN + chosen, numbers.to(tl.int16))
    tl.store(weights + token * CHOSEN + chosen, found * scale)


@triton.jit
def _cut(  # noqa: PLR0917
    stops, experts, firsts, tiles, COUNT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """The expert and the first row of BLOCK tiles; -1 for tiles that are not needed."""
    expert = tl.arange(0, COUNT)
    stop = tl.load(stops + expert)
    start = tl.where(expert == 0, 0, tl.load(stops + tl.maximum(expert - 1, 0)))
    needed = (stop - start + ROWS - 1) // ROWS
    end = tl.cumsum(needed, axis=0)
    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.sum((end[None, :] <= number[:, None]).to(tl.int32), axis=1)
    first = tl.where(mine[:, None] == expert[None, :], start[None, :] - (end - needed)[None, :] * ROWS, 0)
    tl.store(firsts + number, tl.sum(first, axis=1) + number * ROWS, mask=number < tiles)
    tl.store(experts + number, tl.where(mine < COUNT, mine, -1), mask=number < tiles)


@triton.jit
def _gate_up(  # noqa: PLR0917
    x, w, order, experts, firsts, stops, out,
    C: tl.constexpr, INNER: tl.constexpr, CHOSEN: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out[r] = silu(x_r gate^T) * (x_r up^T) for the rows r of a tile and some columns."""
    per_tile = INNER // COLUMNS
    tile = tl.program_id(0) // per_tile
    column = (tl.program_id(0) % per_tile) * COLUMNS
    expert = tl.load(experts + tile)
    if expert >= 0:
        first = tl.load(firsts + tile)
        rows = first + tl.arange(0, ROWS)
        inside = rows < tl.load(stops + expert)
        token = tl.load(order + rows, mask=inside, other=0) // CHOSEN
        at = x + token.to(tl.int64)[:, None] * C + tl.arange(0, DEPTH)[None, :]
        gate = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        up = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for k in range(0, C, DEPTH):
            a = tl.load(at + k)
            gate = tl.dot(a, w.load([expert * 2 * INNER + column, k]).T, gate)
            up = tl.dot(a, w.load([expert * 2 * INNER + INNER + column, k]).T, up)
        worked = gate / (1 + tl.exp(-gate)) * up
        to = out + rows.to(tl.int64)[:, None] * INNER + column + tl.arange(0, COLUMNS)[None, :]
        tl.store(to, worked.to(out.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _down(  # noqa: PLR0917
    x, w, order, weights, experts, firsts, stops, out,
    C: tl.constexpr, INNER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out[pair of r] = weight_r x_r down^T for the rows r of a tile and some columns."""
    per_tile = C // COLUMNS
    tile = tl.program_id(0) // per_tile
    column = (tl.program_id(0) % per_tile) * COLUMNS
    expert = tl.load(experts + tile)
    if expert >= 0:
        first = tl.load(firsts + tile)
        rows = first + tl.arange(0, ROWS)
        inside = rows < tl.load(stops + expert)
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for k in range(0, INNER, DEPTH):  # rows of the next expert may come along; they are not written
            total = tl.dot(x.load([first, k]), w.load([expert * C + column, k]).T, total)
        pair = tl.load(order + rows, mask=inside, other=0)
        weight = tl.load(weights + pair, mask=inside, other=0.0)
        to = out + pair.to(tl.int64)[:, None] * C + column + tl.arange(0, COLUMNS)[None, :]
        tl.store(to, (total * weight[:, None]).to(out.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _add_up(  # noqa: PLR0917
    parts, more, out, C: tl.constexpr, CHOSEN: tl.constexpr, MORE: tl.constexpr, COLUMNS: tl.constexpr
):
    """out[t] = the sum of parts[t, :] in the order of their rank, and more[t]."""
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for rank in tl.static_range(CHOSEN):
        total += tl.load(parts + (token * CHOSEN + rank) * C + column).to(tl.float32)
    if MORE:
        total += tl.load(more + token * C + column).to(tl.float32)
    tl.store(out + token * C + column, total.to(out.dtype.element_ty))


@dataclass(frozen=True)
class Tiles:
    """Which expert each tile is of (-1: none, the number of tiles is only bounded), and its first row."""

    experts: Tensor
    firsts: Tensor
    stops: Tensor


def fit(stack: Tensor) -> bool:
    """Whether the kernels take these gates and ups [experts, 2 inner, C]: Hopper, and sides that tiles divide."""
    experts, both, width = stack.shape
    sides = math.gcd(both // 2, LEAST) == math.gcd(width, LEAST) == LEAST and _power_of_two(experts)
    return sides and torch.cuda.get_device_capability(stack.device) >= (9, 0)


def _power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def chooses(router: Router) -> bool:
    """Whether `choose` knows this router's way of scoring."""
    return router.scoring == "sigmoid" and all(map(_power_of_two, (router.experts, router.groups, router.chosen)))


def choose(logits: Tensor, bias: Tensor | None, router: Router) -> tuple[Tensor, Tensor]:
    """experts.route in one kernel: experts [T, chosen] as int16 and their weights, from logits [T, experts] in fp32.

    torch's top-k, three times, takes ten times as long.
    """
    experts = logits.new_empty(len(logits), router.chosen, dtype=torch.int16)
    weights = logits.new_empty(len(logits), router.chosen)
    _choose[(len(logits),)](
        logits, bias, experts, weights, router.scale, router.experts, router.groups, router.chosen_groups,
        router.chosen, bias is not None, router.normalise, num_warps=1,
    )  # fmt: skip
    return experts, weights


def tiles_of(stops: Tensor, rows: int) -> Tiles:
    """Tiles for rows that end at `stops` [experts]; nothing waits for the host to learn how many there are."""
    tiles = triton.cdiv(rows, ROWS) + len(stops)
    experts, firsts = stops.new_empty(tiles), stops.new_empty(tiles)
    _cut[(triton.cdiv(tiles, 32),)](stops, experts, firsts, tiles, len(stops), ROWS, 32, num_warps=4)
    return Tiles(experts, firsts, stops)


def gate_up(x: Tensor, stack: Tensor, order: Tensor, tiles: Tiles) -> Tensor:
    """SwiGLU [R, inner] of the sorted pairs, from x [T, C] and stack [experts, 2 inner, C]."""
    _, both, width = stack.shape
    inner, columns, depth = both // 2, math.gcd(both // 2, 128), math.gcd(width, 64)
    out = x.new_empty(len(order), inner)
    _gate_up[(len(tiles.experts) * (inner // columns),)](
        x, _described(stack, columns, depth), order, tiles.experts, tiles.firsts, tiles.stops, out,
        width, inner, len(order) // len(x), ROWS, columns, depth, num_warps=8, num_stages=4,
    )  # fmt: skip
    return out


def down(x: Tensor, stack: Tensor, order: Tensor, weights: Tensor, tiles: Tiles) -> Tensor:
    """Weighted results [T, chosen, C] of the sorted pairs x [R, inner], from stack [experts, C, inner]."""
    _, width, inner = stack.shape
    columns, depth = math.gcd(width, 128), math.gcd(inner, 64)
    out = x.new_empty(*weights.shape, width)
    _down[(len(tiles.experts) * (width // columns),)](
        _described(x, ROWS, depth), _described(stack, columns, depth), order, weights,
        tiles.experts, tiles.firsts, tiles.stops, out,
        width, inner, ROWS, columns, depth, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out


def add_up(parts: Tensor, more: Tensor | None) -> Tensor:
    """The sum [T, C] of parts [T, chosen, C], and of `more` [T, C]."""
    tokens, chosen, width = parts.shape
    out = parts.new_empty(tokens, width)
    columns = math.gcd(width, 2048)
    _add_up[(tokens, width // columns)](parts, more, out, width, chosen, more is not None, columns, num_warps=4)
    return out


def _described(matrix: Tensor, rows: int, columns: int) -> Any:
    """A matrix, or a stack of them as one, for the copy engine to read in boxes of rows by columns."""
    return TensorDescriptor.from_tensor(matrix.view(-1, matrix.shape[-1]), [rows, columns])
