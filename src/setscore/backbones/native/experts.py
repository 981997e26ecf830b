"""A mixture of experts: the router of each family, and the experts' work without padding.

Sources: LLaDA2MoeGate and LLaDA2MoeSparseMoeBlock of modeling_llada2_moe.py (sigmoid, groups, bias, scale, one shared
expert); LLaDAMoESparseMoeBlock of modeling_lladamoe.py (softmax over all experts, weights not normalised).
"""

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from setscore.backbones.native.architecture import Router
from setscore.backbones.native.operations import PLAIN


def route(logits: Tensor, bias: Tensor | None, router: Router) -> tuple[Tensor, Tensor]:
    """The experts [T, chosen] of each token and their weights (fp32), from router logits [T, experts]."""
    logits = logits.float()
    scores = logits.sigmoid() if router.scoring == "sigmoid" else logits.softmax(dim=-1)
    ranked = scores if bias is None else scores + bias
    if router.groups > 1:
        grouped = ranked.view(len(ranked), router.groups, -1)
        best = grouped.topk(2, dim=-1).values.sum(dim=-1)  # [T, groups]
        kept = torch.zeros_like(best, dtype=torch.bool)
        kept.scatter_(1, best.topk(router.chosen_groups, dim=-1).indices, value=True)
        ranked = grouped.masked_fill(~kept[..., None], -torch.inf).flatten(1)
    experts = ranked.topk(router.chosen, dim=-1).indices
    weights = scores.gather(1, experts)
    if router.normalise:
        weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
    return experts, weights * router.scale


class Mlp(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x)), gate and up as one matrix."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.operations = PLAIN
        self.gate_up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.operations.swiglu(self.gate_up(x)))  # type: ignore[no-any-return]


@functools.cache
def _kernels() -> Any:
    """The module kernels.py, or None where there is no Triton (it comes with torch for CUDA) or an old one."""
    try:
        return importlib.import_module("setscore.backbones.native.kernels")
    except ImportError:
        return None


@dataclass(frozen=True)
class Choice:
    """Who works for whom. A pair is a token and one of its experts; there are R = T * chosen of them.

    order    [R] the pair, token * chosen + rank, at each place when they are sorted by expert
    stops    [experts] int32: where each expert's pairs end in that order
    weights  [T, chosen] fp32
    """

    order: Tensor
    stops: Tensor
    weights: Tensor

    def places(self) -> Tensor:
        """Where each pair [T, chosen] stands in the order."""
        places = torch.empty_like(self.order)
        places[self.order] = torch.arange(len(self.order), device=self.order.device)
        return places.view_as(self.weights)


class Experts(nn.Module):
    """Routed experts, and the shared one where there is one: x [T, C] to [T, C].

    Three ways, the first that fits: kernels of our own, torch's grouped product, one expert after the other. None adds
    up in an order that varies, so results repeat.
    """

    def __init__(self, width: int, router: Router) -> None:
        super().__init__()
        self.operations = PLAIN
        self.router = router
        self.gate = nn.Parameter(torch.empty(router.experts, width))
        self.bias = nn.Parameter(torch.empty(router.experts, dtype=torch.float32)) if router.bias else None
        self.gate_up = nn.Parameter(torch.empty(router.experts, 2 * router.width, width))
        self.down = nn.Parameter(torch.empty(router.experts, width, router.width))
        self.shared = Mlp(width, router.shared_width) if router.shared_width else None

    def forward(self, x: Tensor) -> Tensor:
        stacked = isinstance(self.gate_up, nn.Parameter)  # quantised experts are modules of their own
        if not stacked or not x.is_cuda or x.dtype != torch.bfloat16:
            return self.one_by_one(x)
        kernels = _kernels()
        if kernels is not None and kernels.fit(self.gate_up):
            return self.fused(x, kernels)
        return self.grouped(x) if hasattr(functional, "grouped_mm") else self.one_by_one(x)

    def choose(self, x: Tensor, kernels: Any = None) -> Choice:
        """The router's choice, by a kernel of ours where it fits."""
        chooses = kernels is not None and kernels.chooses(self.router)
        experts, weights = (kernels.choose if chooses else route)(self.logits(x), self.bias, self.router)
        numbers, order = experts.flatten().to(torch.int16).sort(stable=True)
        wanted = torch.arange(self.router.experts, dtype=torch.int16, device=x.device)
        return Choice(order, torch.searchsorted(numbers, wanted, right=True, out_int32=True), weights)

    def logits(self, x: Tensor) -> Tensor:
        """Router logits [T, experts].

        Products of bf16 numbers are exact in fp32 and matrix units add them up in fp32, so on a GPU full precision
        needs no fp32 factors.
        """
        if self.router.full_precision and x.is_cuda and x.dtype == self.gate.dtype == torch.bfloat16:
            return torch.mm(x, self.gate.T, out_dtype=torch.float32)
        dtype = torch.float32 if self.router.full_precision else x.dtype
        return functional.linear(x.to(dtype), self.gate.to(dtype))

    def fused(self, x: Tensor, kernels: Any) -> Tensor:
        """The gather and SwiGLU inside the first product, the weights inside the second, one sum at the end."""
        choice = self.choose(x, kernels)
        tiles = kernels.tiles_of(choice.stops, len(choice.order))
        inner = kernels.gate_up(x, self.gate_up, choice.order, tiles)
        parts = kernels.down(inner, self.down, choice.order, choice.weights, tiles)
        mixed: Tensor = kernels.add_up(parts, None if self.shared is None else self.shared(x))
        return mixed

    def grouped(self, x: Tensor) -> Tensor:
        """One product for all experts."""
        choice = self.choose(x)
        rows = x[choice.order // self.router.chosen]
        both = functional.grouped_mm(rows, self.gate_up.transpose(1, 2), offs=choice.stops)
        worked = functional.grouped_mm(self.operations.swiglu(both), self.down.transpose(1, 2), offs=choice.stops)
        return self._combined(x, worked, choice)

    def one_by_one(self, x: Tensor) -> Tensor:
        """One product for each expert that has something to do."""
        choice = self.choose(x)
        rows = x[choice.order // self.router.chosen]
        parts, begin = [], 0
        for expert, end in enumerate(choice.stops.tolist()):
            if end > begin:
                inner = self.operations.swiglu(self._expert("gate_up", expert, rows[begin:end]))
                parts.append(self._expert("down", expert, inner))
            begin = end
        return self._combined(x, torch.cat(parts), choice)

    def _combined(self, x: Tensor, worked: Tensor, choice: Choice) -> Tensor:
        mixed = self.operations.combine(worked, choice.places(), choice.weights)
        return mixed if self.shared is None else mixed + self.shared(x)

    def _expert(self, matrix: str, number: int, x: Tensor) -> Tensor:
        weight = getattr(self, matrix)[number]
        return weight(x) if isinstance(weight, nn.Module) else functional.linear(x, weight)
