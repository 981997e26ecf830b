"""The exported graph against a literal transformer with a dense mask, on small random weights.

The oracle computes every token with the rule "a token sees segment 1 and its own segment" and nothing else; the graph
takes all its short cuts (flat tokens, block attention, last layer at the slots only).
"""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from scipy.special import erf, softmax

from recipes import readback
from recipes.graph import Shape, export, layer_weight
from recipes.quantize import COPIES, WEIGHT_LIMIT, Observed, merge, quantize
from setscore.backbones.asking import Question, make_rows, pack

SHAPE = Shape(layers=3, width=32, heads=4)
VOCABULARY, POSITIONS = 50, 64
ANSWERS = np.array([5, 9])
GRID = ("token_ids", "positions", "segments")


@pytest.fixture(scope="module")
def weights():
    return random_weights(SHAPE)


def random_weights(shape):
    random = np.random.default_rng(0)
    width = shape.width

    def linear(name, rows, columns):
        return {
            f"{name}.weight": random.normal(size=(rows, columns)) / np.sqrt(columns),
            f"{name}.bias": random.normal(size=rows) * 0.1,
        }

    def norm(name):
        return {f"{name}.weight": random.uniform(0.5, 1.5, width), f"{name}.bias": random.normal(size=width) * 0.1}

    made = {
        "word.weight": random.normal(size=(VOCABULARY, width)),
        "pos.weight": random.normal(size=(POSITIONS, width)) * 0.5,
        "typ.weight": random.normal(size=(2, width)) * 0.1,
        "b": random.normal(size=VOCABULARY),
        **norm("ln"), **norm("tn"), **linear("t", width, width),
    }  # fmt: skip
    for layer in range(shape.layers):
        p = f"l.{layer}"
        made |= linear(f"{p}.qkv", 3 * width, width) | linear(f"{p}.o", width, width) | norm(f"{p}.n1")
        made |= linear(f"{p}.u", 4 * width, width) | linear(f"{p}.d", width, 4 * width) | norm(f"{p}.n2")
    return {name: value.astype(np.float32) for name, value in made.items()}


class Literal:
    """The transformer's parts, in float64."""

    def __init__(self, weights):
        self.w = {name: value.astype(np.float64) for name, value in weights.items()}

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, name, x):
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + SHAPE.epsilon)
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def gelu(self, x):
        return x * (1 + erf(x / np.sqrt(2))) / 2


