"""Attention over groups of different lengths without padding, with the log-sum-exp that merging needs."""

import functools
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from setscore.backbones.native.layout import Part, Sight
from setscore.backbones.native.operations import PLAIN, Operations

SCORES = 2**26  # attention scores held at once where they are written out


def attend(q: Tensor, k: Tensor, v: Tensor, sight: Sight, operations: Operations = PLAIN) -> Tensor:
    """What each query takes from the keys it sees.

    q [Q, heads, head_width]; k, v [T, key_heads, head_width]; the result is like q.
    """
    own, own_lse = _part(q, k, v, sight.own, with_lse=sight.context is not None)
    if sight.context is None or own_lse is None:
        return own
    rows = sight.with_context
    other, other_lse = _part(q, k, v, sight.context, with_lse=True)
    if other_lse is None:
        raise AssertionError("attention was asked for its log-sum-exp")
    if rows is None:
        return operations.merge(own, own_lse, other, other_lse)
    return own.index_copy_(0, rows, operations.merge(own[rows], own_lse[rows], other, other_lse))


def _part(q: Tensor, k: Tensor, v: Tensor, part: Part, *, with_lse: bool) -> tuple[Tensor, Tensor | None]:
    q = q if part.queries is None else q[part.queries]
    if part.keys is not None:
        k, v = k[part.keys], v[part.keys]
    if flash_fits(q):
        return _flash(q, k, v, part, with_lse=with_lse)
    return _by_length(q, k, v, part, with_lse=with_lse)


@functools.cache
def _has_flash() -> bool:
    try:
        import torch.nn.attention.varlen  # came with torch 2.10
    except ImportError:
        return False
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)


def flash_fits(q: Tensor) -> bool:
    """Whether the kernel for ragged batches takes these queries: half precision on a GPU."""
    half = q.dtype in (torch.bfloat16, torch.float16)
    return q.is_cuda and half and q.shape[-1] % 8 == 0 and q.shape[-1] <= 256 and _has_flash()


@functools.cache
def _takes_groups() -> bool:
    """Whether grouped keys have to be announced; before that they were taken silently."""
    from torch.nn.attention.varlen import varlen_attn

    return "enable_gqa" in inspect.signature(varlen_attn).parameters


@functools.cache
def _heads_first(device: torch.device) -> bool:
    """Whether the kernel's log-sum-exp is [heads, Q]: torch documents [Q, heads], but has given the other."""
    from torch.nn.attention.varlen import AuxRequest, varlen_attn

    x = torch.zeros(3, 2, 64, dtype=torch.bfloat16, device=device)
    starts = torch.tensor([0, 3], dtype=torch.int32, device=device)
    _, lse = varlen_attn(x, x, x, starts, starts, 3, 3, return_aux=AuxRequest(lse=True))
    return bool(lse.shape[0] == 2)


def _flash(q: Tensor, k: Tensor, v: Tensor, part: Part, *, with_lse: bool) -> tuple[Tensor, Tensor | None]:
    from torch.nn.attention.varlen import AuxRequest, varlen_attn

    grouped: dict[str, Any] = {"enable_gqa": True} if q.shape[1] != k.shape[1] and _takes_groups() else {}
    found = varlen_attn(
        q.contiguous(),
        k.contiguous(),
        v.contiguous(),
        part.query_starts,
        part.key_starts,
        max(part.query_lengths),
        max(part.key_lengths),
        return_aux=AuxRequest(lse=True) if with_lse else None,
        **grouped,
    )
    if isinstance(found, tuple):
        out, lse = found
        return out, lse.transpose(0, 1) if _heads_first(q.device) else lse
    return found, None


def _by_length(q: Tensor, k: Tensor, v: Tensor, part: Part, *, with_lse: bool) -> tuple[Tensor, Tensor | None]:
    """Groups of the same lengths together, so that nothing is padded."""
    out = torch.empty_like(q)
    lse = q.new_empty(q.shape[:2], dtype=torch.float32) if with_lse else None
    for query_rows, key_rows in _equal_lengths(part, q.device):
        keys, values = (x[key_rows].transpose(1, 2) for x in (k, v))  # [n, key_heads, lk, head_width]
        queries = q[query_rows].transpose(1, 2)
        if lse is None:
            mixed = functional.scaled_dot_product_attention(queries, keys, values, enable_gqa=q.shape[1] != k.shape[1])
        else:
            mixed, sums = _written_out(queries, keys, values)
            lse[query_rows] = sums.transpose(1, 2)
        out[query_rows] = mixed.transpose(1, 2)
    return out, lse


def _equal_lengths(part: Part, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of queries [n, lq] and of keys [n, lk] for the groups of each pair of lengths."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, lengths in enumerate(zip(part.query_lengths, part.key_lengths, strict=True)):
        groups.setdefault(lengths, []).append(number)
    for (queries, keys), numbers in groups.items():
        chosen = torch.tensor(numbers, device=device)
        yield (
            part.query_starts[chosen].long()[:, None] + torch.arange(queries, device=device),
            part.key_starts[chosen].long()[:, None] + torch.arange(keys, device=device),
        )


def _written_out(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of q [n, heads, lq, head_width] and the log-sum-exp of its scores, in fp32, some queries at a time."""
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, dim=1).float() if repeats > 1 else x.float() for x in (k, v))
    step = max(1, SCORES // (q.shape[0] * q.shape[1] * k.shape[2]))
    mixed, sums = [], []
    for queries in torch.split(q, step, dim=2):
        scores = queries.float() @ k.transpose(2, 3) * q.shape[-1] ** -0.5
        lse = scores.logsumexp(dim=-1)
        mixed.append((scores - lse[..., None]).exp_() @ v)
        sums.append(lse)
    return torch.cat(mixed, dim=2).to(q.dtype), torch.cat(sums, dim=2)
