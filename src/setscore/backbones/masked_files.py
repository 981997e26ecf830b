"""Masked language models of transformers from their files: what they say of themselves, and the model in memory."""

import functools
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

from setscore.backbones.base import BackboneSpec
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
)
from setscore.backbones.config import Config, read_config
from setscore.backbones.devices import device_name, device_of, free_bytes, no_room, out_of_memory, used_bytes
from setscore.backbones.options import RunOptions
from setscore.backbones.shelf import SHELF, NoRoomError
from setscore.backbones.tokens import TextTokenizer, check_bytes
from setscore.errors import BackboneError

DTYPES = {"auto": torch.float32, "fp32": torch.float32, "bf16": torch.bfloat16}
PREFIX = "hf:"
# Model types whose modules make positions by `create_position_ids_from_input_ids`.
COUNT_FROM_PADDING = frozenset(
    ("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "camembert", "data2vec-text", "longformer",
     "luke", "mluke", "mpnet", "xmod", "ibert")
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a model's files say of it, weights aside."""

    spec: BackboneSpec
    folder: Path
    tokenizer: TextTokenizer


def settings_of(name: str, revision: str | None, allow: tuple[str, ...]) -> Settings:
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
) -> Settings:
    place = name.removeprefix(PREFIX)
    remote = "remote-code" in allow
    folder = Path(place) if Path(place).is_dir() else fetch(place, revision or "main", SETTINGS + CODE * remote)
    if (folder / "config.json").is_file():
        config_file = read_config(folder)
        if not remote:
            _refuse_code(name, config_file)
    if (folder / "tokenizer.json").is_file():
        check_bytes(folder / "tokenizer.json")
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=remote)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=remote)
        usable = tokenizer.mask_token is not None and tokenizer.is_fast
        before, after = _specials(tokenizer) if usable else ((), ())
        context = min(limit for limit in (tokenizer.model_max_length, _positions(config)) if limit)
    except Exception as error:  # of many kinds
        raise BackboneError(
            f"{name} cannot be read by transformers: {_first_line(error)} {_code_hint(error)}"
        ) from error
    if not usable:
        raise BackboneError(f"{name} has no mask token or no fast tokenizer, so it cannot fill in an answer.")
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
    return Settings(spec, folder, TextTokenizer(tokenizer.backend_tokenizer))


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


@dataclass(frozen=True)
class Loaded:
    """A model in memory, with where it came from."""

    folder: Path
    settings: str  # SHA-256 of config.json, and of the code where it brings its own
    files: WeightFiles
    model: Any


def load_model(settings: Settings, options: RunOptions) -> Loaded:
    """The model of some settings on its device, kept for the next time."""
    spec, device, folder = settings.spec, device_of(options.device), settings.folder
    place = (spec.repository, spec.revision) if spec.repository else (folder.resolve(), folder_versions(folder))
    key = (place, device_name(device), DTYPES[options.dtype], options.allow)
    return SHELF.get(key, partial(_loaded, settings, options, device), device=device_name(device))


def _loaded(settings: Settings, options: RunOptions, device: torch.device) -> Loaded:
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
