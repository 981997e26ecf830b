"""`hf:<id or folder>`: any AutoModelForMaskedLM of transformers (BERT, RoBERTa, DeBERTa, ModernBERT) as a backbone.

Attention is exact: the document sees the question. Rows of like length share a batch, padded to its longest, under the
model's own attention mask.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor

from setscore.backbones.asking import Adjustment, AskingBackbone, Prompter
from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.checkpoints import (
    CODE,
    PICKLES,
    SETTINGS,
    WEIGHTS,
    Version,
    WeightFiles,
    checksum,
    fetch,
    folder_versions,
    origin,
)
from setscore.backbones.config import Config, read_config
from setscore.backbones.devices import (
    device_name,
    device_of,
    free_bytes,
    most_memory,
    no_room,
    out_of_memory,
    used_bytes,
)
from setscore.backbones.options import RunOptions
from setscore.backbones.packing import Documents, Row, make_rows
from setscore.backbones.running import in_batches
from setscore.backbones.shelf import SHELF, NoRoomError
from setscore.backbones.tokens import TextTokenizer
from setscore.backbones.vocabulary import check_prompt, check_texts
from setscore.errors import BackboneError
from setscore.prompts import Verbalizer
from setscore.records import FloatArray, Query

BATCH_TOKENS = {"cuda": 16384, "cpu": 2048}
DTYPES = {"auto": torch.float32, "fp32": torch.float32, "bf16": torch.bfloat16}
PREFIX = "hf:"
# Model types whose modules make positions by `create_position_ids_from_input_ids`.
COUNT_FROM_PADDING = frozenset(
    ("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "camembert", "data2vec-text", "longformer",
     "luke", "mluke", "mpnet", "xmod", "ibert")
)  # fmt: skip


class MaskedLmBackbone(AskingBackbone):
    """Answers queries with a masked language model of transformers."""

    def __init__(
        self,
        model: Any,
        prompter: Prompter,
        attention: Attention,
        *,
        adjustment: Adjustment | None = None,
        batch_tokens: int | None = None,
        origin: Callable[[], str] = lambda: "made in memory",
        loaded: "Loaded | None" = None,
    ) -> None:
        super().__init__(prompter, attention, adjustment)
        self.origin, self.loaded = origin, loaded
        self.model, self.device = model, model.device
        self.batch_tokens = batch_tokens or BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])

    def values(self, documents: Documents) -> Iterator[tuple[int, float]]:
        yes, no = self.prompter.answers
        for owners, logits in self._read(documents):
            yield from zip(owners, (logits[:, yes] - logits[:, no]).tolist(), strict=True)

    def answer_mass(self, queries: Sequence[Query]) -> list[FloatArray]:
        """A diagnostic: p(yes) + p(no) over the whole vocabulary at each open slot of each query."""
        found: list[list[float]] = [[] for _ in queries]
        for owners, logits in self._read(self.prompter.documents(queries)):
            mass = logits.softmax(dim=-1)[:, list(self.prompter.answers)].sum(dim=-1)
            for owner, value in zip(owners, mass.tolist(), strict=True):
                found[owner].append(value)
        return [np.array(values) for values in found]

    def most_likely(self, queries: Sequence[Query]) -> list[str]:
        """The most likely tokens of each query's open slots, as one text."""
        found: list[list[int]] = [[] for _ in queries]
        for owners, logits in self._read(self.prompter.documents(queries)):
            for owner, token in zip(owners, logits.argmax(dim=-1).tolist(), strict=True):
                found[owner].append(token)
        return [self.prompter.tokenizer.text(tokens) for tokens in found]

    def _read(self, documents: Documents) -> Iterator[tuple[list[int], Tensor]]:
        rows = make_rows(documents, shared=False, row_tokens=self.batch_tokens)
        return in_batches(rows, self.batch_tokens, self._compute, device=self.device)

    @torch.inference_mode()
    def _compute(self, rows: list[Row]) -> tuple[list[int], Tensor]:
        """Query numbers and logits [S, vocabulary] of the rows' slots."""
        owners: list[int] = []
        places: list[tuple[int, int]] = []
        texts: list[Tensor] = []
        for number, row in enumerate(rows):
            (question,) = row.questions
            texts.append(torch.tensor([*row.document, *question.tokens]))
            places += [(number, len(row.document) + slot) for slot in question.slots]
            owners += [question.query] * len(question.slots)
        padding = getattr(self.model.config, "pad_token_id", None) or 0  # masked, but some count positions by it
        ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=padding)
        seen = torch.nn.utils.rnn.pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
        logits = self.model(input_ids=ids.to(self.device), attention_mask=seen.to(self.device)).logits
        row_numbers, columns = torch.tensor(places).T
        return owners, logits[row_numbers.to(self.device), columns.to(self.device)].float()

    def weights(self) -> dict[str, str]:
        if self.loaded is None:
            raise BackboneError(f"{self.spec.name} was made in memory: no file tells its weights from others.")
        dtype = str(self.model.dtype).removeprefix("torch.")
        return {"weights": self.loaded.files.checksum(), "settings": self.loaded.settings, "dtype": dtype}

    def facts(self) -> dict[str, str]:
        """The shared facts, and those of the weights and the device."""
        weights = list(self.model.parameters())
        used = sum(weight.numel() * weight.element_size() for weight in weights)
        dtype = str(self.model.dtype).removeprefix("torch.")
        more = {
            "revision": self.origin(),
            "class": type(self.model).__name__,
            "weights": f"{sum(weight.numel() for weight in weights) / 1e9:.3f} B parameters, none missing",
            "dtype": f"{dtype} on {self.device}; passes of {self.batch_tokens} tokens",
            "memory": f"{used / 1e9:.2f} GB for the weights, {most_memory(self.device) / 1e9:.2f} GB at most so far",
        }
        return super().facts() | more


