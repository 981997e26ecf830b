"""Public checkpoints into our transformer: strict about names and shapes, one tensor in host memory at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from setscore.backbones.config import Config
from setscore.backbones.native.architecture import Architecture
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.names import Names, Piece, Pieces, expected
from setscore.errors import BackboneError
from setscore.storage import one_line

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
NOT_WEIGHTS = ("rotary_emb.inv_freq",)  # buffers that old checkpoints carry and that are computed here

Finish = Callable[[Transformer, str], None]  # called with the model and the name of a parameter that is complete


def weight_files(folder: Path, *, allow_pickle: bool = False) -> list[Path]:
    """The files with a checkpoint's weights: every shard of the index, or the single file."""
    if (folder / INDEX).is_file():
        shards = _shards(Config.read(folder / INDEX, "checkpoint"))
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


def _shards(index: Config) -> set[str]:
    """The files that the index names: safetensors beside it. A name is data, and grants neither a path nor a pickle."""
    weight_map = index.section("weight_map")
    for tensor, name in weight_map.items():
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise weight_map.wrong(tensor, "the name of a .safetensors file in the same folder")
    if not weight_map:
        raise index.wrong("weight_map", "an object that names the file of each tensor")
    return set(weight_map.values())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A mapping-like view of a weight file: `keys()` and `get_tensor(name)`."""
    if path.suffix != ".safetensors":
        yield _Pickle(path)
        return
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> BackboneError:
    why = one_line(error) or type(error).__name__
    return BackboneError(f"{path} is truncated or damaged ({why}). Delete it and get it again.")


class _Pickle:
    """A state dict with the interface of a safetensors file."""

    def __init__(self, path: Path) -> None:
        try:
            state = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
        except Exception as error:  # of many kinds
            raise _damaged(path, error) from error
        if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
            raise BackboneError(f"{path} holds something else than tensors by name. Convert it to safetensors.")
        self._state: dict[str, Tensor] = state

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
