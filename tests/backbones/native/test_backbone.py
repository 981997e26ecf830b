"""A checkpoint's folder as a backbone: what it answers, in which order, and what happens when something is wrong."""

import sys

import checkpoints
import numpy as np
import pytest
import torch

from setscore import SetScoreClassifier
from setscore.backbones import RunOptions, backbone_spec, load_backbone
from setscore.backbones.asking import Prompter, fit_blocks
from setscore.backbones.native import backbone as native
from setscore.backbones.native import memory
from setscore.backbones.shelf import SHELF
from setscore.backbones.specs import SPECS
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError, MissingExtraError, ScoreError, VerbalizerError
from setscore.prompts import Template, Verbalizer
from setscore.records import Query, Slot

FP32 = RunOptions(dtype="fp32", device="cpu")
TEXTS = ["Crude prices fell again.", "Oil.", "It rained all week, and the match was called off. " * 2, "Crude prices."]
LABELS = ["oil", "weather", "a sport", "music and dance"]
TEMPLATE = Template.of("express")
QUERIES = [TEMPLATE.query(text, label) for text in TEXTS for label in LABELS]
CLOSE = 1e-4


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {f: checkpoints.make(tmp_path_factory.mktemp(f), f, shards=2) for f in checkpoints.FAMILIES}


def load(folder, attention="auto", **options):
    return load_backbone(str(folder), attention=attention, options=RunOptions(**(vars(FP32) | options)))


def flat(answers):
    return np.concatenate(answers)


@pytest.mark.parametrize("family", checkpoints.FAMILIES)
@pytest.mark.parametrize("attention", ["exact", "shared"])
def test_batched_equals_one_by_one_in_the_order_asked(folders, family, attention):
    backbone = load(folders[family], attention, batch_tokens=200)
    together = flat(backbone.log_odds(QUERIES))
    alone = flat([backbone.log_odds([query])[0] for query in QUERIES])
    assert np.abs(together - alone).max() < CLOSE
    assert np.abs(flat(backbone.log_odds(QUERIES[::-1]))[::-1] - alone).max() < CLOSE
    assert np.ptp(alone) > 0.1
    assert backbone.log_odds([]) == []


@pytest.mark.parametrize("family", ["llada2", "sdar"])
def test_shared_attention_is_exact_for_block_causal_models_wherever_the_document_ends(folders, family):
    shared, exact = (flat(load(folders[family], mode).log_odds(QUERIES)) for mode in ("shared", "exact"))
    assert np.abs(shared - exact).max() < CLOSE
    assert backbone_spec(str(folders[family])).attention[0] == "shared"


def test_block_causal_answers_do_not_see_what_follows_their_block(folders):
    """The question ends with the slot; the masks behind it fill the block and nothing else is there to be seen."""
    backbone = load(folders["llada2"], "exact")
    documents = backbone.prompter.documents([QUERIES[0]])
    ((document, (question,)),) = fit_blocks(documents, shared=False, block=32, mask=5).items()
    assert (len(document) + len(question.tokens)) % 32 == 0
    assert set(question.tokens[question.slots[0] :]) == {5}


def test_dreams_shift_is_not_dropped(folders, monkeypatch):
    """The answer of Dream stands in the hidden state before the slot: what fills the slot itself hardly matters."""
    backbone = load(folders["dream"], "exact")
    assert backbone.spec.shift == 1
    values = flat(backbone.log_odds(QUERIES))
    hidden = native.lay_out
    monkeypatch.setattr(native, "lay_out", lambda rows, *, shift, **rest: hidden(rows, shift=0, **rest))
    assert np.abs(flat(backbone.log_odds(QUERIES)) - values).max() > 0.1


def test_a_slot_at_the_very_beginning_cannot_be_read_one_place_earlier(folders):
    query = Query("Document:\n", "Oil.", (Slot(), " is the answer."))
    with pytest.raises(BackboneError, match=r"query 0 begins with its slot. Put a text before it"):
        load(folders["dream"], "shared").log_odds([query])
    load(folders["dream"], "exact").log_odds([query])  # the place before it is in the same segment
    load(folders["llada"], "shared").log_odds([query])


@pytest.mark.parametrize("family", ["llada", "llada2"])
def test_several_slots_and_filled_slots(folders, family):
    backbone = load(folders[family])
    head = "\n\nLabels:\n- oil\n- music\n\nAnswers:\n"
    opened = Query("Document:\n", "Crude prices fell.", (head, Slot(), ";", Slot(), ";", Slot()))
    filled = [Query("Document:\n", "Crude prices fell.", (head, Slot(a), ";", Slot())) for a in (True, False)]
    answers = backbone.log_odds([opened, *filled])
    assert [len(answer) for answer in answers] == [3, 1, 1]
    assert answers[1][0] != answers[2][0]


