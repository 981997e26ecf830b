"""Checkpoints that are broken, hostile or merely unusual: one line that says what is wrong, and what is legal loads."""

import json
import os
import shutil
import struct

import checkpoints
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from setscore.backbones import RunOptions, load_backbone
from setscore.errors import BackboneError
from setscore.prompts import Template

FP32 = RunOptions(dtype="fp32", device="cpu")
QUERIES = [Template.of("express").query(text, "oil") for text in ("Crude prices fell again.", "Oil.")]
SIZE = "a whole number from 1 to 16777216"
AGAIN = " Get the file again."
NUMBER = "a finite number above 0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A checkpoint of each family, to be copied and broken."""
    return {f: checkpoints.make(tmp_path_factory.mktemp(f) / "it", f, shards=2) for f in checkpoints.FAMILIES}


@pytest.fixture
def copy(whole, tmp_path):
    def made(family="llada", **changes):
        folder = tmp_path / "model"
        shutil.copytree(whole[family], folder)
        config = json.loads((folder / "config.json").read_text()) | changes
        kept = {key: value for key, value in config.items() if value is not ...}
        (folder / "config.json").write_text(json.dumps(kept))
        return folder

    return made


def answers(folder, **options):
    backbone = load_backbone(str(folder), options=RunOptions(**(vars(FP32) | options)))
    return np.concatenate(backbone.log_odds(QUERIES))


def refused(folder, message, **options):
    """The whole error, with the folder's path as FOLDER; always one line."""
    with pytest.raises(BackboneError) as caught:
        answers(folder, **options)
    assert str(caught.value).replace(str(folder), "FOLDER") == message
    assert "\n" not in message


CONFIG = "FOLDER/config.json"


