"""Where torch computes: devices by name, and their memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from setscore.backbones.host import free_host_bytes, peak_memory
from setscore.backbones.shelf import NoRoomError
from setscore.errors import BackboneError


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


def device_name(device: torch.device) -> str:
    """One name for each device: "cuda" and "cuda:0" are often the same."""
    return f"cuda:{torch.cuda.current_device()}" if str(device) == "cuda" else str(device)


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
    return free_host_bytes()


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out; on the CPU torch has no class of its own for it."""
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))


@contextmanager
def no_room(name: str) -> Iterator[None]:
    """Memory that runs out while a model is loaded, as the error that lets others go."""
    free_memory()
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise NoRoomError(
            f"memory ran out while {name} was loaded. Free some, or use a smaller dtype (int8, int4)."
        ) from error


def free_memory() -> None:
    """Gives back what torch keeps for later."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
