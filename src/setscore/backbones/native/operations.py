"""The element-wise parts of the transformer, as pure functions so that they can be compiled one by one.

A matrix product uses the whole GPU, but each of these reads and writes memory several times unless it is fused.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., C] scaled to a root mean square of 1, times weight [C]; the mean is taken in fp32."""
    return functional.rms_norm(x, (x.shape[-1],), weight, eps)


def add_norm(x: Tensor, more: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x + more, and that normed."""
    total = x + more
    return total, rms_norm(total, weight, eps)


def rotation(positions: Tensor, rotary: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin [T, 1, rotary / 2] in fp32 of the angle that each position turns each pair of dimensions by."""
    exponents = torch.arange(0, rotary, 2, device=positions.device, dtype=torch.float32) / rotary
    angles = positions.to(torch.float32)[:, None] / theta**exponents
    return angles.cos()[:, None], angles.sin()[:, None]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions for x [T, heads, head_width]: dimension i is paired with i + rotary / 2; the rest stays."""
    half = cos.shape[-1]
    first, second = x[..., :half].float(), x[..., half : 2 * half].float()
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)
    return turned if 2 * half == x.shape[-1] else torch.cat((turned, x[..., 2 * half :]), dim=-1)


def swiglu(both: Tensor) -> Tensor:
    """silu(gate) * up for both = [gate, up] [T, 2 I]."""
    gate, up = both.chunk(2, dim=-1)
    return functional.silu(gate) * up


def combine(worked: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """The experts' results [R, C] at each token's places [T, chosen], times their weights, added up in fp32."""
    return (worked[places] * weights[..., None]).sum(dim=1).to(worked.dtype)


def merge(first: Tensor, first_lse: Tensor, second: Tensor, second_lse: Tensor) -> Tensor:
    """Attention over two disjoint sets of keys as attention over their union.

    first, second [T, heads, head_width] with the log-sum-exp of their scores [T, heads]. The union is exactly
    (1 - w) first + w second with w = sigmoid(lse_2 - lse_1).
    """
    weight = torch.sigmoid(second_lse - first_lse)[..., None]
    return torch.lerp(first.float(), second.float(), weight).to(first.dtype)


def to_fp8(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [R, C] as e4m3, and the fp32 scale [R, 1] that gives it back."""
    largest = torch.finfo(torch.float8_e4m3fn).max
    scale = x.abs().amax(dim=-1, keepdim=True).float().clamp(min=1e-12) / largest
    return (x.float() / scale).clamp(-largest, largest).to(torch.float8_e4m3fn), scale


@dataclass(frozen=True)
class Operations:
    """The functions that a model uses: as they are, or compiled."""

    rms_norm: Callable[[Tensor, Tensor, float], Tensor] = rms_norm
    add_norm: Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]] = add_norm
    rotate: Callable[[Tensor, Tensor, Tensor], Tensor] = rotate
    swiglu: Callable[[Tensor], Tensor] = swiglu
    combine: Callable[[Tensor, Tensor, Tensor], Tensor] = combine
    merge: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = merge
    to_fp8: Callable[[Tensor], tuple[Tensor, Tensor]] = to_fp8


PLAIN = Operations()


@functools.cache
def compiled() -> Operations:
    """Each function fused by torch.compile. It sees by itself that lengths vary and widths do not."""
    return Operations(**{field.name: torch.compile(getattr(PLAIN, field.name)) for field in fields(Operations)})
