"""The sentence embeddings of the packaged weights."""

import numpy as np
import pytest

from setscore.backbones.mini import default_folder, load_files
from setscore.backbones.tokens import TextTokenizer
from setscore.encoders.embedded import READ, batches, sentence_encoder

TEXTS = [
    "The central bank raised interest rates again to slow inflation.",
    "Rates went up once more, as the bank tries to bring prices down.",
    "The striker scored twice in the final and lifted the cup.",
    "A goalkeeper's late save won the match for the visitors.",
]


@pytest.fixture(scope="module")
def encode():
    return sentence_encoder()


def test_texts_that_mean_alike_are_nearer(encode):
    vectors = encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    cosines = vectors @ vectors.T
    assert min(cosines[0, 1], cosines[2, 3]) > cosines[:2, 2:].max() + 0.1


def test_neither_order_nor_company_matters(encode):
    many = [*TEXTS, "short", " ".join(TEXTS * 8), ""]
    together = encode(many)
    np.testing.assert_allclose(together[::-1], encode(many[::-1]), atol=1e-5)
    np.testing.assert_allclose(together, np.concatenate([encode([text]) for text in many]), atol=1e-5)
    assert encode([]).shape == (0, together.shape[1])


def test_a_text_is_read_as_far_as_training_read_it(encode):
    long = "word " * READ
    np.testing.assert_array_equal(encode([long]), encode([long + "another ending"]))


def test_batches_hold_like_lengths_and_no_slot():
    tokenizer: TextTokenizer = load_files(default_folder(), None)[1]
    texts = ["one " * count for count in (3, 200, 5, 190, 4, 1000)]
    found = list(batches(texts, tokenizer, batch_tokens=512))
    assert sorted(number for numbers, _ in found for number in numbers) == list(range(6))
    for numbers, inputs in found:
        assert inputs["token_ids"].size <= 512 or len(numbers) == 1
        assert inputs["slots"].shape == (len(numbers), 0)
        lengths = inputs["segments"].sum(axis=1).tolist()
        assert lengths == [min(len(tokenizer.ids(texts[number])) + 2, READ) for number in numbers]


def test_a_long_text_costs_what_is_read_of_it(monkeypatch):
    """The same inputs as when the whole text is tokenised, from a beginning that does not grow with it."""
    tokenizer: TextTokenizer = load_files(default_folder(), None)[1]
    texts = [
        "The rain fell again on the plain. " * 3000,
        "x" * 400 + " y" * 9000,
        "日本語" * 5000,
        "a-b!" * 20_000,
        "word",
    ]
    begin, end = tokenizer.special("[CLS]"), tokenizer.special("[SEP]")
    whole = [[*begin, *tokenizer.ids(text)[: READ - 2], *end] for text in texts]
    given = []
    real = TextTokenizer._encoded
    monkeypatch.setattr(TextTokenizer, "_encoded", lambda self, text: given.append(len(text)) or real(self, text))
    for numbers, inputs in batches(texts, tokenizer):
        for number, ids, segments in zip(numbers, inputs["token_ids"], inputs["segments"], strict=True):
            assert ids[segments == 1].tolist() == whole[number]
    assert sum(given) < 4 * len(texts) * 8 * READ