def field(name, allowed, got):
    return f"{CONFIG}: {name} is {allowed}, got {got}.{AGAIN}"


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("llada", {"n_layers": None}, field("n_layers", "a whole number from 1 to 4096", "null")),
        ("llada", {"n_layers": -3}, field("n_layers", "a whole number from 1 to 4096", "-3")),
        ("llada", {"n_layers": 10**9}, field("n_layers", "a whole number from 1 to 4096", "1000000000")),
        ("llada", {"d_model": NAN}, field("d_model", SIZE, "NaN")),
        ("llada", {"d_model": 32.0}, field("d_model", SIZE, "32.0")),
        ("llada", {"d_model": True}, field("d_model", SIZE, "true")),
        ("llada", {"d_model": ...}, f"{CONFIG} has no d_model, which is {SIZE}.{AGAIN}"),
        ("llada", {"n_heads": 0}, field("n_heads", SIZE, "0")),
        ("llada", {"n_heads": 5}, field("n_heads", "a divisor of d_model=32", "5")),
        ("llada", {"n_kv_heads": 3}, field("n_kv_heads", "a divisor of n_heads=4", "3")),
        ("llada", {"vocab_size": -400, "embedding_size": None}, field("vocab_size", SIZE, "-400")),
        ("llada", {"mlp_hidden_size": "48"}, field("mlp_hidden_size", SIZE, '"48"')),
        ("llada", {"mlp_hidden_size": None, "mlp_ratio": 0.3},
         field("mlp_ratio", "a number whose product with d_model=32 is whole", "0.3")),
        ("llada", {"rms_norm_eps": None}, field("rms_norm_eps", NUMBER, "null")),
        ("llada", {"rms_norm_eps": NAN}, field("rms_norm_eps", NUMBER, "NaN")),
        ("llada", {"rope_theta": None}, field("rope_theta", NUMBER, "null")),
        ("llada", {"rope_theta": "many"}, field("rope_theta", NUMBER, '"many"')),
        ("llada", {"rope_theta": INFINITE}, field("rope_theta", NUMBER, "Infinity")),
        ("llada", {"max_sequence_length": -1}, field("max_sequence_length", SIZE, "-1")),
        ("llada", {"weight_tying": "no"}, field("weight_tying", "true or false", '"no"')),
        ("llada", {"architectures": "LLaDAModelLM"},
         field("architectures", "a list with the name of one", '"LLaDAModelLM"')),
        ("llada", {"architectures": [["LLaDAModelLM"]]},
         field("architectures", "a list with the name of one", '[["LLaDAModelLM"]]')),
        ("dream", {"hidden_size": None}, field("hidden_size", SIZE, "null")),
        ("dream", {"num_attention_heads": 3}, field("num_attention_heads", "a divisor of hidden_size=32", "3")),
        ("dream", {"num_key_value_heads": 3}, field("num_key_value_heads", "a divisor of num_attention_heads=4", "3")),
        ("dream", {"intermediate_size": None}, field("intermediate_size", SIZE, "null")),
        ("dream", {"rope_scaling": "yarn"}, field("rope_scaling", "an object or null", '"yarn"')),
        ("dream", {"rope_scaling": ["x" * 99]}, field("rope_scaling", "an object or null", f'["{"x" * 58}...')),
        ("dream", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0}},
         f'{CONFIG} says rope_parameters={{"rope_type": "yarn", "rope_theta": 10000.0}}; this transformer does not'
         " stretch positions."),
        ("dream", {"rope_theta": None}, field("rope_theta", NUMBER, "null")),
        ("dream", {"rope_theta": None, "rope_parameters": {"rope_theta": -1}},
         f"{CONFIG}, rope_parameters: rope_theta is {NUMBER}, got -1.{AGAIN}"),
        ("dream", {"rms_norm_eps": None}, field("rms_norm_eps", NUMBER, "null")),
        ("dream", {"max_position_embeddings": "256"}, field("max_position_embeddings", SIZE, '"256"')),
        ("sdar", {"head_dim": 15},
         f"{CONFIG}: 15 of 15 dimensions of a head would be rotated; it is an even number of them.{AGAIN}"),
        ("sdar", {"block_size": -4}, field("block_size", SIZE, "-4")),
        ("llada2", {"partial_rotary_factor": 2},
         f"{CONFIG}: 32 of 16 dimensions of a head would be rotated; it is an even number of them.{AGAIN}"),
        ("llada2", {"partial_rotary_factor": 0}, field("partial_rotary_factor", NUMBER, "0")),
        ("llada2", {"n_group": 3}, field("n_group", "a divisor of num_experts=8", "3")),
        ("llada2", {"n_group": 0}, field("n_group", SIZE, "0")),
        ("llada2", {"n_group": 8},
         field("n_group", "such that each group has two of num_experts=8 or more", "8")),
        ("llada2", {"topk_group": 5}, field("topk_group", "a whole number from 1 to 4", "5")),
        ("llada2", {"num_experts_per_tok": 5}, field("num_experts_per_tok", "a whole number from 1 to 4", "5")),
        ("llada2", {"num_experts": None}, field("num_experts", SIZE, "null")),
        ("llada2", {"num_shared_experts": -1}, field("num_shared_experts", "a whole number from 0 to 16777216", "-1")),
        ("llada2", {"routed_scaling_factor": "2.5"}, field("routed_scaling_factor", NUMBER, '"2.5"')),
        ("llada2", {"intermediate_size": None}, field("intermediate_size", SIZE, "null")),
        ("llada-moe", {"num_experts_per_tok": 7}, field("num_experts_per_tok", "a whole number from 1 to 6", "7")),
        ("llada-moe", {"moe_layer_freq": 2},
         field("moe_layer_freq", "1 for every layer: this transformer has experts in all of them", "2")),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_is_named(copy, family, changes, message):
    refused(copy(family, **changes), message)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llada", {"mlp_hidden_size": None, "mlp_ratio": 1.5}),
        ("llada", {"embedding_size": None}),
        ("llada", {"n_kv_heads": None, "multi_query_attention": None}),
        ("llada", {"attention_layer_norm": None, "bias_for_layer_norm": None, "include_qkv_bias": None}),
        ("llada", {"max_sequence_length": None}),
        ("dream", {"rope_theta": ..., "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}}),
        ("dream", {"head_dim": None, "tie_word_embeddings": None}),
        ("dream", {"mask_token_id": None}),
        ("illada", {"mask_token_id": ...}),
        ("llada2", {"mask_token_id": ..., "block_size": None}),
        ("llada-moe", {"moe_layer_freq": None, "intermediate_size": None, "routed_scaling_factor": None}),
        ("sdar", {"use_sliding_window": None}),
    ],
)
def test_what_is_legal_loads_and_answers_the_same(whole, copy, family, changes):
    np.testing.assert_array_equal(answers(copy(family, **changes)), answers(whole[family]))


def test_one_key_head_for_all(copy):
    """OLMo's `multi_query_attention` counts where `n_kv_heads` is null."""
    folder = copy("llada", n_kv_heads=None, multi_query_attention=True)
    for path in folder.glob("*.safetensors"):
        cut = {name: t[:8].clone() if name.split(".")[-2] in ("k_proj", "v_proj") else t
               for name, t in load_file(path).items()}  # fmt: skip
        save_file(cut, path)
    assert np.isfinite(answers(folder)).all()


MASK = "<|mdm_mask|>"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (400, f"{CONFIG}: mask_token_id is one of the tokens 0 to 399 that the weights have, got 400."),
        (126336, f"{CONFIG}: mask_token_id is one of the tokens 0 to 399 that the weights have, got 126336."),
        (-1, field("mask_token_id", "a whole number from 0 to 16777216", "-1")),
        ("5", field("mask_token_id", "a whole number from 0 to 16777216", '"5"')),
        (6, f"{CONFIG}: mask_token_id is 5, the token '{MASK}' of its tokenizer, got 6, which is '<|end_header_id|>'."),
        (120, f"{CONFIG}: mask_token_id is 5, the token '{MASK}' of its tokenizer, got 120, which is '¯'."),
    ],
)
def test_a_mask_that_is_not_the_tokenizers(copy, number, message):
    refused(copy(mask_token_id=number), message)


