"""A mixture of experts: the router of each family, and the experts' work without padding.

Sources: LLaDA2MoeGate and LLaDA2MoeSparseMoeBlock of modeling_llada2_moe.py (sigmoid, groups, bias, scale, one shared
expert); LLaDAMoESparseMoeBlock of modeling_lladamoe.py (softmax over all experts, weights not normalised).
"""

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


class Experts(nn.Module):
    """Routed experts, and the shared one where there is one."""

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
        dtype = torch.float32 if self.router.full_precision else x.dtype
        experts, weights = route(functional.linear(x.to(dtype), self.gate.to(dtype)), self.bias, self.router)
        mixed = self._mix(x, experts, weights).to(x.dtype)
        return mixed if self.shared is None else mixed + self.shared(x)

    def _mix(self, x: Tensor, experts: Tensor, weights: Tensor) -> Tensor:
        """Tokens sorted by expert, each expert's at once, then added up in fp32 [T, C] in the order of their rank.

        No `bincount`, which makes the GPU wait for the host, and no `index_add_` of results, whose sums vary there.
        """
        chosen = experts.flatten()
        order = chosen.argsort(stable=True)
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=x.device)
        counts = torch.zeros(self.router.experts, dtype=order.dtype, device=x.device)
        counts.index_add_(0, chosen, torch.ones_like(chosen))
        worked = self.work(x[order // self.router.chosen], counts)
        mixed = torch.zeros_like(x, dtype=torch.float32)
        for rank, place in enumerate(places.view_as(experts).unbind(1)):
            mixed += worked[place].float() * weights[:, rank, None]
        return mixed

    def work(self, x: Tensor, counts: Tensor) -> Tensor:
        """x [R, C] sorted by expert; counts [experts] says how many rows each one has."""
        stacked = isinstance(self.gate_up, nn.Parameter)
        if stacked and x.is_cuda and x.dtype == torch.bfloat16 and hasattr(functional, "grouped_mm"):
            return self.all_at_once(x, counts)
        return self.one_by_one(x, counts)

    def all_at_once(self, x: Tensor, counts: Tensor) -> Tensor:
        """One kernel for all experts."""
        stops = counts.cumsum(0).to(torch.int32)
        inner = self.operations.swiglu(functional.grouped_mm(x, self.gate_up.transpose(1, 2), offs=stops))
        return functional.grouped_mm(inner, self.down.transpose(1, 2), offs=stops)

    def one_by_one(self, x: Tensor, counts: Tensor) -> Tensor:
        parts = []
        for expert, rows in enumerate(torch.split(x, counts.tolist())):
            if len(rows):
                inner = self.operations.swiglu(self.expert("gate_up", expert, rows))
                parts.append(self.expert("down", expert, inner))
        return torch.cat(parts)

    def expert(self, matrix: str, number: int, x: Tensor) -> Tensor:
        """One expert's matrix applied to x; quantised experts are modules of their own."""
        weight = getattr(self, matrix)[number]
        return weight(x) if isinstance(weight, nn.Module) else functional.linear(x, weight)
