"""Masked language models of transformers behind the same interface, on small random models."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from setscore import SetScoreClassifier
from setscore.backbones import Emitter, MassReader, RunOptions, backbone_spec, load_backbone
from setscore.errors import BackboneError, VerbalizerError
from setscore.prompts import Template, Verbalizer

WORDS = [
    "document", ":", "crude", "prices", "fell", "again", ".", "question", "does", "this", "express", "oil", "rain",
    "?", "answer", "yes", "no", "it", "all", "week",
]  # fmt: skip
TEXTS = ["Crude prices fell again.", "It rained all week. " * 3, "Oil."]
QUERIES = [Template.of("express").query(text, label) for text in TEXTS for label in ("oil", "rain")]


def bert(folder):
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    torch.manual_seed(3)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate(specials + WORDS)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=made, mask_token="[MASK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]",
        unk_token="[UNK]", model_max_length=256,
    ).save_pretrained(folder)  # fmt: skip
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=256, initializer_range=0.5,
    )  # fmt: skip
    BertForMaskedLM(config).eval().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def name(tmp_path_factory):
    return f"hf:{bert(tmp_path_factory.mktemp('bert'))}"


def load(name, **options):
    return load_backbone(name, options=RunOptions(device="cpu", **options))


def test_scores_are_the_logits_of_the_model_at_the_mask(name):
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = name.removeprefix("hf:")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder)
    text = f"Document:\n{TEXTS[0]}\n\nQuestion: Does this document express oil?\nAnswer:[MASK]"
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[0][inputs.input_ids[0] == tokenizer.mask_token_id][0]
    yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
    (answer,) = load(name).log_odds(QUERIES[:1])
    assert answer[0] == pytest.approx((logits[yes] - logits[no]).item(), abs=1e-4)


def test_batched_equals_one_by_one(name):
    backbone = load(name, batch_tokens=100)
    together = np.concatenate(backbone.log_odds(QUERIES))
    alone = np.concatenate([backbone.log_odds([query])[0] for query in QUERIES])
    assert np.abs(together - alone).max() < 1e-4
    assert np.ptp(together) > 0.01


def test_the_spec_comes_from_the_models_own_files(name):
    spec = backbone_spec(name)
    assert (spec.family, spec.context, spec.mask) == ("bert", 256, "[MASK]")
    assert (spec.begin, spec.after_question, spec.attention) == (("[CLS]",), ("[SEP]",), ("exact",))
    assert "BertForMaskedLM" in load(name).facts()["class"]


def test_a_classifier_takes_it_by_name(name):
    classifier = SetScoreClassifier(["oil", "rain"], backbone=f"{name}?device=cpu")
    assert classifier.predict_proba(TEXTS).shape == (3, 2)


def test_what_is_refused(name, tmp_path):
    with pytest.raises(BackboneError, match="unknown attention mode of hf:"):
        load_backbone(name, attention="shared")
    with pytest.raises(BackboneError, match="runs in auto, fp32, bf16; dtype 'int8' is for native checkpoints"):
        load(name, dtype="int8")
    with pytest.raises(VerbalizerError, match="must be one token"):
        load_backbone(name, verbalizer=Verbalizer("yes", "perhaps"), options=RunOptions(device="cpu"))
    with pytest.raises(BackboneError, match="cannot be read by transformers"):
        load_backbone(f"hf:{tmp_path}")


def test_weights_are_fetched_and_loaded_once(name, monkeypatch):
    """A classifier asks for its backbone at every call; a model on the Hub is looked up there once."""
    from setscore.backbones import masked_files

    asked = []

    def fetch(repository, revision, wanted):
        asked.append(wanted)
        return Path(name.removeprefix("hf:"))

    monkeypatch.setattr(masked_files, "fetch", fetch)
    for _ in range(3):
        load("hf:some/bert").log_odds(QUERIES[:1])
    assert len(asked) == 2
    assert "*.safetensors" in asked[1]
    assert not any("*.py" in pattern for wanted in asked for pattern in wanted)
    load("hf:some/bert?allow=remote-code").log_odds(QUERIES[:1])
    assert all("*.py" in wanted for wanted in asked[2:])
    assert len(asked) == 4


def test_an_unreachable_hub_says_what_to_do(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub

    def unreachable(*_, **__):
        raise OSError("Cannot reach the Hub.\nTraceback follows")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    message = r"some/model \(revision main\) cannot be fetched .*: Cannot reach the Hub. Check .* give their folder"
    with pytest.raises(BackboneError, match=message):
        load_backbone("hf:some/model")
    with pytest.raises(BackboneError, match=r"GSAI-ML/LLaDA-8B-Base \(revision 0f2787f2.*\) cannot be fetched"):
        load_backbone("llada-8b-base?device=cpu")


def test_whole_vocabulary_answers_are_those_of_the_model(name):
    """Emission and the answers' mass read the same logits as the scores do."""
    backbone = load(name)
    assert isinstance(backbone, Emitter)
    assert isinstance(backbone, MassReader)
    words, masses = backbone.most_likely(QUERIES), backbone.answer_mass(QUERIES)
    assert all(word in WORDS or word == "" for word in words)  # a special token has no text
    assert all(0 < mass[0] < 1 for mass in masses)
    assert backbone.most_likely(QUERIES[::-1]) == words[::-1]
    for word, mass, log_odds in zip(words, masses, backbone.log_odds(QUERIES), strict=True):
        if word in ("yes", "no"):
            assert (log_odds[0] > 0) == (word == "yes")
            assert mass[0] > 1 / len(WORDS)


def test_a_set_of_labels_is_emitted_and_parsed(name):
    scores = SetScoreClassifier(["oil", "rain"], backbone=name, scorer="subset?tokens=8").score_documents(TEXTS)
    assert scores.forwards == len(TEXTS)
    assert set(np.abs(scores.log_odds).ravel()) == {1.0}
    assert set(scores.details) == {"repeated", "fragments", "nothing"}
    assert (scores.details["nothing"] == (scores.log_odds < 0).all(axis=1)).all()


def test_too_little_memory_on_a_gpu_says_how_much_is_needed(monkeypatch):
    import torch

    from setscore.backbones import masked_files

    model, gpu = torch.nn.Linear(1000, 1000, bias=False), torch.device("cuda")
    model.dtype = torch.float32
    monkeypatch.setattr(masked_files, "free_bytes", lambda _: 4_000_000)
    masked_files._check_room(Path("there"), model, gpu)
    monkeypatch.setattr(masked_files, "free_bytes", lambda _: 3_999_999)
    message = r"there needs 0\.0 GB for its weights, and cuda has 0\.0 GB free: dtype='bf16' needs half of it"
    with pytest.raises(BackboneError, match=message):
        masked_files._check_room(Path("there"), model, gpu)
