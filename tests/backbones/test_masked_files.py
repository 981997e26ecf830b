"""Files of masked language models that are broken: one line that says which."""

import json
import os
import shutil

import masked_models
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from setscore.backbones import RunOptions, load_backbone
from setscore.errors import BackboneError
from setscore.prompts import Template

CPU = RunOptions(device="cpu")
QUERY = Template.of("express").query("Crude prices fell again.", "oil")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return {kind: masked_models.write(tmp_path_factory.mktemp(kind) / "it", kind) for kind in ("bert", "roberta")}


@pytest.fixture
def copy(whole, tmp_path):
    def made(kind="bert", **changes):
        folder = tmp_path / "it"
        shutil.copytree(whole[kind], folder)
        config = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return made


def refused(folder):
    with pytest.raises(BackboneError) as caught:
        load_backbone(f"hf:{folder}", options=CPU).log_odds([QUERY])
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value).replace(str(folder), "FOLDER")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "FOLDER/config.json is a JSON object, got []. Get the file again."),
        ("null", "FOLDER/config.json is a JSON object, got null. Get the file again."),
        ("[" * 10**5, "FOLDER/config.json cannot be read as JSON: it is nested more than 64 levels deep. Get the file"
                      " again."),
        ('{"auto_map": ["x"]}', 'FOLDER/config.json: auto_map is an object or null, got ["x"]. Get the file again.'),
    ],
    ids=["list", "null", "deep", "auto_map"],
)  # fmt: skip
def test_a_config_that_is_no_object(copy, content, message):
    folder = copy()
    (folder / "config.json").write_text(content)
    assert refused(folder) == message


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("bert", {"max_position_embeddings": "many"}),
        ("bert", {"hidden_size": None}),
        ("bert", {"hidden_size": -32}),
        ("bert", {"num_attention_heads": 5}),
        ("bert", {"vocab_size": "120"}),
        ("roberta", {"pad_token_id": None}),
    ],
)
def test_a_config_that_transformers_cannot_use(copy, kind, changes):
    message = refused(copy(kind, **changes))
    assert message.startswith(
        ("hf:FOLDER cannot be read by transformers: ", "FOLDER is no masked language model for transformers: ")
    )


def test_a_tokenizer_that_is_broken_or_of_any_size(copy):
    folder = copy()
    (folder / "tokenizer.json").write_text("[" * 10**5)
    assert refused(folder).startswith("hf:FOLDER cannot be read by transformers: ")
    os.truncate(folder / "tokenizer.json", 2**36)
    assert refused(folder) == (
        "the tokenizer FOLDER/tokenizer.json cannot be read: it is larger than 256 MiB, the limit. Get the file again."
    )


def test_tokens_that_the_weights_do_not_have(copy):
    from tokenizers import AddedToken, Tokenizer

    folder = copy("roberta")
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    size = made.get_vocab_size()
    made.add_special_tokens([AddedToken("<|unused|>", special=True)])  # no text becomes it, no prompt has it
    made.save(str(folder / "tokenizer.json"))
    assert np.isfinite(load_backbone(f"hf:{folder}", options=CPU).log_odds([QUERY])[0]).all()
    made.add_tokens(["petroleum"])
    made.save(str(folder / "tokenizer.json"))
    assert refused(folder) == (
        f"the tokenizer of hf:FOLDER has the token 'petroleum' with the number {size + 1}, and the weights have tokens"
        f" 0 to {size - 1}. Take both from one checkpoint."
    )
