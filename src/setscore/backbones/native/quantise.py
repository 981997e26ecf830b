"""Weights in fewer bits, made as each matrix arrives so that the full-precision model is never in memory as a whole.

int8 and int4 are torchao's weight-only kinds (extra quant). On the CPU int4 uses torch's own kernel, because torchao
offers it there as a prototype only. fp8 rounds weights per row and activations per token to e4m3 and multiplies them on
the tensor cores of Hopper GPUs. Embedding, head, norms and routers stay as they are.
"""

import importlib
from typing import Any

import torch
from torch import Tensor, nn

from setscore.backbones.native.experts import Experts
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.operations import PLAIN
from setscore.errors import BackboneError, MissingExtraError

GROUP = 32  # weights that share a scale in int4


class Fp8Linear(nn.Module):
    """x W^T + b with both factors in e4m3: a scale per token of x and per row of W."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.operations = PLAIN
        weight, scale = PLAIN.to_fp8(linear.weight.detach())
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.scale = nn.Parameter(scale.T.contiguous(), requires_grad=False)
        self.bias = linear.bias  # may still be on its way

    def forward(self, x: Tensor) -> Tensor:
        rounded, scale = self.operations.to_fp8(x)
        out = torch._scaled_mm(
            rounded, self.weight.T, scale_a=scale, scale_b=self.scale, out_dtype=torch.bfloat16, use_fast_accum=True
        )
        return out if self.bias is None else out + self.bias


class Int4Linear(nn.Module):
    """x W^T + b with W in 4 bits on the CPU: each group of 32 weights of a row has its own scale and offset."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        numbers, scales = to_int4(linear.weight.detach().float())
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1)
        self.weight = nn.Parameter(packed, requires_grad=False)
        self.scales = nn.Parameter(scales.to(torch.bfloat16), requires_grad=False)
        self.bias = linear.bias  # may still be on its way

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x.contiguous(), self.weight, GROUP, self.scales)
        return out if self.bias is None else out + self.bias


def to_int4(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight [N, K] as n from 0 to 15, and (scale, offset) [K / GROUP, N, 2]; w is about (n - 8) scale + offset."""
    groups = weight.view(len(weight), -1, GROUP)
    low, high = groups.amin(dim=-1), groups.amax(dim=-1)
    scale = ((high - low) / 15).clamp(min=1e-8)
    numbers = ((groups - low[..., None]) / scale[..., None]).round().clamp(0, 15).to(torch.int32)
    return numbers.view_as(weight), torch.stack((scale, low + 8 * scale), dim=-1).transpose(0, 1).contiguous()


def check_dtype(dtype: str, device: torch.device, *, experts: bool) -> None:
    """Whether this machine can do a dtype, before anything is loaded."""
    if dtype == "fp8":
        if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 9):
            raise BackboneError(f"fp8 needs a GPU of the Hopper or Ada kind or newer, not {device}; use bf16 or int8.")
        if experts:
            raise BackboneError("fp8 is not offered for mixtures of experts; use bf16, int8 or int4.")
    if dtype == "int8" or (dtype == "int4" and device.type != "cpu"):
        try:
            importlib.import_module("torchao.quantization")
        except ImportError as error:
            raise MissingExtraError(f"dtype={dtype!r}", "quant") from error


class Quantiser:
    """Called by the loader for every complete parameter."""

    def __init__(self, dtype: str, device: torch.device) -> None:
        self.dtype, self.device = dtype, device

    def __call__(self, model: Transformer, parameter: str) -> None:
        home, _, name = parameter.rpartition(".")
        module = model.get_submodule(home)
        if isinstance(module, nn.Linear) and name == "weight":
            parent, _, own = home.rpartition(".")
            setattr(model.get_submodule(parent), own, self.quantised(module))
        elif isinstance(module, Experts) and name in ("gate_up", "down"):
            stack = getattr(module, name).detach()
            delattr(module, name)
            setattr(module, name, nn.ModuleList(self.quantised(_linear(matrix)) for matrix in stack))

    def quantised(self, linear: nn.Linear) -> nn.Module:
        if self.dtype == "fp8":
            return Fp8Linear(linear)
        if self.dtype == "int4" and linear.in_features % GROUP:
            return linear  # no public checkpoint has such a matrix
        if self.dtype == "int4" and self.device.type == "cpu":
            return Int4Linear(linear)
        quantization: Any = importlib.import_module("torchao.quantization")
        quantization.quantize_(linear, self._config(quantization))
        return linear

    def _config(self, quantization: Any) -> Any:
        if self.dtype == "int8":
            return quantization.Int8WeightOnlyConfig()
        return quantization.Int4WeightOnlyConfig(group_size=GROUP, int4_packing_format="tile_packed_to_4d")


def _linear(weight: Tensor) -> nn.Linear:
    with torch.device("meta"):
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight = nn.Parameter(weight.clone(), requires_grad=False)
    return linear
