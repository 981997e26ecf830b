"""A .gguf file of LLaDA or Dream, run by llama.cpp: the way for laptops, without torch.

It goes through the low-level bindings of llama-cpp-python (extra llamacpp; names as in 0.3.36): the high-level `eval`
assumes that tokens see only what comes before them. Attention is switched to non-causal and a pass reads one prompt.
Attention is exact: there is one pass per document and label. What llama.cpp would print goes to logging.
"""

import ctypes
import functools
import importlib
import logging
import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setscore.backbones.asking import Adjustment, AskingBackbone, Documents, Prompter, Row, make_rows
from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.checkpoints import WeightFiles
from setscore.backbones.host import free_host_bytes, peak_memory
from setscore.backbones.options import RunOptions
from setscore.backbones.shelf import SHELF, NoRoomError
from setscore.backbones.specs import FAMILY_SPECS
from setscore.backbones.tokens import TextTokenizer
from setscore.backbones.vocabulary import check_mask, check_prompt, check_texts
from setscore.errors import BackboneError, MissingExtraError
from setscore.prompts import Verbalizer

# general.architecture of the file, and our family.
ARCHITECTURES = {"llada": "llada", "dream": "dream"}
MASK = "tokenizer.ggml.mask_token_id"
LEVELS = {3: logging.DEBUG, 4: logging.WARNING}  # its warnings are about settings that are meant
CONTEXT = 2048  # memory grows with it, and documents are cut at 600 tokens anyway


@dataclass(frozen=True)
class Opened:
    """A model and a context of llama.cpp; both are freed with it."""

    library: Any
    model: Any
    context: Any
    files: WeightFiles


class LlamaCppBackbone(AskingBackbone):
    """Answers queries with llama.cpp."""

    def __init__(
        self, opened: Opened, prompter: Prompter, attention: Attention, adjustment: Adjustment | None = None
    ) -> None:
        super().__init__(prompter, attention, adjustment)
        self.opened = opened

    def values(self, documents: Documents) -> Iterator[tuple[int, float]]:
        for row in make_rows(documents, shared=False, row_tokens=self.spec.context):
            (question,) = row.questions
            for value in self._row(row, question.slots):
                yield question.query, value

    def _row(self, row: Row, slots: tuple[int, ...]) -> list[float]:
        library, context = self.opened.library, self.opened.context
        tokens = [*row.document, *row.questions[0].tokens]
        reads = [len(row.document) + slot - self.spec.shift for slot in slots]
        if min(reads, default=0) < 0:
            raise BackboneError(f"{self.spec.name} reads an answer one place before its slot; put a text before it.")
        memory = library.llama_get_memory(context)
        if memory:
            library.llama_memory_clear(memory, True)
        # Without a memory for keys there is nothing to decode step by step: such a model is an encoder to llama.cpp,
        # and gives logits everywhere.
        read = library.llama_decode if memory else library.llama_encode
        batch = library.llama_batch_init(len(tokens), 0, 1)
        try:
            batch.n_tokens = len(tokens)
            for place, token in enumerate(tokens):
                batch.token[place], batch.pos[place] = token, place
                batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
                batch.logits[place] = place in reads or not memory
            if read(context, batch) != 0:
                raise BackboneError(f"llama.cpp could not read a prompt of {len(tokens)} tokens; shorten the document.")
            return [self._read(place) for place in reads]
        finally:
            library.llama_batch_free(batch)

    def _read(self, place: int) -> float:
        yes, no = self.prompter.answers
        logits = self.opened.library.llama_get_logits_ith(self.opened.context, place)
        return float(logits[yes]) - float(logits[no])

    def weights(self) -> dict[str, str]:
        return {"weights": self.opened.files.checksum(), "dtype": "gguf"}

    def facts(self) -> dict[str, str]:
        """The shared facts, and those that the file's header gives of its weights."""
        library, model = self.opened.library, self.opened.model
        size = library.llama_model_size(model)
        kind = ctypes.create_string_buffer(256)
        library.llama_model_desc(model, kind, len(kind))
        architecture = _meta(library, model, "general.architecture")
        more = {
            "revision": f"local file with SHA-256 {self.opened.files.checksum()[:12]}...",
            "weights": f"{library.llama_model_n_params(model) / 1e9:.3f} B parameters, architecture {architecture}",
            "dtype": f"{kind.value.decode()}, as the file has it",
            "memory": f"{size / 1e9:.2f} GB for the weights, {peak_memory() / 1e9:.2f} GB at most so far",
        }
        return super().facts() | more


