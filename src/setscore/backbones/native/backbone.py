"""LLaDA, Dream, LLaDA2 and their kin as backbones: our transformer with a public checkpoint's weights."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setscore.backbones.asking import Adjustment, AskingBackbone, Documents, Prompter, Row, fit_blocks, make_rows
from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.checkpoints import WeightFiles, checkpoint_folder, checksum, folder_versions, origin
from setscore.backbones.config import read_config
from setscore.backbones.devices import device_name, device_of, free_bytes, most_memory, no_room, used_bytes
from setscore.backbones.native import operations
from setscore.backbones.native.architecture import family_of, read_architecture
from setscore.backbones.native.layout import Layout, lay_out
from setscore.backbones.native.memory import check_room, needed_bytes, pass_tokens
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.names import NAMES
from setscore.backbones.native.quantise import Quantiser, check_dtype
from setscore.backbones.native.weights import load_weights, weight_files
from setscore.backbones.options import RunOptions
from setscore.backbones.running import in_batches
from setscore.backbones.shelf import SHELF
from setscore.backbones.specs import SPECS, check_config, folder_spec
from setscore.backbones.tokens import TextTokenizer
from setscore.backbones.vocabulary import check_mask, check_prompt, check_texts
from setscore.errors import BackboneError
from setscore.prompts import Template, Verbalizer
from setscore.records import FloatArray, Query

CHECKED = Template.of("express").query("Crude prices fell again.", "oil")


class NativeBackbone(AskingBackbone):
    """Answers queries with a transformer on a device."""

    def __init__(
        self,
        model: Transformer,
        prompter: Prompter,
        attention: Attention,
        *,
        adjustment: Adjustment | None = None,
        batch_tokens: int | None = None,
        origin: Callable[[], str] = lambda: "made in memory",
        loaded: "Loaded | None" = None,
        dtype: str = "",
    ) -> None:
        super().__init__(prompter, attention, adjustment)
        self.loaded = loaded
        self.origin, self.dtype = origin, dtype or str(model.norm.dtype).removeprefix("torch.")
        self.model, self.device = model, model.embedding.device
        self.batch_tokens = batch_tokens or pass_tokens(model.architecture, self.device)

    def values(self, documents: Documents) -> Iterator[tuple[int, float]]:
        for layout, hidden in self.hidden(documents):
            values = self.model.log_odds(hidden, *self.prompter.answers)
            yield from zip(layout.owners, values.tolist(), strict=True)

    def answer_mass(self, queries: Sequence[Query]) -> list[FloatArray]:
        """A diagnostic: p(yes) + p(no) over the whole vocabulary at each open slot of each query.

        Little of it means that the model would rather say something else, and the wording should be looked at.
        """
        found: list[list[float]] = [[] for _ in queries]
        for layout, hidden in self.hidden(self.prompter.documents(queries)):
            for owner, value in zip(
                layout.owners, self.model.answer_mass(hidden, *self.prompter.answers).tolist(), strict=True
            ):
                found[owner].append(value)
        return [np.array(values) for values in found]

    def most_likely(self, queries: Sequence[Query]) -> list[str]:
        """The most likely tokens of each query's open slots, as one text."""
        found: list[list[int]] = [[] for _ in queries]
        for layout, hidden in self.hidden(self.prompter.documents(queries)):
            for owner, token in zip(layout.owners, self.model.most_likely(hidden).tolist(), strict=True):
                found[owner].append(token)
        return [self.prompter.tokenizer.text(tokens) for tokens in found]

    def weights(self) -> dict[str, str]:
        if self.loaded is None:
            raise BackboneError(f"{self.spec.name} was made in memory: no file tells its weights from others.")
        return {"weights": self.loaded.files.checksum(), "settings": self.loaded.settings, "dtype": self.dtype}

    def facts(self) -> dict[str, str]:
        """The shared facts, and those of the weights and the device."""
        used = used_bytes(self.model)
        (mass,) = self.answer_mass([CHECKED])
        (value,) = self.log_odds([CHECKED])
        more = {
            "revision": self.origin(),
            "weights": f"{self.model.architecture.parameters() / 1e9:.3f} B parameters, every tensor accounted for",
            "dtype": f"{self.dtype} on {self.device}; passes of {self.batch_tokens} tokens",
            "memory": f"{used / 1e9:.2f} GB for the weights, {most_memory(self.device) / 1e9:.2f} GB at most so far",
            "sample": f"log-odds {value[0]:.2f}, p(yes) + p(no) = {mass[0]:.4f} of the vocabulary",
        }
        return super().facts() | more

    def hidden(self, documents: Documents) -> Iterator[tuple[Layout, Tensor]]:
        """Batches, and their hidden states [S, C] where answers are read."""
        shared, spec = self.attention == "shared", self.spec
        fitted = fit_blocks(documents, shared=shared, block=spec.block, mask=self.prompter.mask)
        rows = make_rows(fitted, shared=shared, row_tokens=self.batch_tokens)
        self._check_reads(rows)

        @torch.inference_mode()
        def compute(batch: list[Row]) -> tuple[Layout, Tensor]:
            layout = lay_out(batch, shared=shared, block=spec.block, shift=spec.shift, device=self.device)
            return layout, self.model(layout)

        return in_batches(rows, self.batch_tokens, compute, device=self.device)

    def _check_reads(self, rows: Sequence[Row]) -> None:
        before = 0 if self.attention == "shared" else 1
        for row in rows:
            for question in row.questions:
                if min(question.slots, default=1) + before * len(row.document) < self.spec.shift:
                    raise BackboneError(
                        f"{self.spec.name} reads an answer one place before its slot, and query {question.query} begins"
                        " with its slot. Put a text before it."
                    )


