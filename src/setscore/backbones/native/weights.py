"""Public checkpoints into our transformer: strict about names and shapes, one tensor in host memory at a time."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from setscore.backbones.native.architecture import Architecture
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.names import Names, Piece, Pieces, expected
from setscore.errors import BackboneError

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
NOT_WEIGHTS = ("rotary_emb.inv_freq",)  # buffers that old checkpoints carry and that are computed here

Finish = Callable[[Transformer, str], None]  # called with the model and the name of a parameter that is complete


def weight_files(folder: Path, *, allow_pickle: bool = False) -> list[Path]:
    """The files with a checkpoint's weights: every shard of the index, or the single file."""
    if (folder / INDEX).is_file():
        try:
            shards = set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError) as error:
            raise BackboneError(f"{folder / INDEX} cannot be read: {error!r}. Get the file again.") from error
        absent = sorted(name for name in shards if not (folder / name).is_file())
        if absent:
            raise BackboneError(f"{len(absent)} of {len(shards)} weight files are not in {folder}: {absent[0]} first.")
        return sorted(folder / name for name in shards)
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    pickles = sorted([*folder.glob("pytorch_model*.bin"), *folder.glob("*.pt")])
    if pickles and allow_pickle:
        return pickles
    if pickles:
        raise BackboneError(
            f"{folder} holds weights as pickle ({pickles[0].name}), which can run code when opened. Convert them to"
            " safetensors, or, if you trust their author, say allow='pickle'."
        )
    raise BackboneError(f"{folder} holds no weights: neither {INDEX} nor {SINGLE} is there.")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A mapping-like view of a weight file: `keys()` and `get_tensor(name)`."""
    if path.suffix != ".safetensors":
        yield _Pickle(torch.load(path, map_location="cpu", mmap=True, weights_only=True))
        return
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError as error:
        raise BackboneError(f"{path} is truncated or damaged ({error}). Delete it and get it again.") from error


class _Pickle:
    """A state dict with the interface of a safetensors file."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        self._state = state

    def keys(self) -> list[str]:
        return list(self._state)

    def get_tensor(self, name: str) -> Tensor:
        return self._state[name]


def check_names(present: dict[str, Path], pieces: Pieces) -> None:
    """A missing or a surplus tensor is an error that names it."""
    missing = sorted(pieces.keys() - present.keys())
    surplus = sorted(present.keys() - pieces.keys())
    if missing or surplus:
        told = [
            f"{len(names)} {what}, such as {', '.join(names[:3])}"
            for what, names in (("missing", missing), ("not known", surplus))
            if names
        ]
        raise BackboneError(
            f"the checkpoint does not fit its config.json: tensors {'; '.join(told)}. Get the whole folder again, or"
            " check that it is of the family it says."
        )


def load_weights(
    files: list[Path],
    architecture: Architecture,
    names: Names,
    *,
    device: torch.device | str,
    dtype: torch.dtype,
    finish: Finish | None = None,
) -> Transformer:
    """The transformer with a checkpoint's weights on `device`, read file by file.

    The model begins without memory; a parameter gets its own when its first rows come. `finish` is called as soon as
    one is complete, so that quantising never needs room for the whole model in full precision.
    """
    with torch.device("meta"):
        model = Transformer(architecture)
    pieces = expected(names, architecture)
    present: dict[str, Path] = {}
    for path in files:
        with _opened(path) as file:
            present |= {name: path for name in file.keys() if not name.endswith(NOT_WEIGHTS)}  # noqa: SIM118
    check_names(present, pieces)
    open_pieces: dict[str, int] = {}
    for name in pieces:
        for piece in pieces[name]:
            open_pieces[piece.parameter] = open_pieces.get(piece.parameter, 0) + 1
    for path in files:
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118
                if present.get(name) != path:
                    continue
                tensor = file.get_tensor(name)
                for piece in pieces[name]:
                    _place(model, name, tensor, piece, device=device, dtype=dtype)
                    open_pieces[piece.parameter] -= 1
                    if open_pieces[piece.parameter] == 0 and finish is not None:
                        finish(model, piece.parameter)
    return model.eval()


def _home(model: nn.Module, parameter: str) -> tuple[nn.Module, str]:
    module, _, name = parameter.rpartition(".")
    return model.get_submodule(module), name


@torch.no_grad()
def _place(
    model: Transformer, name: str, tensor: Tensor, piece: Piece, *, device: torch.device | str, dtype: torch.dtype
) -> None:
    if tuple(tensor.shape) != piece.shape:
        raise BackboneError(f"the tensor {name} has the shape {list(tensor.shape)}, expected {list(piece.shape)}.")
    if not tensor.is_floating_point() or tensor.element_size() < 2:
        raise BackboneError(f"the tensor {name} is {tensor.dtype}; only checkpoints in fp32, bf16 or fp16 are read.")
    module, own = _home(model, piece.parameter)
    parameter = getattr(module, own)
    if parameter.is_meta:
        # A router's bias decides who is chosen by small differences: it stays in fp32.
        kept = torch.float32 if piece.parameter.endswith("mlp.bias") else dtype
        empty = torch.empty(parameter.shape, dtype=kept, device=device)
        parameter = nn.Parameter(empty, requires_grad=False)
        setattr(module, own, parameter)
    target = parameter if piece.expert is None else parameter[piece.expert]
    target[slice(*piece.target)].copy_(tensor[slice(*piece.source)])
