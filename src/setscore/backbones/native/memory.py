"""How much memory a checkpoint takes, and whether it is there."""

import torch

from setscore.backbones.devices import free_bytes
from setscore.backbones.native.architecture import Architecture
from setscore.backbones.shelf import NoRoomError

# Bytes of a weight in a linear layer, with the scales of quantised ones. Embedding, head and norms stay in bf16.
LINEAR_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.625}
SMALLER = ("bf16", "int8", "int4")  # what to suggest, the most precise first
GB = 1e9


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


def needed_bytes(architecture: Architecture, dtype: str, batch_tokens: int) -> int:
    """About what the weights and a pass need together."""
    return weight_bytes(architecture, dtype) + pass_bytes(architecture, dtype, batch_tokens)


def check_room(name: str, architecture: Architecture, dtype: str, batch_tokens: int, device: torch.device) -> None:
    """Too little memory is an error before anything is loaded; it says how much is needed and what would fit."""
    free = free_bytes(device)
    needs = {kind: needed_bytes(architecture, kind, batch_tokens) for kind in dict.fromkeys((dtype, *SMALLER))}
    if needs[dtype] <= free:
        return
    fitting = [kind for kind in SMALLER if needs[kind] <= min(free, needs[dtype])]
    hint = (
        f"dtype={fitting[0]!r} fits with {needs[fitting[0]] / GB:.1f} GB"
        if fitting
        else f"even dtype='int4' needs {needs['int4'] / GB:.1f} GB; take a smaller model or a larger device"
    )
    raise NoRoomError(
        f"{name} needs {needs[dtype] / GB:.1f} GB in {dtype}, and {device} has {free / GB:.1f} GB free: {hint}."
    )
