"""Weights in fewer bits: how far they may be off, and what is refused."""

import sys
from importlib.util import find_spec

import checkpoints
import numpy as np
import pytest
import torch
from torch import nn

from setscore.backbones import RunOptions, load_backbone
from setscore.backbones.native.memory import LINEAR_BYTES
from setscore.backbones.native.operations import to_fp8
from setscore.backbones.native.quantise import Fp8Linear, Int4Linear, Quantiser, check_dtype, to_int4
from setscore.errors import BackboneError, MissingExtraError
from setscore.prompts import Template

CPU = torch.device("cpu")
QUERIES = [Template.of("express").query(text, label) for text in ("Oil.", "Rain.") for label in ("oil", "weather")]


def off(exact, rounded):
    return ((exact - rounded).float().norm() / exact.float().norm()).item()


def test_int4_is_within_half_a_step_of_every_weight():
    weight = torch.randn(48, 128)
    numbers, scales = to_int4(weight)
    scale, offset = scales.transpose(0, 1).unbind(-1)
    back = (numbers.view(48, 4, 32) - 8) * scale[..., None] + offset[..., None]
    assert ((back.view_as(weight) - weight).abs() <= scale.repeat_interleave(32, dim=1) / 2 + 1e-6).all()
    assert (numbers.min(), numbers.max()) == (0, 15)


@pytest.mark.parametrize("bias", [False, True])
def test_an_int4_layer_is_close_to_the_layer(bias):
    linear = nn.Linear(128, 64, bias=bias).bfloat16()
    x = torch.randn(40, 128, dtype=torch.bfloat16)
    with torch.inference_mode():
        assert off(linear(x), Int4Linear(linear)(x)) < 0.1


def test_fp8_keeps_three_bits_and_the_scale_of_each_row():
    x = torch.randn(20, 64) * torch.logspace(-4, 4, 20)[:, None]
    rounded, scale = to_fp8(x)
    assert rounded.dtype == torch.float8_e4m3fn
    back = rounded.float() * scale
    assert ((back - x).abs() <= x.abs() / 16 + scale * 2**-9).all()


def test_an_fp8_layer_is_close_to_the_layer():
    linear = nn.Linear(64, 32).bfloat16()
    x = torch.randn(40, 64, dtype=torch.bfloat16)
    layer = Fp8Linear(linear)
    try:
        with torch.inference_mode():
            found = layer(x)
    except RuntimeError as error:  # this torch multiplies e4m3 on GPUs only
        pytest.skip(str(error).splitlines()[0])
    assert off(linear(x), found) < 0.1


@pytest.mark.parametrize("family", ["llada", "llada2", "dream"])
@pytest.mark.parametrize(
    "dtype", ["int4", pytest.param("int8", marks=pytest.mark.skipif(not find_spec("torchao"), reason="needs torchao"))]
)
def test_a_quantised_checkpoint_answers_much_like_the_original(tmp_path, family, dtype):
    folder = checkpoints.make(tmp_path, family, shards=3)
    exact, rounded = (
        load_backbone(str(folder), options=RunOptions(dtype=kind, device="cpu")) for kind in ("bf16", dtype)
    )
    kinds = {type(module).__name__ for module in rounded.model.modules()}
    assert dtype == "int8" or "Int4Linear" in kinds
    values, changed = (np.concatenate(backbone.log_odds(QUERIES)) for backbone in (exact, rounded))
    assert np.abs(values - changed).max() < 4  # random weights have nothing to lose, so they lose much
    assert np.abs(values - changed).max() > 0


def test_a_quantiser_sees_matrices_of_layers_only(tmp_path):
    folder = checkpoints.make(tmp_path, "llada2")
    model = load_backbone(str(folder), options=RunOptions(dtype="int4", device="cpu")).model
    assert model.embedding.dtype == torch.bfloat16
    assert isinstance(model.layers[1].mlp.gate, nn.Parameter)
    assert len(model.layers[1].mlp.gate_up) == 8


def test_what_is_missing_is_said_before_anything_is_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    with pytest.raises(MissingExtraError, match=r"dtype='int8' needs the extra 'quant': pip install"):
        check_dtype("int8", CPU, experts=False)
    check_dtype("int4", CPU, experts=True)
    check_dtype("bf16", CPU, experts=True)
    with pytest.raises(BackboneError, match="fp8 needs a GPU"):
        check_dtype("fp8", CPU, experts=False)


def test_int4_takes_the_bytes_that_the_memory_check_counts_on():
    linear = nn.Linear(1024, 512, bias=False).bfloat16()
    layer = Quantiser("int4", CPU).quantised(linear)
    used = sum(parameter.numel() * parameter.element_size() for parameter in layer.parameters())
    assert used / linear.weight.numel() == pytest.approx(LINEAR_BYTES["int4"])
