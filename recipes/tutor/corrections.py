"""What the tutor learns: corrections of low rank to the matrices of a language model whose own weights stay.

    y = W x + b + SCALE B A x        A [RANK, inputs], B [outputs, RANK], B = 0 at the start

(LoRA, Hu et al., 2021), and the head: a hundredth of the numbers, small enough to keep.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from setscore.backbones.causal.model import CausalModel

RANK, SCALE = 16, 2.0


class Corrected(nn.Module):
    """A linear layer whose own weights stay as they are."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        device, bound = linear.weight.device, 1 / math.sqrt(linear.in_features)
        self.linear = linear
        self.a = nn.Parameter(torch.empty(RANK, linear.in_features, device=device).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.zeros(linear.out_features, RANK, device=device))

    def forward(self, x: Tensor) -> Tensor:
        corrected = functional.linear(functional.linear(x, self.a), self.b)
        return self.linear(x) + SCALE * corrected  # type: ignore[no-any-return]


def correct(model: CausalModel) -> CausalModel:
    """The model with corrections of nothing yet; only they and the head are there to be learned."""
    model.requires_grad_(False)
    for layer in model.layers:
        for name, part in list(layer.named_children()):
            if isinstance(part, nn.Linear):
                setattr(layer, name, Corrected(part))
    model.head.requires_grad_(True)
    return model


def to_learn(model: CausalModel) -> dict[str, Tensor]:
    """Corrections and head, by their names."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def save(learned: Mapping[str, Tensor], path: Path) -> None:
    """In half precision; written beside and moved, so that there is never half a file."""
    save_file({name: value.detach().half().contiguous() for name, value in learned.items()}, path.with_suffix(".new"),
              metadata={"scale": str(SCALE)})  # fmt: skip
    path.with_suffix(".new").replace(path)