@dataclass(frozen=True)
class _Settings:
    spec: BackboneSpec
    folder: Path
    tokenizer: TextTokenizer


def _settings(name: str, revision: str | None, allow: tuple[str, ...]) -> _Settings:
    """The spec that a model's own files give it; weights are not touched."""
    folder = Path(name.removeprefix(PREFIX))
    # A folder may be another one after a change of directory, and hold other files after a training step.
    found = folder_versions(folder) if folder.is_dir() else ()
    return _read_settings(name, revision, allow, found)


@functools.lru_cache(maxsize=16)
def _read_settings(
    name: str,
    revision: str | None,
    allow: tuple[str, ...],
    found: tuple[Version, ...],  # noqa: ARG001
) -> _Settings:
    place = name.removeprefix(PREFIX)
    remote = "remote-code" in allow
    folder = Path(place) if Path(place).is_dir() else fetch(place, revision or "main", SETTINGS + CODE * remote)
    if not remote and (folder / "config.json").is_file():
        _refuse_code(name, read_config(folder))
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=remote)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=remote)
    except Exception as error:  # of many kinds
        raise BackboneError(
            f"{name} cannot be read by transformers: {_first_line(error)} {_code_hint(error)}"
        ) from error
    if tokenizer.mask_token is None or not tokenizer.is_fast:
        raise BackboneError(f"{name} has no mask token or no fast tokenizer, so it cannot fill in an answer.")
    before, after = _specials(tokenizer)
    context = min(limit for limit in (tokenizer.model_max_length, _positions(config)) if limit)
    if context > 100_000:
        raise BackboneError(f"{name} does not say how many tokens it reads (max_position_embeddings).")
    spec = BackboneSpec(
        name=name,
        family=config.model_type,
        summary="a masked language model of transformers",
        parameters=0,
        context=context,
        attention=("exact",),
        licence="see its card",
        mask=tokenizer.mask_token,
        leading_space=True,  # WordPiece drops the space, byte-level BPE and SentencePiece keep it in the token
        begin=before,
        after_question=after,
        repository=None if Path(place).is_dir() else place,
        revision=revision or "main",
    )
    return _Settings(spec, folder, TextTokenizer(tokenizer.backend_tokenizer))


def _positions(config: Any) -> int | None:
    """How many positions there are for tokens: RoBERTa and its kin count them from the padding's id on."""
    positions: int | None = getattr(config, "max_position_embeddings", None)
    if positions is not None and config.model_type in COUNT_FROM_PADDING:
        return positions - int(config.pad_token_id) - 1
    return positions


