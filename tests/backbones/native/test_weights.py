"""Loading is strict: what is missing, surplus, of another shape, truncated or a pickle is an error that says so."""

import json

import checkpoints
import pytest
import torch

from setscore.backbones.native.architecture import family_of, read_architecture
from setscore.backbones.native.names import NAMES
from setscore.backbones.native.weights import load_weights, weight_files
from setscore.errors import BackboneError


@pytest.fixture
def state():
    return checkpoints.llada2_state()


def load(folder, *, allow_pickle=False, dtype=torch.float32, finish=None):
    config = json.loads((folder / "config.json").read_text())
    files = weight_files(folder, allow_pickle=allow_pickle)
    names, architecture = NAMES[family_of(config)], read_architecture(config)
    return load_weights(files, architecture, names, device="cpu", dtype=dtype, finish=finish)


def refused(folder, message, **options):
    with pytest.raises(BackboneError, match=message):
        load(folder, **options)


def write(folder, state, **options):
    return checkpoints.write(folder, checkpoints.LLADA2_CONFIG, state, **options)


def test_a_missing_tensor_is_named(tmp_path, state):
    del state["model.layers.1.mlp.experts.5.up_proj.weight"]
    refused(write(tmp_path, state), r"1 missing, such as model.layers.1.mlp.experts.5.up_proj.weight\.")


def test_a_surplus_tensor_is_named(tmp_path, state):
    state["model.layers.3.input_layernorm.weight"] = torch.ones(32)
    refused(write(tmp_path, state), "1 not known, such as model.layers.3.input_layernorm.weight")


def test_frequencies_that_old_checkpoints_carry_are_no_weights(tmp_path, state):
    plain = load(write(tmp_path / "plain", state)).state_dict()
    state["model.layers.0.attention.rotary_emb.inv_freq"] = torch.ones(4)
    carried = load(write(tmp_path / "carried", state)).state_dict()
    assert plain.keys() == carried.keys()
    assert all(torch.equal(carried[name], plain[name]) for name in plain)


def test_another_shape_is_named(tmp_path, state):
    state["model.layers.2.attention.dense.weight"] = torch.ones(32, 63)
    refused(
        write(tmp_path, state), r"model.layers.2.attention.dense.weight has the shape \[32, 63\], expected \[32, 64\]"
    )


def test_packed_integers_are_not_read_as_weights(tmp_path, state):
    state["model.layers.2.attention.dense.weight"] = torch.ones(32, 64, dtype=torch.int8)
    refused(write(tmp_path, state), r"is torch.int8; only checkpoints in fp32, bf16 or fp16")


@pytest.mark.parametrize("shards", [1, 3])
def test_a_truncated_file_is_named(tmp_path, state, shards):
    folder = write(tmp_path, state, shards=shards)
    path = sorted(folder.glob("*.safetensors"))[-1]
    path.write_bytes(path.read_bytes()[:-100])
    refused(folder, rf"{path.name} is truncated or damaged .* Delete it and get it again")


def test_an_absent_shard_is_named(tmp_path, state):
    folder = write(tmp_path, state, shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    refused(folder, r"1 of 3 weight files are not in .*: model-00002-of-00003.safetensors first")


def test_a_broken_index_and_no_weights_at_all(tmp_path, state):
    folder = write(tmp_path, state)
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    refused(folder, "holds no weights: neither model.safetensors.index.json nor model.safetensors")
    (folder / "model.safetensors.index.json").write_text("{")
    refused(folder, r"model.safetensors.index.json cannot be read as JSON: Expecting")


def test_pickles_are_refused_unless_allowed(tmp_path, state):
    folder = write(tmp_path, state)
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    refused(folder, r"as pickle \(pytorch_model.bin\), which can run code .* say allow='pickle'")
    model = load(folder, allow_pickle=True)
    assert torch.equal(model.norm, state["model.norm.weight"])


def test_every_parameter_is_finished_once_and_never_on_the_meta_device(tmp_path, state):
    seen = []

    def finish(model, name):
        seen.append((name, model.get_parameter(name).is_meta))

    load(write(tmp_path, state, shards=4), finish=finish)
    assert len(seen) == len(set(seen))
    assert not any(meta for _, meta in seen)
    model = load(tmp_path, dtype=torch.bfloat16)
    kinds = {name.rpartition(".")[2]: parameter.dtype for name, parameter in model.named_parameters()}
    assert len(seen) == len(list(model.parameters()))
    assert kinds.pop("bias") == torch.float32  # the router's
    assert set(kinds.values()) == {torch.bfloat16}
    assert sum(parameter.numel() for parameter in model.parameters()) == model.architecture.parameters()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"architectures": ["BertForMaskedLM"]},
            "names the architecture BertForMaskedLM, this transformer knows LLaDAM",
        ),
        ({"architectures": []}, "names the architecture nothing"),
        (
            {"score_function": "softmax"},
            'says score_function="softmax"; this transformer only does score_function="sig',
        ),
        ({"rope_scaling": {"type": "yarn"}}, "says rope_scaling=.* this transformer does not stretch positions"),
        ({"rope_scaling": {"rope_type": "default", "factor": 2.0}}, "says rope_scaling="),
    ],
)
def test_what_the_transformer_cannot_do_is_refused(change, message):
    with pytest.raises(BackboneError, match=message):
        read_architecture(checkpoints.LLADA2_CONFIG | change)


def test_positions_that_are_not_stretched_may_say_so():
    plain = {"rope_scaling": {"rope_type": "default", "factor": 1.0}}
    assert read_architecture(checkpoints.LLADA2_CONFIG | plain) == read_architecture(checkpoints.LLADA2_CONFIG)


def test_a_config_without_a_needed_entry():
    config = {key: value for key, value in checkpoints.LLADA2_CONFIG.items() if key != "n_group"}
    with pytest.raises(BackboneError, match=r"config\.json has no n_group, which is a whole number"):
        read_architecture(config)
