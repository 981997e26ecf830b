"""The weights of a causal model as they lie in its folder: quantised ones of the language model, and what it learned.

weights.safetensors  tensors by the names of model.py, matrices as bytes [rows, bytes of a row] in GGUF's blocks; the
                     rows of yes and no of the output as `yes_no`; what the shapes do not tell is in its metadata
learned.safetensors  corrections of low rank, W + scale B A (LoRA, Hu et al., 2021), and the head
"""

import json
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from setscore.errors import BackboneError

WEIGHTS, LEARNED, TOKENIZER = "weights.safetensors", "learned.safetensors", "tokenizer.json"
BLOCK = 256  # weights that share a scale of scales
Q4, Q6 = "Q4_K", "Q6_K"
BYTES = {Q4: 144, Q6: 210}  # of a block


class Numbers(NamedTuple):
    """What `model.build` takes beside the tensors."""

    heads: int
    shared: int
    base: float


def read(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a file and its metadata."""
    try:
        with safe_open(str(path), "pt", device=device) as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise BackboneError(f"{path} cannot be read: {error}") from error


def unpack(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], Numbers]:
    """Float tensors for `model.build`, and its numbers."""
    packed, about = read(path, device)
    try:
        state = {name: restored(packed[name], kind) for name, kind in json.loads(about["kinds"]).items()}
        numbers = Numbers(int(about["heads"]), int(about["shared"]), float(about["base"]))
        yes, no = state.pop("yes_no")
    except (KeyError, ValueError, RuntimeError) as error:
        raise BackboneError(f"{path} is not what recipes.tutor.weights writes: {error}") from error
    for name in [name for name in state if name.endswith((".q.weight", ".q.bias"))]:
        parts = [state.pop(name.replace(".q.", f".{each}.")) for each in "qkv"]
        state[name.replace(".q.", ".qkv.")] = torch.cat(parts)
    return state | {"head.weight": (yes - no)[None], "head.bias": torch.zeros(1, device=yes.device)}, numbers


def corrected(state: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    """The weights with what was learned in them."""
    device = state["head.weight"].device
    learned, about = read(path, str(device))
    try:
        scale = float(about["scale"])
        for name, a in learned.items():
            if name.endswith(".a"):
                matrix = f"{name[:-2]}.weight"
                state[matrix] = state[matrix] + scale * learned[f"{name[:-2]}.b"].float() @ a.float()
            elif name.startswith("head."):
                state[name] = a.float().reshape(state[name].shape)
    except (KeyError, ValueError, RuntimeError) as error:
        raise BackboneError(f"{path} does not fit the weights beside it: {error}") from error
    return state


def weights_in(path: Path) -> int:
    """How many numbers there are, without reading them."""
    try:
        with safe_open(str(path), "pt") as file:
            kinds = json.loads((file.metadata() or {})["kinds"])
            sizes = {name: torch.Size(file.get_slice(name).get_shape()).numel() for name in kinds}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise BackboneError(f"{path} cannot be read: {error}") from error
    return sum(size * BLOCK // BYTES[kinds[name]] if kinds[name] in BYTES else size for name, size in sizes.items())


def restored(data: Tensor, kind: str) -> Tensor:
    """Floats [..., weights] of bytes [..., bytes]."""
    if kind not in BYTES:
        return data.float()
    blocks = data.reshape(-1, BYTES[kind])
    values = four_bits(blocks) if kind == Q4 else six_bits(blocks)
    return values.reshape(*data.shape[:-1], -1)


def four_bits(blocks: Tensor) -> Tensor:
    """Q4_K: eight groups of 32 weights, each w = d * scale * q - least * offset; scales and offsets have six bits."""
    d, least = blocks[:, :4].contiguous().view(torch.float16).float().unbind(1)
    a, b, c = blocks[:, 4:16].reshape(-1, 3, 4).unbind(1)
    scales = torch.cat([a & 63, (c & 15) | ((a >> 6) << 4)], dim=1).float()
    offsets = torch.cat([b & 63, (c >> 4) | ((b >> 6) << 4)], dim=1).float()
    pairs = blocks[:, 16:].reshape(-1, 4, 1, 32)
    q = torch.cat([pairs & 15, pairs >> 4], dim=2).reshape(-1, 8, 32).float()
    return ((d[:, None] * scales)[..., None] * q - (least[:, None] * offsets)[..., None]).reshape(-1, BLOCK)


def six_bits(blocks: Tensor) -> Tensor:
    """Q6_K: sixteen groups of 16 weights, w = d * scale * (q - 32); four bits of q stand apart from the two upper."""
    low, high = blocks[:, :128].reshape(-1, 2, 1, 64), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
    d = blocks[:, 208:210].contiguous().view(torch.float16).float()
    lower = torch.cat([low & 15, low >> 4], dim=2).reshape(-1, 2, 4, 32)
    upper = torch.cat([(high >> shift) & 3 for shift in (0, 2, 4, 6)], dim=2)
    q = (lower | (upper << 4)).reshape(-1, 16, 16).float() - 32
    return ((d * scales)[..., None] * q).reshape(-1, BLOCK)