def _specials(tokenizer: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The special tokens that the tokenizer puts before and after a text."""
    (plain,) = tokenizer.encode("a", add_special_tokens=False)[:1]
    ids = tokenizer.encode("a")
    place = ids.index(plain)
    length = len(tokenizer.encode("a", add_special_tokens=False))
    before, after = ids[:place], ids[place + length :]
    return tuple(tokenizer.convert_ids_to_tokens(before)), tuple(tokenizer.convert_ids_to_tokens(after))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _refuse_code(name: str, config: Config) -> None:
    """transformers would silently take a class of its own where it has one of the same type: another model."""
    own = config.section("auto_map")
    named = sorted({"AutoConfig", "AutoModel", "AutoModelForMaskedLM"} & own.keys())
    if named:
        raise BackboneError(f"{name} {_OWN_CODE}: config.json names {own[named[0]]}. If you trust its author, say so.")


_OWN_CODE = "brings code of its own, which is not run unless you say allow='remote-code'"


def _code_hint(error: Exception) -> str:
    if "trust_remote_code" not in str(error):
        return "Check the name, or give the folder of a checkpoint."
    return f"It {_OWN_CODE}."


def spec_of(name: str, options: RunOptions) -> BackboneSpec:
    return _settings(name, options.revision, options.allow).spec


@dataclass(frozen=True)
class Loaded:
    """A model in memory, with where it came from."""

    folder: Path
    settings: str  # SHA-256 of config.json, and of the code where it brings its own
    files: WeightFiles
    model: Any


def load_model(settings: _Settings, options: RunOptions) -> Loaded:
    """The model of some settings on its device, kept for the next time."""
    spec, device, folder = settings.spec, device_of(options.device), settings.folder
    place = (spec.repository, spec.revision) if spec.repository else (folder.resolve(), folder_versions(folder))
    key = (place, device_name(device), DTYPES[options.dtype], options.allow)
    return SHELF.get(key, partial(_loaded, settings, options, device), device=device_name(device))


def _loaded(settings: _Settings, options: RunOptions, device: torch.device) -> Loaded:
    spec, folder, allow = settings.spec, settings.folder, options.allow
    code = CODE * ("remote-code" in allow)
    if spec.repository is not None:
        wanted = SETTINGS + WEIGHTS + PICKLES * ("pickle" in allow) + code
        folder = fetch(spec.repository, spec.revision, wanted)
    files = WeightFiles.of([*folder.glob("*.safetensors")] or folder.glob("pytorch_model*.bin"))
    needed = sum(size for _, size, _ in files.versions)
    SHELF.make_room(device_name(device), needed, partial(free_bytes, device))
    with no_room(spec.name):
        model = _from_files(folder, DTYPES[options.dtype], allow)
        _check_room(folder, model, device)
        model = model.to(device).eval()
    told = [folder / "config.json", *(path for pattern in code for path in folder.glob(pattern))]
    return Loaded(folder, checksum(told), files, model)


def _from_files(folder: Path, dtype: torch.dtype, allow: tuple[str, ...]) -> Any:
    """The model as transformers reads it, if every tensor was there."""
    try:
        model, told = transformers.AutoModelForMaskedLM.from_pretrained(
            folder,
            dtype=dtype,
            trust_remote_code="remote-code" in allow,
            use_safetensors=None if "pickle" in allow else True,
            output_loading_info=True,
        )
    except Exception as error:  # of many kinds
        if out_of_memory(error):
            raise
        hint = "" if "pickle" in allow else " Weights that are pickles are not read unless you say allow='pickle'."
        raise BackboneError(
            f"{folder} is no masked language model for transformers: {_first_line(error)}{hint}"
        ) from error
    absent = sorted({*told["missing_keys"], *(entry[0] for entry in told["mismatched_keys"])})
    if absent:  # transformers draws them at random and only warns
        raise BackboneError(
            f"{folder} is no whole masked language model: {len(absent)} tensors are missing or of another shape,"
            f" such as {', '.join(absent[:3])}. An encoder without a language-modelling head cannot fill in an answer."
        )
    return model


def _check_room(folder: Path, model: Any, device: torch.device) -> None:
    """On the CPU it has been loaded already; on a GPU, too little memory is an error that says how much is needed."""
    needed, free = used_bytes(model), free_bytes(device)
    if device.type == "cpu" or needed <= free:
        return
    half = "dtype='bf16' needs half of it, or " if model.dtype == torch.float32 else ""
    raise NoRoomError(
        f"{folder} needs {needed / 1e9:.1f} GB for its weights, and {device} has {free / 1e9:.1f} GB free:"
        f" {half}use device='cpu'."
    )


def load(
    name: str, *, attention: Attention, verbalizer: Verbalizer, threads: int | None, options: RunOptions
) -> MaskedLmBackbone:
    """A masked language model by its id on the Hub or its folder."""
    if options.dtype not in DTYPES:
        raise BackboneError(f"{name} runs in {', '.join(DTYPES)}; dtype {options.dtype!r} is for native checkpoints.")
    if threads is not None:
        torch.set_num_threads(threads)
    settings = _settings(name, options.revision, options.allow)
    spec, loaded = settings.spec, load_model(settings, options)
    prompter = Prompter(spec, settings.tokenizer, verbalizer, chat=options.chat)
    rows = loaded.model.get_input_embeddings().num_embeddings
    check_texts(settings.tokenizer, rows, name)
    check_prompt(prompter, rows, name)
    return MaskedLmBackbone(
        loaded.model,
        prompter,
        attention,
        adjustment=Adjustment(options.guidance, options.prior),
        batch_tokens=options.batch_tokens,
        origin=partial(origin, loaded.folder, loaded.files.paths, spec.repository, spec.revision),
        loaded=loaded,
    )
