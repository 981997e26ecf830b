"""The llama.cpp backbone, against a stand-in for its low-level bindings that records what it is told."""

import hashlib
import sys

import numpy as np
import pytest
from llama_library import MASK, WORDS, made_file

from setscore.backbones import load_backbone
from setscore.backbones.shelf import SHELF
from setscore.errors import BackboneError, MissingExtraError
from setscore.prompts import Template
from setscore.records import Query, Slot


@pytest.fixture
def file(tmp_path, monkeypatch):
    return made_file(tmp_path, monkeypatch)


def test_a_prompt_is_read_whole_and_one_place_before_the_slot(file):
    backbone = load_backbone(file.name)
    (answer,) = backbone.log_odds([Template.of("express").query("oil", "rain")])
    (batch,) = file.library.prompts
    place = batch.n_tokens - 2  # the slot ends the prompt, Dream reads before it
    assert batch.token[-1] == MASK
    assert answer[0] == -(sum(batch.token) + place)
    assert (file.library.causal, file.library.batches_freed, backbone.attention) == (False, 1, "exact")


def test_with_a_memory_it_is_cleared_and_logits_are_taken_at_the_slots(file, monkeypatch):
    cleared = []

    def decode(context, batch):
        file.library.prompts.append(batch)
        return 0

    monkeypatch.setattr(file.library, "llama_get_memory", lambda _: "keys")
    monkeypatch.setattr(file.library, "llama_memory_clear", lambda memory, data: cleared.append(memory))
    monkeypatch.setattr(file.library, "llama_decode", decode, raising=False)
    load_backbone(file.name).log_odds([Template.of("express").query("oil", "rain")])
    (batch,) = file.library.prompts
    assert [i for i, flag in enumerate(batch.logits) if flag] == [batch.n_tokens - 2]
    assert cleared == ["keys"]


def test_facts_and_what_llama_cpp_says(file, caplog):
    facts = load_backbone(file.name).facts()
    assert "something went wrong" in caplog.text
    assert facts["weights"] == "8.000 B parameters, architecture dream"
    assert facts["dtype"] == "dream 7B Q4_K - Medium, as the file has it"
    assert facts["memory"].startswith("5.00 GB for the weights")
    assert facts["revision"] == f"local file with SHA-256 {hashlib.sha256(b'GGUF').hexdigest()[:12]}..."
    assert facts["read"] == "1 before the slot"


def test_a_file_is_opened_once_whatever_the_threads(file, monkeypatch):
    load_backbone(file.name, threads=3)
    assert file.library.threads == 3
    monkeypatch.setattr(file.library, "llama_model_load_from_file", lambda *_: pytest.fail("opened again"))
    load_backbone(file.name, threads=2)
    assert file.library.threads == 2


def test_order_and_several_slots(file):
    backbone = load_backbone(file.name)
    queries = [
        Query("Document", text, (": this", Slot(), "Answer", Slot())) for text in ("oil rain", "oil", "oil rain")
    ]
    answers = backbone.log_odds(queries)
    assert [len(answer) for answer in answers] == [2, 2, 2]
    assert np.array_equal(answers[0], answers[2])
    assert len(file.library.prompts) == 2  # equal queries are asked once


def test_what_is_refused(file, tmp_path, monkeypatch):
    with pytest.raises(BackboneError, match=r"the file nowhere.gguf does not exist"):
        load_backbone("nowhere.gguf")
    with pytest.raises(BackboneError, match="has its own dtype and device; leave out dtype"):
        load_backbone(f"{file.name}?dtype=int8")
    (tmp_path / "broken.gguf").write_bytes(b"")
    with pytest.raises(BackboneError, match=r"llama.cpp cannot read .*broken.gguf"):
        load_backbone(str(tmp_path / "broken.gguf"))
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(BackboneError, match=r"put tokenizer.json of the original checkpoint beside"):
        load_backbone(file.name)
    file.library.architecture = "llama"
    with pytest.raises(BackboneError, match=r"is of the architecture llama; as .* llama.cpp runs llada, dream"):
        load_backbone(file.name)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("seven", "FILE: tokenizer.ggml.mask_token_id is the number of a token, got 'seven'. Get the file again."),
        ("-1", "FILE: tokenizer.ggml.mask_token_id is the number of a token, got '-1'. Get the file again."),
        ("13", "FILE: mask_token_id is one of the tokens 0 to 12 that the weights have, got 13."),
        ("3", "FILE: mask_token_id is 7, the token '<|mask|>' of its tokenizer, got 3, which is 'oil'."),
    ],
)
def test_a_mask_that_is_not_the_tokenizers(file, mask, message):
    file.library.mask = mask
    with pytest.raises(BackboneError) as caught:
        load_backbone(file.name)
    assert str(caught.value) == message.replace("FILE", file.name)


def test_a_file_without_a_mask_takes_that_of_the_tokenizer(file):
    file.library.mask = None
    assert load_backbone(file.name).prompter.mask == MASK


def test_tokens_that_the_weights_do_not_have_are_named(file, monkeypatch):
    """Their logits would be read from beyond the end of the array."""
    monkeypatch.setattr(file.library, "llama_vocab_n_tokens", lambda _: len(WORDS) - 1)
    message = r"has the token 'express' with the number 12, and the weights have tokens 0 to 11\. Take both from one"
    with pytest.raises(BackboneError, match=message):
        load_backbone(file.name)


def test_two_files_in_turn_are_opened_once_and_freed_when_they_go(file, tmp_path):
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF too")
    for _ in range(3):
        first, second = load_backbone(file.name), load_backbone(str(other))
        assert first.identity != second.identity
    assert file.library.opened == [file.name, str(other)]
    SHELF.clear()
    assert file.library.freed == []  # both are in use
    del first
    assert file.library.freed == [f"context of the model of {file.name}", f"model of {file.name}"]
    del second
    assert len(file.library.freed) == 4


def test_a_context_that_does_not_fit_lets_the_model_go(file, monkeypatch):
    monkeypatch.setattr(file.library, "llama_init_from_model", lambda *_: None)
    with pytest.raises(BackboneError, match=r"llama\.cpp has no memory for a context of 2048 tokens\."):
        load_backbone(file.name)
    assert file.library.freed == [f"model of {file.name}"]


def test_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    SHELF.clear()
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(MissingExtraError, match=r"a .gguf file needs the extra 'llamacpp'"):
        load_backbone(str(tmp_path / "x.gguf"))
