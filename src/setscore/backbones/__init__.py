"""Backbones by name. A registry is a plain dict from a name to where it lives."""

import importlib
from types import ModuleType

from setscore.backbones.base import Attention, Backbone, BackboneSpec
from setscore.errors import BackboneError, unknown_name
from setscore.prompts import Verbalizer

__all__ = ["BACKBONES", "Attention", "Backbone", "BackboneSpec", "backbone_spec", "load_backbone"]

# Each module holds SPEC and load(attention=, verbalizer=, threads=).
BACKBONES = {"setscore-mini": "setscore.backbones.mini"}


def _module(name: str) -> ModuleType:
    if name not in BACKBONES:
        raise BackboneError(unknown_name("backbone", name, BACKBONES))
    return importlib.import_module(BACKBONES[name])


def backbone_spec(name: str) -> BackboneSpec:
    """The spec of a backbone, without loading its weights."""
    spec: BackboneSpec = _module(name).SPEC
    return spec


def load_backbone(
    name: str | Backbone,
    *,
    attention: str = "auto",
    verbalizer: str | Verbalizer = "yes/no",
    threads: int | None = None,
) -> Backbone:
    """A backbone ready to answer; "auto" takes the attention mode that is native to it.

    An object is taken as it is: it was made with its own attention and verbalizer.
    """
    if not isinstance(name, str):
        if attention not in ("auto", name.attention) or Verbalizer.of(verbalizer) != Verbalizer.of("yes/no"):
            raise BackboneError("this backbone is an object with its own attention and verbalizer; set them there.")
        return name
    modes = backbone_spec(name).attention
    mode = modes[0] if attention == "auto" else attention
    if mode not in modes:
        raise BackboneError(unknown_name(f"attention mode of {name}", attention, ("auto", *modes)))
    backbone: Backbone = _module(name).load(attention=mode, verbalizer=Verbalizer.of(verbalizer), threads=threads)
    return backbone
