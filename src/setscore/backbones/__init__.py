"""Backbones by name. A registry is a plain dict from a name to where it lives."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from setscore.backbones.base import Attention, Backbone, BackboneSpec, Embedder, Emitter, MassReader
from setscore.backbones.host import THREADS
from setscore.backbones.options import DEFAULT, RunOptions, split_name
from setscore.backbones.specs import EMBEDDED, KNOWN, MINI, SPECS
from setscore.backbones.tokens import MOST_CHARACTERS
from setscore.errors import BackboneError, MissingExtraError, unknown_name
from setscore.predictions import Ask
from setscore.prompts import Verbalizer
from setscore.records import FloatArray, LabelSet, Query, Scores

__all__ = [
    "BACKBONES",
    "EMBEDDED",
    "KNOWN",
    "Attention",
    "Backbone",
    "BackboneSpec",
    "Embedder",
    "Emitter",
    "MassReader",
    "RunOptions",
    "ask_embedded",
    "backbone_spec",
    "check_backbone",
    "check_name",
    "embed_documents",
    "is_place",
    "load_backbone",
    "split_name",
    "threads_wanted",
    "with_allowances",
]
_NATIVE, _MINI = "setscore.backbones.native.backbone", "setscore.backbones.mini"
_CAUSAL = "setscore.backbones.causal.backbone"
# Each module holds spec_of(name, options) and load(name, *, attention, verbalizer, threads, options).
BACKBONES = dict.fromkeys(EMBEDDED, _MINI) | dict.fromkeys(SPECS, _NATIVE)
WINDOW_WORDS, MOST_WINDOWS = 192, 16  # of a document that is embedded beside its scores; about 256 tokens each


def is_place(name: str) -> bool:
    """Whether a name is no entry of the registry but says where a model is: hf:<id>, a .gguf file or a folder."""
    return name.startswith("hf:") or name.endswith(".gguf") or Path(name).is_dir()


def _home(name: str) -> str:
    if name in BACKBONES:
        return BACKBONES[name]
    if name.startswith("hf:"):
        return "setscore.backbones.masked_lm"
    if name.endswith(".gguf"):
        return "setscore.backbones.llama_cpp"
    if Path(name).is_dir():  # made by recipes, or a checkpoint
        made = {"model.onnx": _MINI, "learned.safetensors": _CAUSAL}
        return next((home for file, home in made.items() if (Path(name) / file).is_file()), _NATIVE)
    others = "Or hf:<id> for a masked language model of transformers, a checkpoint's folder, or a .gguf file."
    raise BackboneError(f"{unknown_name('backbone', name, BACKBONES)} {others}")


def _module(name: str) -> ModuleType:
    home = _home(name)
    try:
        return importlib.import_module(home)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{name} (it imports {error.name})", "torch") from error


def backbone_spec(name: str, options: RunOptions | None = None) -> BackboneSpec:
    """The spec of a backbone, without loading its weights."""
    base, options = _parted(name, options)
    if base in KNOWN:
        return KNOWN[base]
    spec: BackboneSpec = _module(base).spec_of(base, options)
    return spec


def check_name(name: str) -> None:
    """An error for a name that is neither known nor a place, and for options there are none of. Nothing is read."""
    base, _ = split_name(name)
    _home(base)


def check_backbone(name: str, *, attention: str = "auto", verbalizer: str | Verbalizer = "yes/no") -> BackboneSpec:
    """The spec of a backbone that can be asked so; an error says what is unknown. No weights are loaded."""
    base, options = _parted(name)
    spec = backbone_spec(base, options)
    _mode(spec, base, attention)
    Verbalizer.of(verbalizer)
    return spec


def _parted(name: str, options: RunOptions | None = None) -> tuple[str, RunOptions]:
    """A backbone's name without its options, and these; most names have none."""
    return split_name(name, options) if "?" in name else (name, options or DEFAULT)


def _mode(spec: BackboneSpec, name: str, attention: str) -> Attention:
    """The attention mode: the native one for "auto"."""
    if attention == "auto":
        return spec.attention[0]
    for mode in spec.attention:
        if mode == attention:
            return mode
    raise BackboneError(unknown_name(f"attention mode of {name}", attention, ("auto", *spec.attention)))


def load_backbone(
    name: str | Backbone,
    *,
    attention: str = "auto",
    verbalizer: str | Verbalizer = "yes/no",
    threads: int | None = None,
    options: RunOptions | None = None,
) -> Backbone:
    """A backbone ready to answer; "auto" takes the attention mode that is native to it.

    `name` is one of `setscore models`, `hf:<id>`, a checkpoint's folder or a .gguf file, and may end in options, as in
    `llada-8b-instruct?dtype=int8`. An object is taken as it is: it was made with its own attention and verbalizer.
    """
    if not isinstance(name, str):
        if attention not in ("auto", name.attention) or Verbalizer.of(verbalizer) != Verbalizer.of("yes/no"):
            raise BackboneError("this backbone is an object with its own attention and verbalizer; set them there.")
        return name
    base, options = _parted(name, options)
    mode = _mode(backbone_spec(base, options), base, attention)
    threads = threads or threads_wanted()
    backbone: Backbone = _module(base).load(
        base, attention=mode, verbalizer=Verbalizer.of(verbalizer), threads=threads, options=options
    )
    return backbone


def ask_embedded(ask: Ask, backbone: Backbone, texts: Sequence[str], labels: LabelSet, **options: Any) -> Scores:
    """What `ask` finds, with the documents' vectors: those that came along, else of a pass of their own."""
    scores = ask(texts, labels, **options)
    return scores if scores.vectors is not None else replace(scores, vectors=embed_documents(backbone, texts))


def embed_documents(backbone: Backbone, texts: Sequence[str]) -> FloatArray:
    """Unit vectors [n, d] of texts, whole ones: means over windows of words. By the backbone where it offers that, else
    by the packaged weights.
    """
    rows, parts = [], []
    for row, text in enumerate(texts):
        words = text[: MOST_WINDOWS * MOST_CHARACTERS].split()
        starts = range(0, max(1, len(words)), WINDOW_WORDS)[:MOST_WINDOWS]
        parts += [" ".join(words[start : start + WINDOW_WORDS]) for start in starts]
        rows += [row] * len(starts)
    embedder = backbone if isinstance(backbone, Embedder) else load_backbone(MINI.name)
    assert isinstance(embedder, Embedder)
    vectors = np.array(embedder.embed([Query("", part, ()) for part in parts]), dtype=np.float64)
    found = np.zeros((len(texts), vectors.shape[1] if len(parts) else 0))
    np.add.at(found, rows, vectors)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12))


def threads_wanted() -> int | None:
    """How many threads the environment grants a model on the CPU; None leaves it to the model."""
    text = os.environ.get(THREADS, "")
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise BackboneError(f"{THREADS} is a number of threads from 1, got {text!r}.")
    return int(text)


def with_allowances(name: str, allow: tuple[str, ...]) -> str:
    """A backbone's name, its options as they are but for what is allowed: that is `allow` and nothing else."""
    base, _, query = name.partition("?")
    kept = [part for part in query.split("&") if part and part.partition("=")[0] != "allow"]
    wanted = [f"allow={','.join(allow)}"] if allow else []
    options = "&".join([*kept, *wanted])
    return f"{base}?{options}" if options else base