def test_equal_documents_are_computed_once_with_shared_attention(folders):
    backbone = load(folders["llada"], "shared", batch_tokens=10_000)
    (layout, _), *others = backbone.hidden(backbone.prompter.documents(QUERIES[:4] * 3))
    assert others == []
    document = len(next(iter(backbone.prompter.documents(QUERIES[:1]))))
    asked = [backbone.prompter.documents([query]).popitem()[1][0] for query in QUERIES[:4]]
    questions = sum(len(question.tokens) for question in asked)
    assert layout.tokens == document + 3 * questions  # `documents` does not drop equal queries, `log_odds` does


TEXTS_WITH_ENDS = ["Crude prices fell again.", "no stop", "", "ends in a line\n", "ends in a space ", "🙂", "it's: (a)"]


@pytest.mark.parametrize("style", ["gpt2", "qwen"])
def test_a_prompt_has_the_tokens_of_one_text(style):
    """The paper tokenises its prompt whole; parting document and question must not change a token."""
    made = checkpoints.tokenizer() if style == "gpt2" else checkpoints.qwen_tokenizer()
    prompter = Prompter(SPECS["llada-8b-base"], TextTokenizer(made), Verbalizer("yes", "no"))
    for text in TEXTS_WITH_ENDS:
        ((document, (question,)),) = prompter.documents([TEMPLATE.query(text, "oil")]).items()
        whole = TEMPLATE.text.replace("{document}", text).replace("{label}", "oil")
        assert made.decode([*document, *question.tokens[:-1]]) == whole
        if text.strip() == text != "":
            assert [*document, *question.tokens] == [*made.encode(whole, add_special_tokens=False).ids, 126336]


def test_swapping_the_answers_negates_and_scores_do_not_depend_on_the_other_labels(folders):
    plus, minus = (
        flat(load_backbone(str(folders["llada"]), verbalizer=pair, options=FP32).log_odds(QUERIES))
        for pair in (Verbalizer("yes", "no"), Verbalizer("no", "yes"))
    )
    assert np.abs(plus + minus).max() < CLOSE


def test_chat_mode_puts_the_prompt_into_a_turn(folders):
    raw, chat = load(folders["llada"]), load(folders["llada"], chat=True)
    ((document, (question,)),) = chat.prompter.documents([QUERIES[0]]).items()
    tokens = checkpoints.tokenizer()
    assert tokens.decode([*document, *question.tokens], skip_special_tokens=False) == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nDocument:\nCrude prices fell again.\n\nQuestion:"
        " Does this document express oil?\nAnswer:<|eot_id|><|start_header_id|>"
        "assistant<|end_header_id|>\n\n<|mdm_mask|>"
    )
    assert tokens.decode([chat.prompter.answers[0]]) == "yes"
    assert tokens.decode([raw.prompter.answers[0]]) == " yes"
    ((plain, (plain_question,)),) = raw.prompter.documents([QUERIES[0]]).items()
    more = len(document) + len(question.tokens) - len(plain) - len(plain_question.tokens)
    assert chat.spec.special_tokens == raw.spec.special_tokens + more
    with pytest.raises(BackboneError, match="has no chat template"):
        load(folders["illada"], chat=True)


def test_guidance_moves_away_from_the_masked_document(folders):
    plain, guided = load(folders["llada"]), load(folders["llada"], guidance=0.5)
    hidden = plain._asked(QUERIES, masked=True)
    expected = [u0 + 1.5 * (u - u0) for u, u0 in zip(plain.log_odds(QUERIES), hidden, strict=True)]
    assert np.abs(flat(guided.log_odds(QUERIES)) - flat(expected)).max() < CLOSE


def test_the_content_free_prior_is_what_an_empty_document_says(folders):
    plain, freed = load(folders["llada"]), load(folders["llada"], prior=True)
    empty = [Query(query.prefix, "", query.question) for query in QUERIES]
    expected = flat(plain.log_odds(QUERIES)) - flat(plain.log_odds(empty))
    assert np.abs(flat(freed.log_odds(QUERIES)) - expected).max() < CLOSE


def test_the_answers_share_of_the_vocabulary(folders):
    masses = flat(load(folders["llada"]).answer_mass(QUERIES))
    assert masses.shape == (len(QUERIES),)
    assert ((masses > 0) & (masses < 0.5)).all()


def test_the_most_likely_tokens_are_those_of_the_largest_logits(folders):
    from setscore.backbones import Emitter

    backbone = load(folders["llada"])
    assert isinstance(backbone, Emitter)
    asked = backbone.most_likely(QUERIES)
    logits = [hidden @ backbone.model.head.T for _, hidden in backbone.hidden(backbone.prompter.documents(QUERIES[:1]))]
    (token,) = torch.cat(logits).argmax(dim=-1).tolist()
    assert asked[0] == backbone.prompter.tokenizer.text([token])
    assert backbone.most_likely(QUERIES[::-1]) == asked[::-1]


