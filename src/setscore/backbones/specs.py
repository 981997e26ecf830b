"""The public checkpoints that our own transformer runs, and the embedded model, as data.

Sources, beside each checkpoint's config.json and model card: mask ids and blocks from the LLaDA, Dream and dInfer
repositories; Dream reads one place earlier because it was made from an autoregressive model (its generation code moves
the logits by one). Revisions are commits of the Hub that others' published runs pin or load. That of illada-instruct
was only found abbreviated; it is looked up in full when the checkpoint is fetched.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from setscore.backbones.base import BackboneSpec
from setscore.backbones.config import Config, read_config, shown
from setscore.errors import BackboneError

_LLADA_CHAT = (
    "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\n",
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
)
_QWEN_CHAT = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n",
    "<|im_end|>\n<|im_start|>assistant\n",
)
_LING_CHAT = (
    "<role>SYSTEM</role>detailed thinking off<|role_end|><role>HUMAN</role>",
    "<|role_end|><role>ASSISTANT</role>",
)

# What all checkpoints of a family have in common. Documents see the question in training, except where attention is
# block-causal: there the shared mode computes the same numbers, so it is the native one.
FAMILY_SPECS = {
    "llada": BackboneSpec(
        name="llada",
        family="llada",
        summary="masked diffusion, bidirectional",
        parameters=8_015_581_184,
        context=4096,
        attention=("exact", "shared"),
        licence="MIT",
        mask="<|mdm_mask|>",
        leading_space=True,
        mask_id=126336,
        chat=_LLADA_CHAT,
    ),
    "illada": BackboneSpec(
        name="illada",
        family="illada",
        summary="LLaDA's successor, grouped keys",
        parameters=7_615_025_152,
        context=8192,
        attention=("exact", "shared"),
        licence="Apache-2.0",
        mask="<[MASK]>",
        leading_space=True,
        mask_id=5,
    ),
    "dream": BackboneSpec(
        name="dream",
        family="dream",
        summary="made from Qwen2.5, read at p - 1",
        parameters=7_615_616_512,
        context=2048,
        attention=("exact", "shared"),
        licence="Apache-2.0",
        mask="<|mask|>",
        leading_space=True,
        mask_id=151666,
        shift=1,
        chat=_QWEN_CHAT,
    ),
    "llada2": BackboneSpec(
        name="llada2",
        family="llada2",
        summary="mixture of experts, blocks of 32",
        parameters=16_255_643_392,
        context=32768,
        attention=("shared", "exact"),
        licence="Apache-2.0",
        mask="<|mask|>",
        leading_space=True,
        mask_id=156895,
        block=32,
        chat=_LING_CHAT,
    ),
    "llada-moe": BackboneSpec(
        name="llada-moe",
        family="llada-moe",
        summary="mixture of experts, bidirectional",
        parameters=7_356_880_896,
        context=8192,
        attention=("exact", "shared"),
        licence="Apache-2.0",
        mask="<|mask|>",
        leading_space=True,
        mask_id=156895,
        chat=_LING_CHAT,
    ),
    "sdar": BackboneSpec(
        name="sdar",
        family="sdar",
        summary="made from Qwen3, blocks of 4",
        parameters=8_190_735_360,
        context=32768,
        attention=("shared", "exact"),
        licence="Apache-2.0",
        mask="<|MASK|>",
        leading_space=True,
        mask_id=151669,
        block=4,
    ),
}
# Where config.json promises more than the model was trained with: Dream's kept the context of Qwen2.5.
TRAINED_CONTEXT = {"dream": 2048}


def _spec(name: str, family: str, repository: str, revision: str, **differences: Any) -> BackboneSpec:
    template = FAMILY_SPECS[family]
    return replace(template, name=name, repository=repository, revision=revision, **differences)


SPECS = {
    spec.name: spec
    for spec in (
        _spec("llada-8b-base", "llada", "GSAI-ML/LLaDA-8B-Base", "0f2787f2d87eac5eed8a087d5ecd24277e6255b2", chat=None,
              summary="the paper's main backbone"),
        _spec("llada-8b-instruct", "llada", "GSAI-ML/LLaDA-8B-Instruct", "08b83a6feb34df1a6011b80c3c00c7563e963b07",
              summary="the same, instruction-tuned"),
        _spec("llada-1.5", "llada", "GSAI-ML/LLaDA-1.5", "84346fd91ba60252d260022201ad6fc5a3468fb2",
              summary="the same, preference-optimised"),
        _spec("illada", "illada", "GSAI-ML/iLLaDA-8B-Base", "a1b5b5f8a31a3854a46205ee584178c04b45ec9a"),
        _spec("illada-instruct", "illada", "GSAI-ML/iLLaDA-8B-Instruct", "5769f04922"),
        _spec("dream-7b-base", "dream", "Dream-org/Dream-v0-Base-7B", "6572adb5535263e4d1a337b56942ba48b6dee2a9",
              chat=None),
        _spec("dream-7b-instruct", "dream", "Dream-org/Dream-v0-Instruct-7B",
              "05334cb9faaf763692dcf9d8737c642be2b2a6ae"),
        _spec("llada2-mini", "llada2", "inclusionAI/LLaDA2.0-mini", "d23215abc5f5675daf171f6739d0386eab53f712",
              summary="experts, 1.4 B active, blocks of 32"),
        _spec("llada2.1-mini", "llada2", "inclusionAI/LLaDA2.1-mini", "bbb5715c881500b34234071e68dbf38c3d657c4e",
              summary="experts, 1.4 B active, blocks of 32", context=4096),
        _spec("llada2-flash", "llada2", "inclusionAI/LLaDA2.0-flash", "744c3f8c6c8317d2377d6d16d8a3d4be2caef563",
              parameters=102_900_000_000, summary="experts, 6.1 B active, several GPUs"),
        _spec("llada-moe", "llada-moe", "inclusionAI/LLaDA-MoE-7B-A1B-Instruct",
              "783d3467f108d28ac0a78d3e41af16ab05cabd8d", summary="experts, 1.4 B active"),
        _spec("sdar-8b", "sdar", "JetLM/SDAR-8B-Chat", "ac4528d2c076b04e02a03e6f430efa4385331ce8"),
    )
}  # fmt: skip

MINI = BackboneSpec(
    name="setscore-mini",
    family="mini",
    summary="embedded; half the layers",
    parameters=22_700_000,
    context=512,
    attention=("shared", "exact"),
    licence="Apache-2.0",
    mask="[MASK]",
    leading_space=False,
    begin=("[CLS]",),
    after_document=("[SEP]",),
    after_question=("[SEP]",),
    windows=16,
    temperature=0.5,
    competition=0.35,
    set_layout="inline",
)
SMALL = replace(
    MINI,
    name="setscore-small",
    summary="embedded, English, no download",
    parameters=33_400_000,
    temperature=1.0,
    competition=0.8,
    handicap=0.0,
)
EMBEDDED = {spec.name: spec for spec in (SMALL, MINI)}
DEFAULT_MODEL = SMALL.name
KNOWN = EMBEDDED | SPECS  # nothing has to be loaded or looked up for these


def folder_spec(folder: Path, family: str) -> BackboneSpec:
    """The spec of a checkpoint in a local folder, from its family and its config.json.

    Without a mask_token_id there the mask is looked up in the tokenizer, by the name that the family gives it.
    """
    config, template = read_config(folder), FAMILY_SPECS[family]
    context = config.size("max_sequence_length", config.size("max_position_embeddings", template.context))
    said = config.get("mask_token_id") is not None
    return replace(
        template,
        name=str(folder),
        context=min(context, TRAINED_CONTEXT.get(family, context)),
        mask_id=config.size("mask_token_id", least=0) if said else None,
        block=config.size("block_size", template.block),
        summary=f"{template.summary}; from a folder",
    )


def check_config(spec: BackboneSpec, config: Config) -> None:
    """What config.json says must be what the spec says."""
    said = config.get("mask_token_id")
    if said is not None and said != spec.mask_id:
        raise BackboneError(
            f"{config.file}: mask_token_id is {spec.mask_id} in a checkpoint of {spec.name}, got {shown(said)}."
        )