def _library() -> Any:
    try:
        return importlib.import_module("llama_cpp")
    except ImportError as error:
        raise MissingExtraError("a .gguf file", "llamacpp") from error


@functools.cache
def _log(library: Any) -> Any:
    """What llama.cpp calls instead of printing; kept, because it holds no reference itself."""

    def tell(level: int, text: bytes, _: Any) -> None:
        logging.getLogger(__name__).log(LEVELS.get(level, logging.DEBUG), text.decode(errors="replace").rstrip())

    return library.llama_log_callback(tell)


def _opened(path: str) -> Opened:
    """The model of a file, kept for the next time."""
    files = WeightFiles.of([Path(path)])
    return SHELF.get(files.versions, functools.partial(_open, path, files), device="cpu")


def _open(path: str, files: WeightFiles) -> Opened:
    library = _library()
    library.llama_log_set(_log(library), None)
    library.llama_backend_init()
    SHELF.make_room("cpu", files.versions[0][1], free_host_bytes)
    model = library.llama_model_load_from_file(path.encode(), library.llama_model_default_params())
    if not model:
        raise BackboneError(f"llama.cpp cannot read {path}. Check that the file is whole and of a kind that it knows.")
    params = library.llama_context_default_params()
    # Non-causal attention takes a prompt in one piece, so the batch is as long as the context.
    params.n_ctx = params.n_batch = params.n_ubatch = CONTEXT
    context = library.llama_init_from_model(model, params)
    if not context:
        library.llama_model_free(model)
        raise NoRoomError(f"llama.cpp has no memory for a context of {CONTEXT} tokens.")
    library.llama_set_causal_attn(context, False)
    opened = Opened(library, model, context, files)
    weakref.finalize(opened, _close, library, model, context).atexit = False  # the process ends anyway
    return opened


def _close(library: Any, model: Any, context: Any) -> None:
    """llama.cpp frees nothing by itself."""
    library.llama_free(context)
    library.llama_model_free(model)


def _meta(library: Any, model: Any, key: str) -> str | None:
    buffer = ctypes.create_string_buffer(256)
    length = library.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode() if length >= 0 else None


def _spec(path: str) -> BackboneSpec:
    if not Path(path).is_file():
        raise BackboneError(f"the file {path} does not exist.")
    opened = _opened(path)
    architecture = _meta(opened.library, opened.model, "general.architecture")
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise BackboneError(f"{path} is of the architecture {architecture}; as a masked model llama.cpp runs {known}.")
    template = FAMILY_SPECS[ARCHITECTURES[architecture]]
    mask = _meta(opened.library, opened.model, MASK)
    if mask is not None and not mask.isdecimal():
        raise BackboneError(f"{path}: {MASK} is the number of a token, got {mask!r}. Get the file again.")
    return replace(
        template,
        name=path,
        summary=f"{template.summary}; llama.cpp",
        mask_id=None if mask is None else int(mask),
        context=min(CONTEXT, template.context),
        attention=("exact",),
    )


def spec_of(name: str, options: RunOptions) -> BackboneSpec:  # noqa: ARG001
    return _spec(name)


def load(
    name: str, *, attention: Attention, verbalizer: Verbalizer, threads: int | None, options: RunOptions
) -> LlamaCppBackbone:
    """A .gguf file; tokenizer.json of the checkpoint it was made from lies beside it."""
    other = set(options.changed()) - {"guidance", "prior", "chat"}
    if other:
        raise BackboneError(f"a .gguf file has its own dtype and device; leave out {', '.join(sorted(other))}.")
    spec, tokenizer = _spec(name), Path(name).with_name("tokenizer.json")
    if not tokenizer.is_file():
        raise BackboneError(f"{tokenizer} is missing: put tokenizer.json of the original checkpoint beside the .gguf.")
    opened, count, texts = _opened(name), threads or os.cpu_count() or 1, TextTokenizer(tokenizer)
    rows = opened.library.llama_vocab_n_tokens(opened.library.llama_model_get_vocab(opened.model))
    check_texts(texts, rows, name)
    check_mask(texts, spec, rows, name)
    prompter = Prompter(spec, texts, verbalizer, chat=options.chat)
    check_prompt(prompter, rows, name)
    opened.library.llama_set_n_threads(opened.context, count, count)
    return LlamaCppBackbone(opened, prompter, attention, Adjustment(options.guidance, options.prior))