def renamed_mask(folder, name):
    checkpoints.tokenizer(name).save(str(folder / "tokenizer.json"))
    return folder


def test_a_mask_that_nothing_names(copy, whole):
    folder = renamed_mask(copy(mask_token_id=...), "<|hidden|>")
    refused(folder, f"{CONFIG} has no mask_token_id, and its tokenizer no token '{MASK}'. Write the number of the mask"
            " there as mask_token_id.")  # fmt: skip
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"mask_token_id": 120}))
    refused(folder, f"{CONFIG}: mask_token_id is a special token of its tokenizer, got 120, which is the text '¯'.")
    (folder / "config.json").write_text(json.dumps(config | {"mask_token_id": 5}))  # a special token of another name
    np.testing.assert_array_equal(answers(folder), answers(whole["llada"]))


def test_tokens_that_the_weights_do_not_have(copy):
    folder = copy()
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    unused = [f"<|unused {number}|>" for number in range(500 - made.get_vocab_size())]
    made.add_special_tokens([AddedToken(name, special=True) for name in unused])  # no text becomes them
    made.save(str(folder / "tokenizer.json"))
    assert np.isfinite(answers(folder)).all()
    made.add_tokens(["petroleum"])
    made.save(str(folder / "tokenizer.json"))
    refused(folder, "the tokenizer of FOLDER has the token 'petroleum' with the number 500, and the weights have tokens"
            " 0 to 399. Take both from one checkpoint.")  # fmt: skip


def test_special_tokens_of_the_chat_that_the_weights_do_not_have(copy):
    folder = copy()
    made = json.loads((folder / "tokenizer.json").read_text())
    for token in made["added_tokens"]:
        token["id"] = 500 if token["content"] == "<|eot_id|>" else token["id"]
    made["model"]["vocab"]["<|eot_id|>"] = 500
    (folder / "tokenizer.json").write_text(json.dumps(made))
    assert np.isfinite(answers(folder)).all()
    refused(folder, "the prompt of FOLDER has the token '<|eot_id|>' (turn) with the number 500, and the weights have"
            " tokens 0 to 399. Take both from one checkpoint.", chat=True)  # fmt: skip


DEEP = "[" * 80 + "]" * 80
INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize("file", ["config.json", INDEX])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "FOLDER/{file} is a JSON object, got [].{again}"),
        ("null", "FOLDER/{file} is a JSON object, got null.{again}"),
        ('"text"', 'FOLDER/{file} is a JSON object, got "text".{again}'),
        ("{", "FOLDER/{file} cannot be read as JSON: Expecting property name enclosed in double quotes: line 1 column 2"
              " (char 1).{again}"),
        ("", "FOLDER/{file} cannot be read as JSON: Expecting value: line 1 column 1 (char 0).{again}"),
        (DEEP, "FOLDER/{file} cannot be read as JSON: it is nested more than 64 levels deep.{again}"),
        ("[" * 200_000, "FOLDER/{file} cannot be read as JSON: it is nested more than 64 levels deep.{again}"),
        ('{"a": 1, "a": 2}', "FOLDER/{file} cannot be read as JSON: 'a' appears twice in one mapping. Remove one of"
                             " them.{again}"),
    ],
    ids=["list", "null", "text", "broken", "empty", "deep", "very deep", "twice"],
)  # fmt: skip
def test_settings_that_are_no_object(copy, file, content, message):
    folder = copy()
    (folder / file).write_text(content)
    refused(folder, message.format(file=file, again=AGAIN))


@pytest.mark.parametrize("file", ["config.json", INDEX])
def test_settings_of_any_size_are_not_read(copy, file):
    folder = copy()
    os.truncate(folder / file, 2**36)  # a hole: nothing is written
    refused(folder, f"FOLDER/{file} cannot be read as JSON: it is larger than 64 MiB, the limit.{AGAIN}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, f"FOLDER/{INDEX} has no weight_map, which is an object that names the file of each tensor.{AGAIN}"),
        ({"weight_map": []}, f"FOLDER/{INDEX}: weight_map is an object or null, got [].{AGAIN}"),
        *[
            ({"weight_map": {"a": name}}, f"FOLDER/{INDEX}, weight_map: a is the name of a .safetensors file in the"
             f" same folder, got {json.dumps(name)}.{AGAIN}")
            for name in ("../model.safetensors", "/etc/model.safetensors", "a/b.safetensors", "model.bin", "..", "", 3,
                         None, ["model.safetensors"])
        ],
    ],
)  # fmt: skip
def test_an_index_names_safetensors_in_its_own_folder(copy, content, message):
    folder = copy()
    shutil.copy(next(folder.glob("*.safetensors")), folder.parent / "model.safetensors")
    torch.save({}, folder / "model.bin")
    (folder / INDEX).write_text(json.dumps(content))
    refused(folder, message)


