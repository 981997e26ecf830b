"""Text to tokens: what a text spells is never a special token, however long it is."""

import functools

import pytest
import tokenizer_kinds
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore.backbones.mini import default_folder, load_files
from setscore.backbones.tokens import CHARACTERS_OF_A_TOKEN, MOST_CHARACTERS, UNSURE, TextTokenizer

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
    tokenizer = TextTokenizer(tokenizer_kinds.tokenizer(kind))
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


PIECES = ["word ", "x", " ", "word", "🙂", "日本", "[MASK]", "é", "e\u0301", "a.b,", "\n", "internationalisation "]
LONG_TEXTS = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from([1, 2, 7, 40, 130, 400, 900])), min_size=1, max_size=25
).map(lambda pieces: "".join(piece * count for piece, count in pieces))
READERS = [*tokenizer_kinds.KINDS, "mini"]


@functools.cache
def reader(kind):
    return load_files(default_folder(), None)[1] if kind == "mini" else TextTokenizer(tokenizer_kinds.tokenizer(kind))


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=60, deadline=None)
@given(text=LONG_TEXTS, count=st.integers(1, 60))
def test_the_first_tokens_are_those_of_the_whole_text(kind, text, count):
    assert reader(kind).first_ids(text, count) == reader(kind).ids(text)[:count]


ENDLESS = {("word_pieces", "x"), ("unigram", "日本")}  # one unknown token, however long


@pytest.mark.parametrize("kind", tokenizer_kinds.KINDS)
@pytest.mark.parametrize("text", ["rain again. ", "x", "日本", "[MASK] "])
def test_no_more_of_a_text_is_read_than_its_first_tokens_need(kind, text):
    found = []
    for times in (100_000, 300_000):
        tokenizer = counting(kind)
        found.append(tokenizer.first_ids(text * times, 50))
        enough = MOST_CHARACTERS if (kind, text) in ENDLESS else 3 * (CHARACTERS_OF_A_TOKEN * 50 + UNSURE)
        assert tokenizer._tokenizer.characters <= 2 * enough
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["word_pieces", "mini"])  # others have tokens for blanks
def test_blanks_are_read_as_far_as_a_million_characters(kind):
    text = " " * (MOST_CHARACTERS - 100) + "rain" + " " * 3_000_000 + "hail"
    assert reader(kind).first_ids(text, 9) == reader(kind).ids(text[:MOST_CHARACTERS])[:9]