@dataclass(frozen=True)
class Loaded:
    """A checkpoint in memory, with where it came from."""

    folder: Path
    settings: str  # SHA-256 of config.json
    files: WeightFiles
    model: Transformer
    tokenizer: TextTokenizer


def spec_of(name: str, options: RunOptions) -> BackboneSpec:  # noqa: ARG001
    if name in SPECS:
        return SPECS[name]
    folder = Path(name)
    return folder_spec(folder, family_of(read_config(folder)))


def load(
    name: str, *, attention: Attention, verbalizer: Verbalizer, threads: int | None, options: RunOptions
) -> NativeBackbone:
    """A checkpoint by name or folder, loaded once for all classifiers of a process."""
    spec = spec_of(name, options)
    if threads is not None:
        torch.set_num_threads(threads)
    loaded = load_checkpoint(spec, options)
    prompter = Prompter(spec, loaded.tokenizer, verbalizer, chat=options.chat)
    check_prompt(prompter, loaded.model.architecture.vocabulary, str(loaded.folder))
    loaded.model.use(operations.compiled() if options.compile else operations.PLAIN)
    adjustment = Adjustment(options.guidance, options.prior)
    revision = options.revision or spec.revision
    return NativeBackbone(
        loaded.model,
        prompter,
        attention,
        adjustment=adjustment,
        batch_tokens=options.batch_tokens,
        origin=partial(origin, loaded.folder, loaded.files.paths, spec.repository, revision),
        loaded=loaded,
        dtype=_dtype(options),
    )


def _dtype(options: RunOptions) -> str:
    return "bf16" if options.dtype == "auto" else options.dtype


def load_checkpoint(spec: BackboneSpec, options: RunOptions) -> Loaded:
    """The weights of `spec` on their device, kept for the next time."""
    device, folder = device_of(options.device), Path(spec.name)
    # A folder may be another one after a change of directory, and hold other files after a training step.
    place = (spec.name, options.revision) if spec.repository else (folder.resolve(), folder_versions(folder))
    key = (place, device_name(device), _dtype(options), "pickle" in options.allow)
    return SHELF.get(key, partial(_loaded, spec, options, device), device=device_name(device))


def _loaded(spec: BackboneSpec, options: RunOptions, device: torch.device) -> Loaded:
    """The settings come first: what cannot run is not downloaded."""
    dtype, pickles = _dtype(options), "pickle" in options.allow
    settings = read_config(checkpoint_folder(spec, revision=options.revision, weights=False))
    check_config(spec, settings)
    architecture, family = read_architecture(settings), family_of(settings)
    if family != spec.family:
        raise BackboneError(f"{spec.name} should be a {spec.family} checkpoint, but its config.json is of {family}.")
    check_dtype(dtype, device, experts=architecture.router is not None)
    tokens = options.batch_tokens or pass_tokens(architecture, device)
    SHELF.make_room(device_name(device), needed_bytes(architecture, dtype, tokens), partial(free_bytes, device))
    check_room(spec.name, architecture, dtype, tokens, device)
    folder = checkpoint_folder(spec, revision=options.revision, pickles=pickles)
    tokenizer, files = TextTokenizer(folder), WeightFiles.of(weight_files(folder, allow_pickle=pickles))
    check_texts(tokenizer, architecture.vocabulary, str(folder))
    check_mask(tokenizer, spec, architecture.vocabulary, settings.file)
    with no_room(spec.name):
        model = load_weights(
            list(files.paths),
            architecture,
            NAMES[family],
            device=device,
            dtype=torch.float32 if dtype == "fp32" else torch.bfloat16,
            finish=None if dtype in ("fp32", "bf16") else Quantiser(dtype, device),
        )
    return Loaded(folder, checksum([Path(settings.file)]), files, model, tokenizer)
