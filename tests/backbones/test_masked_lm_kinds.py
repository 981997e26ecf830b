"""BERT, RoBERTa, DeBERTa-v2 and ModernBERT in their own files and with tokenizers of their own kinds."""

import shutil

import masked_models
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from setscore.backbones import RunOptions, load_backbone
from setscore.errors import BackboneError, VerbalizerError
from setscore.prompts import Template, Verbalizer
from setscore.records import Query, Slot

TEXTS = ["Crude prices fell again.", "It rained all week, and it rained again. " * 2, "Oil.", ""]
TEMPLATES = [
    Template.of("express"),
    Template("Text: {document} Does it express {label}? Answer:"),  # a space between document and question
]
QUERIES = [template.query(text, label) for template in TEMPLATES for text in TEXTS for label in ("oil", "rain")]
MASKS = {"bert": "[MASK]", "roberta": "<mask>", "deberta-v2": "[MASK]", "modernbert": "[MASK]"}
SPACED = {"bert": "", "roberta": "Ġ", "deberta-v2": "▁", "modernbert": "Ġ"}
CPU = RunOptions(device="cpu")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {kind: masked_models.write(tmp_path_factory.mktemp(kind), kind) for kind in masked_models.KINDS}


@pytest.fixture(params=masked_models.KINDS)
def kind(request):
    return request.param


def load(folder, options=CPU, verbalizer="yes/no"):
    return load_backbone(f"hf:{folder}", options=options, verbalizer=verbalizer)


