"""Text to tokens: what a text spells is never a special token, however long it is."""

import pytest
import tokenizer_kinds

from setscore.backbones.tokens import TextTokenizer

MANY = 20_000


class Counting:
    """A tokenizer that counts what it is given."""

    def __init__(self, tokenizer):
        self._tokenizer, self.calls, self.characters = tokenizer, 0, 0

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def encode(self, text, **options):
        self.calls += 1
        self.characters += len(text)
        return self._tokenizer.encode(text, **options)


def counting(kind):
    tokenizer = TextTokenizer(tokenizer_kinds.KINDS[kind]())
    tokenizer._tokenizer = Counting(tokenizer._tokenizer)
    return tokenizer


@pytest.mark.parametrize("kind", tokenizer_kinds.KINDS)
@pytest.mark.parametrize(
    "text",
    ["[MASK]" * MANY, "[MASK] " * MANY, "[SEP][MASK][PAD] a " * (MANY // 3), "[[MASK]" * MANY, "[MASK" * MANY],
    ids=["together", "apart", "mixed", "doubled", "unfinished"],
)  # fmt: skip
def test_many_spellings_of_special_tokens_take_time_in_proportion(kind, text):
    """Each is cut inside, and its parts are read again: in a loop, and each character a few times at most."""
    tokenizer = counting(kind)
    encoded = tokenizer._encoded(text)
    specials = set(tokenizer.special(*tokenizer_kinds.SPECIALS)) - set(tokenizer.special("[UNK]"))
    assert not specials & {number for number, _ in encoded}
    assert tokenizer._tokenizer.characters <= 3 * len(text)
    assert tokenizer._tokenizer.calls <= len(text)
    spans = [span for _, span in encoded]
    assert spans == sorted(spans)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text.rstrip()) or kind != "word_pieces"


def test_the_vocabulary_of_unigram_has_its_special_tokens_among_all_others():
    """Else the test above would show nothing of it."""
    tokenizer = counting("unigram")
    tokenizer.ids("[MASK]")
    assert tokenizer._tokenizer.calls > 1
