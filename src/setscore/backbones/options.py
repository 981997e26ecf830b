"""How a backbone is run, beside what it is; also as the end of its name: `llada-8b-instruct?dtype=int8&chat=true`."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from setscore.errors import BackboneError, unknown_name
from setscore.named import split_options

DTYPES = ("auto", "fp32", "bf16", "fp8", "int8", "int4")
ALLOWANCES = ("pickle", "remote-code")


@dataclass(frozen=True)
class RunOptions:
    """Where and how a backbone computes.

    device        "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:1"
    dtype         "auto" (bf16), "fp32", "bf16"; weights in "int8" or "int4" (extra quant); "fp8" on Hopper GPUs
    batch_tokens  tokens in one pass; None chooses by device. Less is tried by itself when memory runs out
    compile       whether element-wise work is fused by torch.compile: slower to start, faster to run
    chat          whether an Instruct checkpoint is asked in its chat template instead of the paper's raw prompt
    guidance      classifier-free guidance w: u0 + (1 + w)(u - u0), with u0 the log-odds when the document is masked
    prior         whether log-odds on an empty document are subtracted: what the wording alone makes the model say
    allow         what is refused otherwise: "pickle" (weights that are no safetensors), "remote-code" (hf: models)
    revision      another version of the checkpoint than the pinned one
    """

    device: str = "auto"
    dtype: str = "auto"
    batch_tokens: int | None = None
    compile: bool = False
    chat: bool = False
    guidance: float = 0.0
    prior: bool = False
    allow: tuple[str, ...] = ()
    revision: str | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise BackboneError(unknown_name("dtype", self.dtype, DTYPES))
        for name in self.allow:
            if name not in ALLOWANCES:
                raise BackboneError(unknown_name("allowance", name, ALLOWANCES))
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise BackboneError(f"batch_tokens is a number of tokens from 1, got {self.batch_tokens}.")
        if not 0 <= self.guidance < math.inf:
            raise BackboneError(f"guidance is a finite number, 0 (off) or more, got {self.guidance}.")

    def changed(self) -> list[str]:
        """The options that are not at their defaults."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]


DEFAULT = RunOptions()


def split_name(name: str, options: RunOptions | None = None) -> tuple[str, RunOptions]:
    """A backbone's name without its options, and the options with those of the name."""
    base, given = split_options(name, "backbone")
    found = options or DEFAULT
    known = {field.name: field.type for field in fields(RunOptions)}
    changes: dict[str, Any] = {}
    for key, text in given.items():
        if key not in known:
            raise BackboneError(unknown_name(f"option of {base}", key, known))
        changes[key] = _value(key, text, known[key])
    return base, replace(found, **changes)


def _value(key: str, text: str, kind: Any) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False, "": True}[text.lower()]
        if kind is float:
            return float(text)
        if key == "batch_tokens":
            return int(text)
    except (KeyError, ValueError):
        what = "true or false" if kind is bool else "a number"
        raise BackboneError(f"the option {key} is {what}, got {text!r}.") from None
    return tuple(text.split(",")) if key == "allow" else text
