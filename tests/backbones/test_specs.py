"""The table of public checkpoints, folders and options: data that must hang together."""

import json
import math
import re

import pytest
from tokenizers import Tokenizer

from setscore.backbones import BACKBONES, RunOptions, backbone_spec
from setscore.backbones.config import Config
from setscore.backbones.options import split_name
from setscore.backbones.specs import FAMILY_SPECS, SPECS, check_config, folder_spec
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError, SetScoreError

KNOWN = ", ".join(sorted(vars(RunOptions())))


@pytest.mark.parametrize("name", SPECS)
def test_every_entry_says_where_its_weights_are(name):
    spec = backbone_spec(name)
    assert spec.name == name
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", spec.repository)
    assert re.fullmatch(r"[0-9a-f]{10,40}", spec.revision)
    assert spec.mask_id == FAMILY_SPECS[spec.family].mask_id
    assert (spec.block > 0) == (spec.attention[0] == "shared")  # exact for block-causal models, so it is the native one
    assert name in BACKBONES


def test_family_facts():
    facts = {name: (spec.mask_id, spec.shift, spec.block) for name, spec in FAMILY_SPECS.items()}
    assert facts == {
        "llada": (126336, 0, 0), "illada": (5, 0, 0), "dream": (151666, 1, 0), "llada2": (156895, 0, 32),
        "llada-moe": (156895, 0, 0), "sdar": (151669, 0, 4),
    }  # fmt: skip
    assert SPECS["llada-8b-base"].chat is None
    assert SPECS["llada2-mini"].special_tokens == 31  # masks that may fill the answer's block


def test_a_folder_speaks_for_itself(tmp_path):
    config = {"architectures": ["DreamModel"], "mask_token_id": 9, "max_position_embeddings": 131072}
    (tmp_path / "config.json").write_text(json.dumps(config))
    spec = folder_spec(tmp_path, "dream")
    assert (spec.mask_id, spec.shift, spec.context) == (9, 1, 2048)
    (tmp_path / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 512, "mask_token_id": None}))
    assert (folder_spec(tmp_path, "dream").context, folder_spec(tmp_path, "dream").mask_id) == (512, None)


def test_another_mask_than_expected_is_an_error():
    with pytest.raises(BackboneError) as caught:
        check_config(SPECS["llada-8b-base"], Config({"mask_token_id": 7}))
    assert str(caught.value) == "config.json: mask_token_id is 126336 in a checkpoint of llada-8b-base, got 7."
    check_config(SPECS["llada-8b-base"], Config({}))


@pytest.mark.parametrize(
    ("name", "base", "options"),
    [
        ("llada-8b-base", "llada-8b-base", {}),
        ("llada-8b-instruct?dtype=int8&chat=true", "llada-8b-instruct", {"dtype": "int8", "chat": True}),
        ("hf:a/b?device=cuda:1&guidance=0.5", "hf:a/b", {"device": "cuda:1", "guidance": 0.5}),
        ("x?batch_tokens=64&prior=true&compile=false", "x", {"batch_tokens": 64, "prior": True}),
        ("x?allow=pickle,remote-code&revision=abc", "x", {"allow": ("pickle", "remote-code"), "revision": "abc"}),
        ("x?revision=refs/pr/1+2%20", "x", {"revision": "refs/pr/1+2%20"}),  # as it is written, like every other name
    ],
)
def test_names_with_options(name, base, options):
    assert split_name(name) == (base, RunOptions(**options))
    assert set(split_name(name)[1].changed()) == set(options)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x?dtype=int8&dtype=int4", "an option of the backbone x is given twice: 'dtype=int8&dtype=int4'."),
        ("x?prior", "options of a backbone are written x?option=value&option=value, got 'prior'."),
        ("x?guidance=nan", "guidance is a finite number, 0 (off) or more, got nan."),
        ("x?guidance=inf", "guidance is a finite number, 0 (off) or more, got inf."),
        ("x?guidance=much", "the option guidance is a number, got 'much'."),
        # Not decoded: an option that another spelling hides would get past whoever looks for it (`with_allowances`).
        ("x?%61llow=remote-code", f"unknown option of x '%61llow'. Did you mean 'allow'? Known: {KNOWN}."),
        ("x?prior=nan", "the option prior is true or false, got 'nan'."),
    ],
)
def test_names_with_options_that_cannot_be_read(name, message):
    with pytest.raises(SetScoreError) as caught:
        split_name(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int5"}, "unknown dtype 'int5'. Did you mean 'int8'?"),
        ({"allow": ("pickles",)}, "unknown allowance 'pickles'. Did you mean 'pickle'?"),
        ({"batch_tokens": 0}, "batch_tokens is a number of tokens from 1, got 0."),
        ({"guidance": -1.0}, "guidance is a finite number, 0 (off) or more, got -1.0."),
        ({"guidance": math.nan}, "guidance is a finite number, 0 (off) or more, got nan."),
        ({"guidance": math.inf}, "guidance is a finite number, 0 (off) or more, got inf."),
    ],
)
def test_options_that_mean_nothing(options, message):
    with pytest.raises(BackboneError) as caught:
        RunOptions(**options)
    assert str(caught.value).startswith(message)


def merges_folder(folder):
    """vocab.json, merges.txt and tokenizer_config.json, as Dream ships its tokenizer."""
    from tokenizers import models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(["Does this document express oil? yes no", "It's 2024 already.\n\n yes"] * 9, trainer)
    made.model.save(str(folder))
    size = made.get_vocab_size()
    added = {str(size + i): {"content": token} for i, token in enumerate(["<|endoftext|>", "<|im_start|>", "<|mask|>"])}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    return size


def test_a_tokenizer_of_vocabulary_and_merges_is_qwens(tmp_path):
    transformers = pytest.importorskip("transformers")
    size = merges_folder(tmp_path)
    ours = TextTokenizer(tmp_path)
    vocabulary = json.loads((tmp_path / "vocab.json").read_text())
    merges = [tuple(line.split()) for line in (tmp_path / "merges.txt").read_text().splitlines()[1:]]
    theirs = transformers.Qwen2Tokenizer(vocab=vocabulary, merges=merges)
    for text in (
        "Does this document express oil?",
        " yes",
        "It's 2024\n\n\nalready.  ",
        "naïve caf\u0065\u0301 \u4e2d\u6587 🙂",
    ):
        assert list(ours.ids(text)) == theirs.encode(text, add_special_tokens=False)
    assert ours.special("<|mask|>") == (size + 2,)
    assert size + 2 not in ours.ids("a <|mask|> in a text")
    assert ours.markup("<|im_start|>yes<|mask|>") == (size + 1, *ours.ids("yes"), size + 2)
    with pytest.raises(BackboneError, match="the tokenizer has no token '<|nothing|>'".replace("|", r"\|")):
        ours.markup("<|nothing|>")


def test_added_tokens_out_of_place_are_an_error(tmp_path):
    merges_folder(tmp_path)
    settings = {"added_tokens_decoder": {"999": {"content": "<|mask|>"}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(BackboneError, match="should be token 999"):
        TextTokenizer(tmp_path)