def hidden_states(weights, packed):
    """[B, N, H] after the last layer."""
    part = Literal(weights)
    w, linear, norm, gelu = part.w, part.linear, part.norm, part.gelu
    mine, theirs = packed.segments[:, :, None], packed.segments[:, None, :]
    sees = (theirs > 0) & ((theirs == 1) | (theirs == mine))
    x = norm("ln", w["word.weight"][packed.token_ids] + w["pos.weight"][packed.positions] + w["typ.weight"][0])
    for layer in range(SHAPE.layers):
        p = f"l.{layer}"
        joint = linear(f"{p}.qkv", x).reshape(*x.shape[:2], 3, SHAPE.heads, SHAPE.head_width)
        query, key, value = joint.transpose(2, 0, 3, 1, 4)
        scores = query @ key.swapaxes(-1, -2) / np.sqrt(SHAPE.head_width)
        scores = np.where(sees[:, None], scores, -1e30)
        attended = (softmax(scores, axis=-1) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(f"{p}.n1", x + linear(f"{p}.o", attended))
        x = norm(f"{p}.n2", x + linear(f"{p}.d", gelu(linear(f"{p}.u", x))))
    return x


def oracle(weights, packed):
    """log p(yes) - log p(no) at the slots, from full softmaxes over the vocabulary."""
    part = Literal(weights)
    hidden = np.take_along_axis(hidden_states(weights, packed), packed.slots[..., None], axis=1)
    logits = part.norm("tn", part.gelu(part.linear("t", hidden))) @ part.w["word.weight"].T + part.w["b"]
    probabilities = softmax(logits, axis=-1)[..., ANSWERS]
    return np.log(probabilities[..., 0]) - np.log(probabilities[..., 1])


def embedding_oracle(weights, packed):
    """The mean of the document's hidden states, of length 1: what the training loss compares (`pooled` of model.py)."""
    x, document = hidden_states(weights, packed), packed.segments == 1
    mean = np.array([row[seen].mean(axis=0) for row, seen in zip(x, document, strict=True)])
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def packed_batch(seed, *, shared):
    """Documents and questions of unequal lengths and numbers, so that every kind of padding occurs."""
    random = np.random.default_rng(seed)

    def tokens(low, high):
        return tuple(random.integers(1, VOCABULARY, random.integers(low, high)).tolist())

    groups, number = {}, 0
    for _ in range(4):
        questions = []
        for _ in range(random.integers(1, 5)):
            text = tokens(2, 9)
            questions.append(Question(number, text, (len(text) - 1,)))
            number += 1
        groups[tokens(3, 20)] = questions
    return pack(make_rows(groups, shared=shared, row_tokens=1000), shared=shared)


def log_odds(found):
    return found["logits"][..., 0] - found["logits"][..., 1]


def run(model, packed, names=("logits",), embedded=None):
    """The outputs `names`; `embedded` are the rows to embed, all of them unless given."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = {name: getattr(packed, name) for name in ("token_ids", "positions", "segments", "slots")}
    rows = np.arange(len(packed.slots)) if embedded is None else np.array(embedded, dtype=np.int64)
    return dict(zip(names, session.run(list(names), inputs | {"words": ANSWERS, "embedded": rows}), strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shared", [True, False])
def test_fp32_graph_equals_the_literal_transformer(weights, seed, shared):
    packed = packed_batch(seed, shared=shared)
    difference = log_odds(run(export(weights, SHAPE), packed)) - oracle(weights, packed)
    assert np.abs(difference[packed.owners >= 0]).max() < 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_fp32_embedding_is_the_mean_that_training_compares(weights, seed):
    packed = packed_batch(seed, shared=True)
    given, model = embedding_oracle(weights, packed), export(weights, SHAPE)
    assert np.abs(run(model, packed, ["embedding"])["embedding"] - given).max() < 1e-5
    some = run(model, packed, ["embedding"], embedded=[3, 1])["embedding"]
    np.testing.assert_allclose(some, given[[3, 1]], atol=1e-5)


def test_questions_do_not_move_the_embedding_of_their_document(weights):
    packed, model = packed_batch(1, shared=True), export(weights, SHAPE)
    alone = replace(
        packed,
        **{name: getattr(packed, name)[:, : (packed.segments == 1).sum(1).max()] for name in GRID},
        slots=np.zeros((len(packed.slots), 0), dtype=np.int64),
    )
    asked, bare = (run(model, rows, ["logits", "embedding"]) for rows in (packed, alone))
    np.testing.assert_allclose(asked["embedding"], bare["embedding"], atol=1e-6)
    assert bare["logits"].shape == (len(packed.slots), 0, len(ANSWERS))  # no slot, no head


def test_logits_are_the_same_bits_with_and_without_embeddings(weights):
    packed, model = packed_batch(2, shared=True), export(weights, SHAPE)
    with_, without = (run(model, packed, ["logits", "embedding"], embedded=rows) for rows in (None, []))
    assert np.array_equal(with_["logits"], without["logits"])
    assert without["embedding"].shape == (0, SHAPE.width)


def observed_on(weights, batches, shape=SHAPE):
    model = export(weights, shape, observe=True)
    names = [output.name for output in model.graph.output if output.name not in ("logits", "embedding")]
    layers = sorted({name.rpartition(".")[0] for name in names})
    found = (run(model, packed, names) for packed in batches)
    return merge(
        {n: Observed(*(f[f"{n}.{part}"] for part in ("low", "high", "moments"))) for n in layers} for f in found
    )


def test_int8_graph_stays_near_fp32_in_both_modes(weights):
    observed = observed_on(weights, [packed_batch(seed, shared=seed % 2 == 0) for seed in range(20)])
    layers = {name: quantize(layer_weight(weights, SHAPE, name), seen) for name, seen in observed.items()}
    model = export(weights, SHAPE, quantized=layers)
    for shared in (True, False):
        packed = packed_batch(100, shared=shared)
        full = oracle(weights, packed)[packed.owners >= 0]
        small = log_odds(run(model, packed))[packed.owners >= 0]
        assert np.sqrt(((full - small) ** 2).mean()) < 0.1 * full.std()
    packed = packed_batch(100, shared=True)
    assert (run(model, packed, ["embedding"])["embedding"] * embedding_oracle(weights, packed)).sum(1).min() > 0.995


def test_float_weights_are_read_back_out_of_the_int8_graph():
    """Every weight within the steps that rounding took, and a graph that answers as the one they come from does."""
    shape = Shape(layers=3, width=64, heads=2)  # heads of 32, as in the packaged models
    weights = random_weights(shape)
    observed = observed_on(weights, [packed_batch(seed, shared=seed % 2 == 0) for seed in range(20)], shape)
    layers = {name: quantize(layer_weight(weights, shape, name), seen) for name, seen in observed.items()}
    small = export(weights, shape, quantized=layers)
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in small.graph.initializer}
    found = readback.weights(stored)
    assert found.keys() == weights.keys()
    for name, value in weights.items():
        if name not in ("pos.weight", "typ.weight"):
            assert found[name].shape == value.shape
            off = np.abs(found[name] - value).max()
            assert off <= (0.1 if value.ndim == 2 else 1e-5) * np.abs(value).max(), name
    positions = weights["pos.weight"] + weights["typ.weight"][0]
    np.testing.assert_allclose(found["pos.weight"] + found["typ.weight"][0], positions, atol=1e-5)
    packed = packed_batch(100, shared=True)
    again = log_odds(run(export({n: v.astype(np.float32) for n, v in found.items()}, shape), packed))
    theirs, used = log_odds(run(small, packed)), packed.owners >= 0
    assert np.sqrt(((again - theirs)[used] ** 2).mean()) < 0.1 * theirs[used].std()


def loud_inputs(seed=1):
    """Inputs that move together, with one channel thirty times as loud as the others."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(500, 8)) @ random.normal(size=(8, 24)) + 0.3 * random.normal(size=(500, 24))
    x[:, 3] *= 30
    return x


def test_quantised_layer_keeps_its_outputs():
    x, weight = loud_inputs(), np.random.default_rng(2).normal(size=(16, 24))
    layer = quantize(weight, Observed(x.min(0), x.max(0), x.T @ x))
    codes = np.clip(np.rint(x / layer.scale) + layer.zero, 0, 255)
    assert codes.min() > 0  # the observed range fits with its margin
    assert codes.max() < 255
    widened = np.concatenate([codes, codes[:, layer.copies]], axis=1) - layer.zero
    y, exact = widened @ layer.codes.astype(np.float64) * layer.step, x @ weight.T
    assert np.abs(layer.codes).max() <= WEIGHT_LIMIT  # else x86 without VNNI saturates
    assert layer.codes.shape == (24 + COPIES, 16)
    assert (layer.copies == 3).sum() >= COPIES // 2  # the loud channel gets most of the copies
    assert np.sqrt(((y - exact) ** 2).mean()) < 0.01 * exact.std()


def test_compensated_rounding_beats_plain_rounding():
    x, weight = loud_inputs(), np.random.default_rng(2).normal(size=(16, 24))
    layer = quantize(weight, Observed(x.min(0), x.max(0), x.T @ x))
    folded = weight.T * layer.scale[:, None]
    step = np.abs(folded).max(0) / WEIGHT_LIMIT
    plain = x @ (np.rint(folded / step) * step / layer.scale[:, None])
    merged = layer.codes[:24].astype(np.float64)
    np.add.at(merged, layer.copies, layer.codes[24:].astype(np.float64))
    ours = x @ (merged * layer.step / layer.scale[:, None])
    exact = x @ weight.T
    assert np.square(ours - exact).mean() < 0.25 * np.square(plain - exact).mean()


def test_two_constants_of_one_name_are_refused():
    from recipes.builder import Builder

    builder = Builder()
    builder.constant(np.zeros(3), "weight")
    with pytest.raises(ValueError, match="two constants are called 'weight'"):
        builder.constant(np.ones(3), "weight")
