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
from torch.nn import functional
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS = 128  # of a tile
LEAST = 16  # the smallest side of a product on the matrix units


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
    _, both, width = stack.shape
    sides = math.gcd(both // 2, LEAST) == math.gcd(width, LEAST) == LEAST
    return sides and torch.cuda.get_device_capability(stack.device) >= (9, 0)


def tiles_of(stops: Tensor, rows: int) -> Tiles:
    """Tiles for rows that end at `stops` [experts]; nothing waits for the host to learn how many there are."""
    starts = functional.pad(stops[:-1], (1, 0))
    ends = ((stops - starts + ROWS - 1) // ROWS).cumsum(0)
    number = torch.arange(triton.cdiv(rows, ROWS) + len(stops), device=stops.device)
    expert = torch.searchsorted(ends, number, right=True)
    real = expert < len(stops)
    expert = torch.where(real, expert, 0)
    first = starts[expert] + (number - functional.pad(ends[:-1], (1, 0))[expert]) * ROWS
    return Tiles(torch.where(real, expert, -1).to(torch.int32), first.to(torch.int32), stops)


def gate_up(x: Tensor, stack: Tensor, order: Tensor, tiles: Tiles) -> Tensor:
    """SwiGLU [R, inner] of the sorted pairs, from x [T, C] and stack [experts, 2 inner, C]."""
    _, both, width = stack.shape
    inner, columns, depth = both // 2, math.gcd(both // 2, 128), math.gcd(width, 64)
    out = x.new_empty(len(order), inner)
    _gate_up[(len(tiles.experts) * (inner // columns),)](
        x, _described(stack, columns, depth), order, tiles.experts, tiles.firsts, tiles.stops, out,
        width, inner, len(order) // len(x), ROWS, columns, depth, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out


def down(x: Tensor, stack: Tensor, order: Tensor, weights: Tensor, tiles: Tiles) -> Tensor:
    """Weighted results [T, chosen, C] of the sorted pairs x [R, inner], from stack [experts, C, inner]."""
    _, width, inner = stack.shape
    columns, depth = math.gcd(width, 256), math.gcd(inner, 64)
    out = x.new_empty(*weights.shape, width)
    _down[(len(tiles.experts) * (width // columns),)](
        _described(x, ROWS, depth), _described(stack, columns, depth), order, weights,
        tiles.experts, tiles.firsts, tiles.stops, out,
        width, inner, ROWS, columns, depth, num_warps=8, num_stages=3,
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
