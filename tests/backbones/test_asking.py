"""What backbones with a tokenizer share: prompts as tokens, and adjustments."""

import functools
import math

import pytest
import tokenizer_kinds
from hypothesis import example, given, settings
from hypothesis import strategies as st

from setscore.backbones.asking import Adjustment, Prompter
from setscore.backbones.base import BackboneSpec
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError
from setscore.prompts import Template, Verbalizer

SPEC = BackboneSpec(
    name="made up", family="none", summary="", parameters=0, context=4000, attention=("exact",), licence="",
    mask="[MASK]", leading_space=True,
)  # fmt: skip
TEMPLATES = {
    "paper": Template.of("express"),
    "compact": Template.of("express", "compact"),
    "line": Template.of("express", "line"),
    "listed": Template("Document:\n{document}\n\n- Does it concern {label}?\nAnswer:"),
    "spaced": Template("Text: {document}\nQuestion: Does it concern {label}?\nAnswer:"),
}
PARTS = ["Crude", "prices", " ", "\n", "\n\n", ".", "?", "rain", "[MASK]", "[SEP]", "日本", "🙂", "é", "é", "9"]
TEXTS = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(PARTS),
        max_size=9,
    ).map("".join),
)  # fmt: skip


@functools.cache
def prompter(kind):
    return Prompter(SPEC, TextTokenizer(tokenizer_kinds.tokenizer(kind)), Verbalizer("yes", "no"))


def parted(kind, query, **options):
    """The document's and the question's tokens, the latter without the slot at its end."""
    ((document, (question,)),) = prompter(kind).documents([query], **options).items()
    assert question.tokens[-1] == prompter(kind).mask
    return document, question.tokens[:-1]


@pytest.mark.parametrize("kind", tokenizer_kinds.KINDS)
@pytest.mark.parametrize("layout", TEMPLATES)
@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
@example("Crude prices fell again.")
@example("")
@example("ends in a line\n")
@example("ends in a space ")
@example(" begins with one")
@example("it's: (a)")
def test_a_prompt_has_the_tokens_of_one_text(kind, layout, text):
    """The paper tokenises its prompt whole; parting document and question must not change a token."""
    query = TEMPLATES[layout].query(text, "oil")
    document, question = parted(kind, query)
    assert document + question == prompter(kind).tokenizer.ids(query.prefix + query.document + query.question[0])


def test_sentencepiece_puts_a_space_before_a_question_that_begins_without_one():
    """Such a prompt cannot be parted: no text alone becomes a piece that continues a word."""
    query = Template('Read "{document}". Does it concern {label}?').query("Crude prices fell again", "oil")
    whole = query.prefix + query.document + query.question[0]
    for kind in tokenizer_kinds.KINDS:
        document, question = parted(kind, query)
        tokenizer = prompter(kind).tokenizer
        assert document + question == (
            tokenizer.ids(whole) if kind != "unigram" else document + tokenizer.ids(query.question[0])
        )


@pytest.mark.parametrize("kind", tokenizer_kinds.KINDS)
@pytest.mark.parametrize("layout", TEMPLATES)
@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
@example("Crude prices fell again.")
@example("")
@example("[MASK]")
def test_guidance_masks_the_documents_tokens_and_no_others(kind, layout, text):
    """A token that the document shares with the space before it is the document's."""
    query, tokenizer = TEMPLATES[layout].query(text, "oil"), prompter(kind).tokenizer
    document, question = parted(kind, query, masked=True)
    whole, start = query.prefix + query.document, len(query.prefix)
    expected = [
        prompter(kind).mask if end > start else number
        for number, (_, end) in zip(tokenizer.ids(whole), tokenizer.spans(whole), strict=True)
    ]
    assert list(document) == expected
    assert question == tokenizer.ids(query.question[0])
    words = [number for number in document if number != prompter(kind).mask]
    assert tuple(words) == tokenizer.ids(query.prefix)[: len(words)]  # nothing of the wording is hidden


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guidance": math.nan}, "guidance is a finite number, 0 (off) or more, got nan."),
        ({"guidance": math.inf}, "guidance is a finite number, 0 (off) or more, got inf."),
        ({"guidance": -0.5}, "guidance is a finite number, 0 (off) or more, got -0.5."),
        ({"prior": math.nan}, "prior is true or false, got nan."),
        ({"prior": 1}, "prior is true or false, got 1."),
    ],
)
def test_adjustments_that_would_make_every_score_nan(options, message):
    with pytest.raises(BackboneError) as caught:
        Adjustment(**options)
    assert str(caught.value) == message