def forward(folder, text):
    """The logits of transformers for one text with one mask, by its own tokenizer and model, and the token ids."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder)
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[0]
    (place,) = (inputs.input_ids[0] == tokenizer.mask_token_id).nonzero()
    return logits[place.item()], inputs.input_ids[0].tolist(), tokenizer


def as_text(query, mask):
    return query.prefix + query.document + "".join(mask if isinstance(p, Slot) else p for p in query.question)


def test_scores_are_a_literal_forward_of_transformers(folders, kind):
    """The same tokens as those of the whole prompt, and the same numbers."""
    backbone = load(folders[kind])
    answers = backbone.log_odds(QUERIES)
    for query, answer in zip(QUERIES, answers, strict=True):
        if query.document != query.document.strip() or not query.document:
            continue  # how space at its ends joins with the prompt's own differs between tokenizers
        logits, ids, tokenizer = forward(folders[kind], as_text(query, MASKS[kind]))
        ((document, (question,)),) = backbone.prompter.documents([query]).items()
        assert [*document, *question.tokens] == ids
        yes, no = tokenizer.convert_tokens_to_ids([f"{SPACED[kind]}yes", f"{SPACED[kind]}no"])
        assert (yes, no) == backbone.prompter.answers
        assert answer[0] == pytest.approx((logits[yes] - logits[no]).item(), abs=1e-4)
    assert np.ptp(np.concatenate(answers)) > 0.1


def test_batched_equals_one_by_one(folders, kind):
    backbone = load(folders[kind], RunOptions(device="cpu", batch_tokens=150))
    together = np.concatenate(backbone.log_odds(QUERIES))
    alone = np.concatenate([backbone.log_odds([query])[0] for query in QUERIES])
    backwards = np.concatenate(backbone.log_odds(QUERIES[::-1]))[::-1]
    assert np.abs(together - alone).max() < 1e-4
    assert np.abs(together - backwards).max() < 1e-4


def test_special_tokens_in_a_document_are_only_text(folders, kind):
    """A document that spells the mask, the separator or the padding must not get them as tokens."""
    backbone, mask = load(folders[kind]), MASKS[kind]
    text = f"Crude {mask} [SEP] </s> <pad> [PAD] [CLS] prices"
    ((document, (question,)),) = backbone.prompter.documents([TEMPLATES[0].query(text, f"oil {mask}")]).items()
    specials = set(backbone.prompter.tokenizer.special(mask, *backbone.spec.begin, *backbone.spec.after_question))
    assert document[0] in specials
    assert not specials & set(document[1:])
    assert [token for token in question.tokens if token in specials] == [
        backbone.prompter.mask,
        *backbone.prompter.tokenizer.special(*backbone.spec.after_question),
    ]
    assert np.isfinite(backbone.log_odds([TEMPLATES[0].query(text, "oil")])[0]).all()


def test_the_mask_and_several_slots(folders, kind):
    backbone = load(folders[kind])
    assert backbone.spec.mask == MASKS[kind]
    head = "\n\nLabels: oil, rain\nAnswers:"
    opened = Query("Document:\n", "Crude prices fell.", (head, Slot(), ";", Slot()))
    filled = [Query("Document:\n", "Crude prices fell.", (head, Slot(a), ";", Slot())) for a in (True, False)]
    answers = backbone.log_odds([opened, *filled])
    assert [len(answer) for answer in answers] == [2, 1, 1]
    assert answers[1][0] != answers[2][0]


def test_an_answer_is_one_known_token_with_the_space_before_it(folders, kind):
    backbone = load(folders[kind])
    assert [backbone.prompter.tokenizer.token(answer) for answer in backbone.prompter.answers] == [
        f"{SPACED[kind]}yes", f"{SPACED[kind]}no"
    ]  # fmt: skip
    with pytest.raises(VerbalizerError, match=r"the answer ' perhaps' must be one token, but splits into \["):
        load(folders[kind], verbalizer=Verbalizer("yes", "perhaps"))
    with pytest.raises(VerbalizerError, match="must be one token"):  # unknown, or several bytes
        load(folders[kind], verbalizer=Verbalizer("yes", "\u4e16"))


def test_the_context_is_what_the_positions_hold(folders, kind):
    """RoBERTa has two positions more than it can use."""
    backbone = load(folders[kind])
    assert backbone.spec.context == 128
    word = "again " if kind != "deberta-v2" else "oil "
    longest = Query("", "", (word * (128 - 3), Slot()))
    tokens = 1 + len(backbone.prompter.tokenizer.ids(longest.question[0])) + 2
    while tokens > 128:
        longest = Query("", "", (longest.question[0][: -len(word)], Slot()))
        tokens = 1 + len(backbone.prompter.tokenizer.ids(longest.question[0])) + 2
    assert 120 < tokens <= 128
    assert np.isfinite(backbone.log_odds([longest])[0]).all()
    with pytest.raises(BackboneError, match="shorten the document or the label"):
        backbone.log_odds([Query("", "", (word * 130, Slot()))])


def test_facts(folders, kind):
    facts = load(folders[kind]).facts()
    assert facts["revision"].startswith("local folder, 1 weight file with SHA-256 ")
    assert facts["class"].endswith("ForMaskedLM")
    assert "float32 on cpu" in facts["dtype"]
    assert f"'{MASKS[kind]}' (" in facts["mask"]
    assert "GB for the weights" in facts["memory"]


def test_pickles_are_refused_unless_allowed(folders, tmp_path):
    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "bert"
    shutil.copytree(folders["bert"], folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(BackboneError, match=r"Weights that are pickles are not read unless you say allow='pickle'\."):
        load(folder)
    allowed = load(folder, RunOptions(device="cpu", allow=("pickle",)))
    assert np.allclose(
        np.concatenate(allowed.log_odds(QUERIES)), np.concatenate(load(folders["bert"]).log_odds(QUERIES))
    )
    assert "SHA-256" in allowed.facts()["revision"]


@pytest.mark.parametrize("model_type", ["own-bert", "bert"])
def test_code_that_comes_with_a_model_is_refused_unless_allowed(folders, tmp_path, monkeypatch, model_type):
    """Even where transformers has a class of that type: the author's model is another one."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = masked_models.own_code(folders["bert"], tmp_path / f"own_{model_type}", model_type=model_type)
    with pytest.raises(BackboneError, match=r"code of its own, which is not run unless you say allow='remote-code'"):
        load(folder)
    assert not (tmp_path / "was_run").exists()
    allowed = load(folder, RunOptions(device="cpu", allow=("remote-code",)))
    assert (tmp_path / "was_run").exists()
    assert "OwnForMaskedLM" in allowed.facts()["class"]
    doubled = 2 * np.concatenate(load(folders["bert"]).log_odds(QUERIES))
    assert np.allclose(np.concatenate(allowed.log_odds(QUERIES)), doubled, atol=1e-4)


def test_an_encoder_without_its_head_is_refused(folders, tmp_path):
    """transformers would draw the missing weights at random."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "encoder"
    shutil.copytree(folders["bert"], folder)
    state = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in state.items() if "predictions.transform" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        BackboneError, match=r"4 tensors are missing .* such as cls.predictions.transform.LayerNorm.bias"
    ):
        load(folder)
