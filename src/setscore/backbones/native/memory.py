"""How much memory a checkpoint takes, and whether it is there."""

import os
from pathlib import Path

import torch

from setscore.backbones.asking import peak_memory
from setscore.backbones.native.architecture import Architecture
from setscore.errors import BackboneError

# Bytes of a weight in a linear layer, with the scales of quantised ones. Embedding, head and norms stay in bf16.
LINEAR_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.625}
SMALLER = ("bf16", "int8", "int4")  # what to suggest, the most precise first
GB = 1e9


def device_of(wanted: str) -> torch.device:
    """The device of an option; "auto" is a GPU if there is one."""
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise BackboneError(f"unknown device {wanted!r}; write auto, cpu, cuda or cuda:1.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        why = "this torch was built without CUDA" if torch.version.cuda is None else "there is no GPU, or no driver"
        raise BackboneError(f"device {wanted!r} was asked for, but {why}. Use device='cpu', or install torch for CUDA.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise BackboneError(f"device {wanted!r} was asked for, but there are {torch.cuda.device_count()} GPUs.")
    return device


def weight_bytes(architecture: Architecture, dtype: str) -> int:
    """Bytes of all weights."""
    other = architecture.vocabulary * architecture.width * (1 if architecture.tied else 2)
    linear = architecture.parameters() - other
    return int(linear * LINEAR_BYTES[dtype] + other * (4 if dtype == "fp32" else 2))


def pass_tokens(architecture: Architecture, device: torch.device) -> int:
    """Tokens of a pass that keep the matrix units busy; beyond it only memory grows.

    With 8 of 256 experts a token, 32768 tokens are 1024 for each expert.
    """
    if device.type != "cuda":
        return 2048
    return 16384 if architecture.router is None else 32768


def pass_bytes(architecture: Architecture, dtype: str, batch_tokens: int) -> int:
    """About what a pass over `batch_tokens` tokens needs beside the weights."""
    a = architecture
    inner = 3 * a.mlp_width
    if a.router is not None:  # a token's states, once for each of its experts, before and after their work
        inner = max(inner, a.router.chosen * (2 * a.width + 3 * a.router.width) + 3 * a.router.shared_width)
    numbers = inner + 6 * a.width + 3 * a.heads * a.head_width
    return int(batch_tokens * numbers * (4 if dtype == "fp32" else 2))


def used_bytes(model: torch.nn.Module) -> int:
    """Bytes that a model's weights take; quantised ones are looked into."""

    def size(tensor: torch.Tensor) -> int:
        if hasattr(tensor, "__tensor_flatten__"):
            names, _ = tensor.__tensor_flatten__()
            return sum(size(getattr(tensor, name)) for name in names)
        return tensor.numel() * tensor.element_size()

    return sum(size(parameter.data) for parameter in model.parameters())


def most_memory(device: torch.device) -> int:
    """The most bytes that were in use so far: of this program on a GPU, of the process elsewhere."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_memory()


def free_bytes(device: torch.device) -> int:
    """Memory that can still be had on a device."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_room(name: str, architecture: Architecture, dtype: str, batch_tokens: int, device: torch.device) -> None:
    """Too little memory is an error before anything is loaded; it says how much is needed and what would fit."""
    free = free_bytes(device)
    needs = {
        kind: weight_bytes(architecture, kind) + pass_bytes(architecture, kind, batch_tokens)
        for kind in dict.fromkeys((dtype, *SMALLER))
    }
    if needs[dtype] <= free:
        return
    fitting = [kind for kind in SMALLER if needs[kind] <= min(free, needs[dtype])]
    hint = (
        f"dtype={fitting[0]!r} fits with {needs[fitting[0]] / GB:.1f} GB"
        if fitting
        else f"even dtype='int4' needs {needs['int4'] / GB:.1f} GB; take a smaller model or a larger device"
    )
    raise BackboneError(
        f"{name} needs {needs[dtype] / GB:.1f} GB in {dtype}, and {device} has {free / GB:.1f} GB free: {hint}."
    )
