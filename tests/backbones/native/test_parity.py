"""Our transformer against transformers' own modules and against literal oracles, on each family's true tensor names.

Everything is fp32, and no score may differ by more than 1e-4.
"""

import json

import checkpoints
import oracles
import pytest
import torch

from setscore.backbones.asking import Question, Row
from setscore.backbones.native.architecture import family_of, read_architecture
from setscore.backbones.native.layout import lay_out
from setscore.backbones.native.names import NAMES
from setscore.backbones.native.weights import load_weights, weight_files

CLOSE = 1e-4
YES, NO = 17, 23


def loaded(folder):
    config = json.loads((folder / "config.json").read_text())
    names, architecture = NAMES[family_of(config)], read_architecture(config)
    return load_weights(weight_files(folder), architecture, names, device="cpu", dtype=torch.float32)


def rows(block=0, seed=3):
    """Two documents with questions of different lengths, one question with two slots.

    For a block-causal model documents end on a block boundary and questions fill their last block.
    """
    generator = torch.Generator().manual_seed(seed)

    def tokens(count):
        return tuple(torch.randint(0, 400, (count,), generator=generator).tolist())

    def question(number, count, slots):
        return Question(number, tokens(count + -count % block if block else count), slots)

    lengths = (2 * block, block) if block else (11, 6)
    first = (question(0, 5, (4,)), question(1, 3, (1, 2)), question(2, 5, (3,)))
    return [Row(tokens(lengths[0]), first), Row(tokens(lengths[1]), (question(3, 7, (2,)),))]


def split(rows):
    return [Row(row.document, (question,)) for row in rows for question in row.questions]


def scores(model, rows, *, shared, block=0, shift=0):
    """(query, value) of every slot."""
    layout = lay_out(rows, shared=shared, block=block, shift=shift, device="cpu")
    with torch.inference_mode():
        values = model.log_odds(model(layout), YES, NO)
    return sorted(zip(layout.owners, values.tolist(), strict=True))


def literal(logits_of, rows, *, shared, block=0, shift=0):
    """The same by definition: one row at a time, a whole mask, all logits."""
    found = []
    for row in rows if shared else split(rows):
        tokens, positions, segments, slots = list(row.document), list(range(len(row.document))), [], []
        segments = [0] * len(tokens)
        for number, question in enumerate(row.questions, start=1):
            slots += [(question.query, len(tokens) + slot - shift) for slot in question.slots]
            tokens += question.tokens
            positions += range(len(row.document), len(row.document) + len(question.tokens))
            segments += [number if shared else 0] * len(question.tokens)
        logits = logits_of(tokens, positions, oracles.sees(segments, positions, block))
        found += [(query, float(logits[place, YES] - logits[place, NO])) for query, place in slots]
    return sorted(found)


def assert_close(found, expected):
    assert [query for query, _ in found] == [query for query, _ in expected]
    assert max(abs(a - b) for (_, a), (_, b) in zip(found, expected, strict=True)) < CLOSE
    assert max(abs(value) for _, value in expected) > 0.1  # there is something to compare


def hugging(model):
    return lambda *row: oracles.hugging_logits(model, *row)


@pytest.fixture(params=["exact", "shared"])
def shared(request):
    return request.param == "shared"


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize(("tied", "bias"), [(False, False), (True, False), (False, True)])
def test_llada_is_llama_seen_from_both_sides(tmp_path, shards, tied, bias, shared):
    reference = checkpoints.hugging_llama(tied=tied, bias=bias)
    state = checkpoints.state_of(reference, llada=True)
    if bias:  # Llama has a bias at the output too, LLaDA at q, k and v only
        for layer in reference.model.layers:
            layer.self_attn.o_proj.bias.data.zero_()
        state = {k: v for k, v in state.items() if not k.endswith("attn_out.bias")}
    config = checkpoints.LLADA_CONFIG | {"weight_tying": tied, "include_qkv_bias": bias}
    model = loaded(checkpoints.write(tmp_path, config, state, shards=shards))
    asked = rows() if shared else split(rows())
    assert_close(scores(model, asked, shared=shared), literal(hugging(reference), asked, shared=shared))


@pytest.mark.parametrize("shards", [1, 3])
def test_dream_is_qwen2_seen_from_both_sides_and_read_one_place_earlier(tmp_path, shards, shared):
    reference = checkpoints.hugging_qwen()
    state = checkpoints.state_of(reference)
    model = loaded(checkpoints.write(tmp_path, checkpoints.DREAM_CONFIG, state, shards=shards))
    asked = rows() if shared else split(rows())
    expected = literal(hugging(reference), asked, shared=shared, shift=1)
    assert_close(scores(model, asked, shared=shared, shift=1), expected)
    unshifted = scores(model, asked, shared=shared, shift=0)
    assert max(abs(a - b) for (_, a), (_, b) in zip(unshifted, expected, strict=True)) > 0.1


