"""One training loop for the supervised baselines, with the paper's settings; it goes on after a kill.

A checkpoint is written every so many steps: weights as safetensors, the optimizer's state read back with
weights_only=True. The order of documents follows from seed and epoch alone, so a run that was stopped ends where one
that was not does.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setscore.baselines.base import library
from setscore.errors import DataFileError
from setscore.records import Progress

Loss = Callable[[Sequence[int]], Any]  # the loss of these rows, a tensor


@dataclass(frozen=True)
class Settings:
    """Table "Supervised training hyperparameters" of the paper. Biases and norms do not decay, as with its Trainer."""

    learning_rate: float = 2e-5
    weight_decay: float = 0.01
    batch_size: int = 16
    epochs: int = 2
    warmup: float = 0.06  # share of the steps in which the learning rate rises
    clip: float = 1.0
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    precision: str = "bf16"  # of the passes, the weights stay in fp32; or "fp32"
    seed: int = 13
    save_every: int = 200  # steps


def train(
    model: Any,
    loss: Loss,
    rows: int,
    settings: Settings,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> None:
    """AdamW with a linear schedule over `rows` documents; with a folder, saved and gone on with."""
    torch = library("torch", "the supervised baselines")
    groups = decaying(model, settings.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.epsilon)
    order = [batch for epoch in range(settings.epochs) for batch in _epoch(rows, settings, epoch)]
    done = 0 if folder is None else _resume(folder, model, optimizer, len(order))
    model.train()
    for step in range(done, len(order)):
        torch.manual_seed(settings.seed + step)  # dropout too follows from the step
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * schedule(step, len(order), settings.warmup)
        optimizer.zero_grad()
        with torch.autocast(model.device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            value = loss(order[step])
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        if progress:
            progress(f"training, loss {float(value.detach()):.3f}", step + 1, len(order))
        if folder is not None and ((step + 1) % settings.save_every == 0 or step + 1 == len(order)):
            _save(folder, model, optimizer, step + 1)
    model.eval()


def decaying(model: Any, weight_decay: float) -> list[dict[str, Any]]:
    """The model's parameters in two groups: those that decay, and biases and the weights of norms, which do not."""
    norms = {
        f"{place}.{name}"
        for place, module in model.named_modules()
        if "norm" in type(module).__name__.lower()
        for name, _ in module.named_parameters(recurse=False)
    }
    kept: tuple[list[Any], list[Any]] = ([], [])
    for name, parameter in model.named_parameters():
        kept[name in norms or name.endswith("bias")].append(parameter)
    return [{"params": kept[0], "weight_decay": weight_decay}, {"params": kept[1], "weight_decay": 0.0}]


def schedule(step: int, steps: int, warmup: float) -> float:
    """The share of the learning rate: up to 1 in the first `warmup` of the steps, then down to 0."""
    rising = max(1, round(warmup * steps))
    return (step + 1) / rising if step < rising else max(0.0, (steps - step) / max(1, steps - rising))


def _epoch(rows: int, settings: Settings, epoch: int) -> list[list[int]]:
    order = np.random.default_rng([settings.seed, epoch]).permutation(rows).tolist()
    return [order[start : start + settings.batch_size] for start in range(0, rows, settings.batch_size)]


def _save(folder: Path, model: Any, optimizer: Any, step: int) -> None:
    """The step's file is renamed last: whatever it names is whole."""
    torch, safetensors = library("torch", "the supervised baselines"), library("safetensors.torch", "the baselines")
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().clone().contiguous() for name, value in model.state_dict().items()}
    safetensors.save_file(weights, folder / f"weights-{step}.safetensors")
    torch.save(optimizer.state_dict(), folder / f"optimizer-{step}.pt")
    (folder / "step.tmp").write_text(str(step), encoding="utf-8")
    os.replace(folder / "step.tmp", folder / "step")
    for old in [*folder.glob("weights-*.safetensors"), *folder.glob("optimizer-*.pt")]:
        if old.stem.rpartition("-")[2] != str(step):
            old.unlink(missing_ok=True)


def _resume(folder: Path, model: Any, optimizer: Any, steps: int) -> int:
    """How many steps are done; their state is in model and optimizer."""
    if not (folder / "step").is_file():
        return 0
    torch, safetensors = library("torch", "the supervised baselines"), library("safetensors.torch", "the baselines")
    try:
        step = int((folder / "step").read_text(encoding="utf-8"))
        model.load_state_dict(safetensors.load_file(folder / f"weights-{step}.safetensors"))
        optimizer.load_state_dict(torch.load(folder / f"optimizer-{step}.pt", map_location="cpu", weights_only=True))
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise DataFileError(f"the training in {folder} cannot be gone on with: {error}. Delete the folder.") from error
    if step > steps:
        raise DataFileError(f"{folder} holds {step} steps of a longer training than {steps}. Delete the folder.")
    return step
