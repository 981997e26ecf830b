"""What every baseline shares: texts and labels in, Scores out, and checkpoints from a folder or the Hub."""

import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from setscore.errors import BackboneError, MissingExtraError
from setscore.records import BoolArray, FloatArray, LabelSet, Progress, Scores

T = TypeVar("T")
DOCUMENT_TOKENS = 600  # of a document that are read, as of the method's own backbones


class Baseline(Protocol):
    """A method that the paper compares with. `fit` learns from labelled documents where the method learns at all."""

    def fit(self, texts: Sequence[str], gold: BoolArray, labels: LabelSet) -> Self: ...

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        """Log-odds of every label, or of each document's `candidates` [n_documents, n_labels] only."""
        ...


class Untrained:
    """A baseline that learns nothing: `fit` changes nothing."""

    def fit(self, texts: Sequence[str], gold: BoolArray, labels: LabelSet) -> Self:  # noqa: ARG002
        return self


def library(name: str, what: str) -> Any:
    """An optional library, or the error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(what, "baselines") from error


def pretrained(kind: str, place: str, what: str, **options: Any) -> Any:
    """`transformers.<kind>.from_pretrained` for a folder or a repository; what to do where it cannot be had."""
    transformers = library("transformers", what)
    try:
        return getattr(transformers, kind).from_pretrained(place, **options)
    except Exception as error:  # of many kinds, by version; the remedy is one
        text = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BackboneError(
            f"{place} cannot be loaded for {what}: {text}. Check the connection and HF_HUB_OFFLINE, or get config.json,"
            " model.safetensors and the tokenizer's files on another machine, put them into a folder and give that"
            " folder as the checkpoint."
        ) from error


def beginning(tokenizer: Any, text: str, tokens: int) -> str:
    """The part of a text that its first so many tokens cover."""
    found = tokenizer(
        text, add_special_tokens=False, truncation=True, max_length=tokens, return_offsets_mapping=True, verbose=False
    )
    offsets = found["offset_mapping"]
    return text if len(offsets) < tokens else text[: offsets[-1][1]]


def on_device(model: Any, device: str) -> Any:
    """A model where `device` says, ready to score: "auto" is a GPU if there is one."""
    from setscore.backbones.devices import device_of  # imports torch

    return model.to(device_of(device)).eval()


def device_name(device: str) -> str:
    """What `device` comes to: cpu, or what the GPU is called."""
    if importlib.util.find_spec("torch") is None:
        return "cpu"
    from setscore.backbones.devices import device_of

    found = device_of(device)
    return "cpu" if found.type == "cpu" else str(library("torch", "the baselines").cuda.get_device_name(found))


def beside(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors on the model's device."""
    return {name: tensor.to(model.device) for name, tensor in inputs.items()}


def finished(
    log_odds: FloatArray, candidates: BoolArray | None, forwards: int, unread: FloatArray | None = None
) -> Scores:
    """Scores of what was asked; the rest is -inf. `unread` [n_documents] marks answers that hold no label somewhere."""
    asked = np.ones(log_odds.shape, dtype=np.bool_) if candidates is None else candidates
    details = {} if unread is None else {"unread": unread}
    uncut = np.zeros(len(log_odds), dtype=np.bool_)
    return Scores(np.where(asked, log_odds, -np.inf), asked, uncut, forwards, details)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