def test_nan_is_an_error_for_its_rows_only_named(folders, monkeypatch):
    backbone = load(folders["llada"])
    real = backbone.model.log_odds
    places = []

    def broken(hidden, yes, no):
        values = real(hidden, yes, no)
        places.append(len(values))
        values[0] = torch.nan
        return values

    monkeypatch.setattr(backbone.model, "log_odds", broken)
    with pytest.raises(ScoreError, match=r"gave NaN or infinity for 1 queries, the first is number \d+\.") as caught:
        backbone.log_odds(QUERIES)
    assert len(places) == 1
    assert len(caught.value.queries) == 1


def test_a_backbone_that_runs_out_of_memory_answers_all_the_same(folders, monkeypatch):
    backbone = load(folders["llada"], "shared")
    expected = flat(backbone.log_odds(QUERIES))
    real = backbone.model.forward
    monkeypatch.setattr(
        backbone.model, "forward",
        lambda layout: real(layout) if layout.tokens < 150 else (_ for _ in ()).throw(torch.OutOfMemoryError()),
    )  # fmt: skip
    assert np.abs(flat(backbone.log_odds(QUERIES)) - expected).max() < CLOSE


def test_weights_are_loaded_once(folders, monkeypatch):
    name = f"{folders['llada']}?dtype=fp32&device=cpu"
    load_backbone(name)
    monkeypatch.setattr(native, "load_weights", lambda *_, **__: pytest.fail("loaded again"))
    classifier = SetScoreClassifier(LABELS, backbone=name, attention="shared")
    assert classifier.predict_proba(TEXTS).shape == (4, 4)
    assert SetScoreClassifier(LABELS, backbone=load_backbone(name)).decision_function(TEXTS).shape == (4, 4)


def test_compiled_operations_give_the_same_numbers(folders, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)  # no compiler is needed here
    native.operations.compiled.cache_clear()
    assert np.abs(flat(load(folders["llada"], compile=True).log_odds(QUERIES))
                  - flat(load(folders["llada"]).log_odds(QUERIES))).max() < CLOSE  # fmt: skip


def test_wrong_folders(folders, tmp_path):
    with pytest.raises(BackboneError, match=r"is no checkpoint: it has no config.json\."):
        load_backbone(str(tmp_path))
    (tmp_path / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}')
    with pytest.raises(
        BackboneError, match=r"names the architecture BertForMaskedLM, .* is loaded as hf:<id or folder>"
    ):
        load_backbone(str(tmp_path))


def test_devices(folders):
    with pytest.raises(BackboneError, match="unknown device 'gpu'; write auto, cpu, cuda or cuda:1"):
        load(folders["llada"], device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(BackboneError, match=r"device 'cuda' was asked for, but .*\. Use device='cpu'"):
            load(folders["llada"], device="cuda")
        with pytest.raises(BackboneError, match="fp8 needs a GPU of the Hopper or Ada kind or newer, not cpu"):
            load(folders["llada"], dtype="fp8")


def test_too_little_memory_says_how_much_and_what_fits(folders, monkeypatch):
    SHELF.clear()
    monkeypatch.setattr(memory, "GB", 1000)
    for free, hint in ((90_000, "dtype='int8' fits with"), (1000, "even dtype='int4' needs")):
        monkeypatch.setattr(memory, "free_bytes", lambda _, free=free: free)
        message = rf"needs [\d.]+ GB in bf16, and cpu has {free / 1000:.1f} GB free: {hint}"
        with pytest.raises(BackboneError, match=message):
            load(folders["llada"], dtype="bf16", batch_tokens=1)


def test_an_answer_of_several_tokens_shows_how_it_splits(folders):
    with pytest.raises(VerbalizerError, match=r"the answer ' perhaps' must be one token, but splits into \["):
        load_backbone(str(folders["llada"]), verbalizer=Verbalizer("yes", "perhaps"), options=FP32)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("setscore.backbones.native")]:
        monkeypatch.delitem(sys.modules, name)
    assert backbone_spec("llada-8b-base").mask_id == 126336  # the table needs no torch
    message = r"llada-8b-base \(it imports torch\) needs the extra 'torch': pip install 'dllm-setscore\[torch\]'"
    with pytest.raises(MissingExtraError, match=message):
        load_backbone("llada-8b-base")


def test_names_and_options():
    with pytest.raises(
        BackboneError, match=r"unknown backbone 'llada-8b-bas'. Did you mean 'llada-8b-base'\?.* Or hf:<id>"
    ):
        load_backbone("llada-8b-bas")
    with pytest.raises(BackboneError, match=r"unknown option of llada-8b-base 'dtyp'. Did you mean 'dtype'"):
        load_backbone("llada-8b-base?dtyp=int8")
    with pytest.raises(BackboneError, match="unknown dtype 'int5'"):
        load_backbone("llada-8b-base?dtype=int5")
    with pytest.raises(BackboneError, match="the option chat is true or false, got 'perhaps'"):
        load_backbone("llada-8b-base?chat=perhaps")
    with pytest.raises(BackboneError, match="setscore-mini is int8 on the CPU and has one version; leave out dtype"):
        load_backbone("setscore-mini?dtype=bf16")
    assert load_backbone("setscore-mini?prior=true").adjustment.prior