@pytest.mark.parametrize("tied", [False, True])
def test_illada_has_grouped_keys_and_a_tied_head(tmp_path, tied, shared):
    reference = checkpoints.hugging_qwen(tied=tied)
    for layer in reference.model.layers:
        for part in "qkv":
            getattr(layer.self_attn, f"{part}_proj").bias.data.zero_()
    state = {name: tensor for name, tensor in checkpoints.state_of(reference).items() if not name.endswith("bias")}
    config = checkpoints.ILLADA_CONFIG | {"tie_word_embeddings": tied}
    model = loaded(checkpoints.write(tmp_path, config, state))
    asked = rows() if shared else split(rows())
    assert_close(scores(model, asked, shared=shared), literal(hugging(reference), asked, shared=shared))


def test_sdar_is_qwen3_in_blocks(tmp_path, shared):
    reference = checkpoints.hugging_qwen("Qwen3", head_dim=16)
    model = loaded(checkpoints.write(tmp_path, checkpoints.SDAR_CONFIG, checkpoints.state_of(reference)))
    asked = rows(4) if shared else split(rows(4))
    assert_close(
        scores(model, asked, shared=shared, block=4), literal(hugging(reference), asked, shared=shared, block=4)
    )


@pytest.mark.parametrize("shards", [1, 5])
def test_llada2_with_experts_partial_rotation_and_blocks(tmp_path, shards, shared):
    state = checkpoints.llada2_state()
    model = loaded(checkpoints.write(tmp_path, checkpoints.LLADA2_CONFIG, state, shards=shards))
    asked = rows(4) if shared else split(rows(4))

    def reference(*row):
        return oracles.llada2_logits(state, checkpoints.LLADA2_CONFIG, *row)

    assert_close(scores(model, asked, shared=shared, block=4), literal(reference, asked, shared=shared, block=4))


def test_llada_moe_with_softmax_experts(tmp_path, shared):
    state = checkpoints.llada_moe_state()
    model = loaded(checkpoints.write(tmp_path, checkpoints.LLADA_MOE_CONFIG, state))
    asked = rows() if shared else split(rows())

    def reference(*row):
        return oracles.llada_moe_logits(state, checkpoints.LLADA_MOE_CONFIG, *row)

    assert_close(scores(model, asked, shared=shared), literal(reference, asked, shared=shared))


def test_shared_attention_is_exact_for_blocks_and_an_approximation_otherwise(tmp_path):
    model = loaded(checkpoints.write(tmp_path, checkpoints.LLADA2_CONFIG, checkpoints.llada2_state()))
    together, alone = rows(4), split(rows(4))
    assert_close(scores(model, together, shared=True, block=4), scores(model, alone, shared=False, block=4))
    differences = zip(scores(model, together, shared=True), scores(model, alone, shared=False), strict=True)
    assert max(abs(a - b) for (_, a), (_, b) in differences) > 0.01


def test_batched_equals_one_by_one(tmp_path, shared):
    reference = checkpoints.hugging_llama()
    state = checkpoints.state_of(reference, llada=True)
    model = loaded(checkpoints.write(tmp_path, checkpoints.LLADA_CONFIG, state))
    asked = split(rows())
    alone = sorted(score for row in asked for score in scores(model, [row], shared=shared))
    assert_close(scores(model, asked, shared=shared), alone)
    assert_close(scores(model, asked[::-1], shared=shared), alone)
    if shared:
        assert_close(scores(model, rows(), shared=True), alone)


def test_the_answers_share_of_the_vocabulary(tmp_path):
    reference = checkpoints.hugging_llama()
    state = checkpoints.state_of(reference, llada=True)
    model = loaded(checkpoints.write(tmp_path, checkpoints.LLADA_CONFIG, state))
    (row,) = split(rows())[:1]
    tokens = [*row.document, *row.questions[0].tokens]
    mask = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
    logits = oracles.hugging_logits(reference, tokens, list(range(len(tokens))), mask)
    expected = logits[len(row.document) + 4].softmax(-1)[[YES, NO]].sum()
    with torch.inference_mode():
        hidden = model(lay_out([row], shared=False, block=0, shift=0, device="cpu"))
        assert model.answer_mass(hidden, YES, NO).item() == pytest.approx(expected.item(), abs=1e-5)