def header(length, content):
    return struct.pack("<Q", length) + content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"abc",
        header(2**40, b"{}"),
        header(2, b"{]"),
        header(9, b'{"a": nul'),
        header(3, b"\xff\xfe\x00"),
        header(50, b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'[:50]),
        header(55, b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'),
        header(len(b"[" * 5000), b"[" * 5000),
    ],
)
def test_a_broken_header_of_a_weight_file(copy, content):
    folder = copy()
    path = sorted(folder.glob("*.safetensors"))[0]
    path.write_bytes(content)
    with pytest.raises(BackboneError) as caught:
        answers(folder)
    assert str(caught.value).startswith(f"{path} is truncated or damaged (")
    assert str(caught.value).endswith("). Delete it and get it again.")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"\x80\x04N.", b"\x80\x04]."])
def test_a_broken_pickle_of_weights(copy, content):
    folder = copy()
    for path in [*folder.glob("*.safetensors"), folder / INDEX]:
        path.unlink()
    (folder / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(BackboneError) as caught:
        answers(folder, allow=("pickle",))
    assert str(caught.value).startswith(f"{folder}/pytorch_model.bin is truncated or damaged (")
    assert len(str(caught.value).splitlines()) == 1
    torch.save(["no", "tensors"], folder / "pytorch_model.bin")
    refused(folder, "FOLDER/pytorch_model.bin holds something else than tensors by name. Convert it to safetensors.",
            allow=("pickle",))  # fmt: skip


DEEP_NORMALIZER = '{"type":"Sequence","normalizers":[' * 200 + '{"type":"Lowercase"}' + "]}" * 200


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "[" * 100_000, '{"version": "1.0"}', f'{{"normalizer": {DEEP_NORMALIZER}}}',
     '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}',
     '{"version": "1.0", "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": -1}}}'],
    ids=["empty", "broken", "list", "null", "very deep", "no model", "deep", "merges", "negative"],
)  # fmt: skip
def test_a_broken_tokenizer(copy, content):
    folder = copy()
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(BackboneError) as caught:
        answers(folder)
    message = str(caught.value)
    assert message.startswith(f"the tokenizer {folder}/tokenizer.json cannot be read: ")
    assert message.endswith(". Get the file again.")
    assert len(message.splitlines()) == 1
    assert len(message) < 400


def test_a_tokenizer_of_any_size_is_not_read(copy):
    folder = copy()
    os.truncate(folder / "tokenizer.json", 2**36)
    refused(folder, f"the tokenizer FOLDER/tokenizer.json cannot be read: it is larger than 256 MiB, the limit.{AGAIN}")
    (folder / "tokenizer.json").unlink()
    refused(folder, f"the tokenizer FOLDER/tokenizer.json cannot be read: No such file or directory.{AGAIN}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[]", f"FOLDER/tokenizer_config.json is a JSON object, got [].{AGAIN}"),
        ('{"added_tokens_decoder": 3}',
         f"FOLDER/tokenizer_config.json: added_tokens_decoder is an object or null, got 3.{AGAIN}"),
        ('{"added_tokens_decoder": {"x": {"content": "a"}}}',
         "FOLDER/tokenizer_config.json, added_tokens_decoder: x is the number of a token, with its content as a text,"
         f' got {{"content": "a"}}.{AGAIN}'),
        ('{"added_tokens_decoder": {"7": {"content": null}}}',
         "FOLDER/tokenizer_config.json, added_tokens_decoder: 7 is the number of a token, with its content as a text,"
         f' got {{"content": null}}.{AGAIN}'),
    ],
)  # fmt: skip
def test_a_broken_tokenizer_of_vocabulary_and_merges(copy, settings, message):
    folder = copy()
    (folder / "tokenizer.json").unlink()
    checkpoints.tokenizer().model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(settings)
    refused(folder, message)


def test_a_vocabulary_that_lacks_what_a_text_needs(copy):
    """The library only finds out at the first unknown character."""
    folder = copy(mask_token_id=3)
    words = ["yes", "no", "Document", MASK]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens([MASK])
    made.save(str(folder / "tokenizer.json"))
    refused(folder, "the tokenizer cannot read 'Document:\\nCrude prices fell again.\\n\\nQues': WordLevel error:"
            " Missing [UNK] token from the vocabulary.")  # fmt: skip
