"""The wording: the paper's prompt to the letter, literal replacement, and errors that say what to write instead."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setscore.errors import TemplateError, VerbalizerError
from setscore.prompts import LAYOUTS, QUESTIONS, VERBALIZERS, Template, Verbalizer
from setscore.records import Query, Slot

texts = st.text(st.characters(exclude_categories=["Cs"]))


def as_text(query: Query) -> str:
    """What the backbone reads, with <slot> where it answers."""
    return (
        query.prefix
        + query.document
        + "".join("<slot>" if isinstance(piece, Slot) else piece for piece in query.question)
    )


def test_the_default_prompt_is_the_papers_to_the_letter():
    # The slot follows "Answer:" with nothing between: the space belongs to the answer, so one more would be read twice.
    query = Template.of("express").query("Crude prices fell.", "oil")
    assert as_text(query) == (
        "Document:\nCrude prices fell.\n\nQuestion: Does this document express oil?\nAnswer:<slot>"
    )


@pytest.mark.parametrize(
    ("layout", "prompt"),
    [
        ("paper", "Document:\nD\n\nQuestion: Is this article about L?\nAnswer:<slot>"),
        ("compact", "Document:\nD\nQuestion: Is this article about L?\nAnswer:<slot>"),
        ("line", "Document: D Question: Is this article about L? Answer:<slot>"),
        ("stop", "Document: D. Question: Is this article about L? Answer:<slot>"),
    ],
)
def test_layouts(layout, prompt):
    assert as_text(Template.of("article-about", layout=layout).query("D", "L")) == prompt


def test_every_layout_is_covered_above():
    assert set(LAYOUTS) == {"paper", "compact", "line", "stop"}


def test_a_query_keeps_the_document_apart_and_ends_in_one_open_slot():
    # Shared attention computes the document once for all labels, so it must not hold anything of the question.
    query = Template.of("express").query("D", "L")
    assert (query.prefix, query.document) == ("Document:\n", "D")
    assert query.question == ("\n\nQuestion: Does this document express L?\nAnswer:", Slot(None))
    assert query.open_slots == 1


PAPER_QUESTIONS = {
    "express": "Does this document express L?",
    "comment-topic": "Is the main topic of this comment L?",
    "writer-expresses": "Does the writer express L?",
    "writer-feeling": "Is the writer feeling L?",
    "article-topic": "Is the main topic of this article L?",
    "article-about": "Is this article about L?",
    "article-concerns": "Does this article concern L?",
    "legal-topic": "Is the main legal topic of this document L?",
    "eu-concerns": "Does this EU legal document concern L?",
    "eu-about": "Is this EU legal document about L?",
    "case-concerns": "Does this case concern L?",
    "case-about": "Is this case about L?",
    "case-violation": "Does this case involve a violation of L?",
    "comment-is": "Is this comment L?",
    "comment-contains": "Does this comment contain L?",
    "comment-classified": "Can this comment be classified as L?",
}


def test_the_sixteen_questions_of_the_papers_sweep_have_names():
    # Published names are never redefined: a saved experiment must ask the same question tomorrow.
    assert len(PAPER_QUESTIONS) == 16
    assert {name: question.replace("{label}", "L") for name, question in QUESTIONS.items()} == PAPER_QUESTIONS


@pytest.mark.parametrize("name", PAPER_QUESTIONS)
def test_every_named_question_is_a_template(name):
    template = Template.of(name)
    assert as_text(template.query("D", "L")) == f"Document:\nD\n\nQuestion: {PAPER_QUESTIONS[name]}\nAnswer:<slot>"
    assert not template.label_first


@given(document=texts, label=texts)
@example("{label}", "{document}")
@example("{document}{label}", "{label}{document}")
@example("{}", "{0}")
@example("%s %(label)s", "%d")
@example("\\1 \\g<0> \\", "\\n")
@example("{question}", "$label")
def test_replacement_is_literal(document, label):
    query = Template.of("Is {label}, yes {label}, here?").query(document, label)
    expected = f"Document:\n{document}\n\nQuestion: Is {label}, yes {label}, here?\nAnswer:<slot>"
    assert as_text(query) == expected
    assert query.document == document


@given(document=texts, label=texts)
@example("{label}", "{document}")
def test_replacement_is_literal_before_the_document_too(document, label):
    query = Template("About {label}:\n{document}\nIs it {label}?").query(document, label)
    assert (query.prefix, query.document) == (f"About {label}:\n", document)
    assert query.question == (f"\nIs it {label}?", Slot())


@pytest.mark.parametrize(
    ("wording", "message"),
    [
        ("Is it so?", "the template has no {label}, so every question would be the same: 'Document:"),
        ("{document} so?", "the template has no {label}, so every question would be the same: '{document} so?'"),
        ("{document} {document} {label}?", "{document} exactly once, this one 2 times: '{document} {document} {label}"),
        ("{document} is {labl}?", "the template holds '{labl}'; only {document} and {label} may stand in braces"),
        ("Is it {}, {label}?", "the template holds '{}'; only {document} and {label}"),
        ("Is it {label!r}?", "the template holds '{label!r}'; only"),
        ("Is it {{label}}?", "the template holds '{}'; only"),
        ("Is it {question} {label}?", "the template holds '{question}'; only"),
        ("Is it {label} or {?", "the template holds '{'; only"),
        ("Is it {label} or }?", "a brace on its own is not allowed: 'Document:"),
        # Taking the inner place out must not make a new one of what is left.
        ("{doc{label}ument} {label}", "the template holds '{document}'; only"),
        ("{document} is {label}: ", "the template ends in white space; the answer follows its end directly"),
        ("{document} is {label}\n", "Strip it: '{document} is {label}\\n'"),
        ("expres", "unknown template 'expres'. Did you mean 'express'? Known: article-about, "),
        ("expres", "Or write a question with {label}."),
        ("zzz", "unknown template 'zzz'. Known: article-about, "),
        ("", "unknown template ''. Known: "),
        ("Is \ud800 {label}?", "the template holds a lone surrogate (U+D800) at character "),
    ],
)
def test_a_wording_that_cannot_be_used_says_why(wording, message):
    with pytest.raises(TemplateError) as error:
        Template.of(wording)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Is it {label}?", "a template has {document} exactly once, this one 0 times: 'Is it {label}?'"),
        (" \n", "the template is empty or blank."),
        (None, "the template is None, not a text."),
    ],
)
def test_a_whole_prompt_needs_a_document(text, message):
    with pytest.raises(TemplateError) as error:
        Template(text)
    assert str(error.value) == message


def test_unknown_layout():
    with pytest.raises(TemplateError) as error:
        Template.of("express", layout="compct")
    assert str(error.value) == "unknown layout 'compct'. Did you mean 'compact'? Known: compact, line, paper, stop."


def test_a_template_passes_through_unchanged():
    template = Template("{document} {label}?")
    assert Template.of(template) is template
    assert Template.of("{document} {label}?") == template


@pytest.mark.parametrize(
    ("text", "label_first"),
    [("{document} {label}?", False), ("{label}? {document}", True), ("{label} {document} {label}", True)],
)
def test_label_first(text, label_first):
    assert Template(text).label_first is label_first


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("yes/no", ("yes", "no")),
        ("true/false", ("true", "false")),
        ("relevant/irrelevant", ("relevant", "irrelevant")),
        ("present/absent", ("present", "absent")),
    ],
)
def test_verbalizers_by_name(name, answers):
    verbalizer = Verbalizer.of(name)
    assert (verbalizer.yes, verbalizer.no) == answers
    assert Verbalizer.of(verbalizer) is verbalizer


def test_every_verbalizer_is_covered_above():
    assert set(VERBALIZERS) == {"yes/no", "true/false", "relevant/irrelevant", "present/absent"}


def test_unknown_verbalizer():
    with pytest.raises(VerbalizerError) as error:
        Verbalizer.of("yes/non")
    assert str(error.value) == (
        "unknown verbalizer 'yes/non'. Did you mean 'yes/no'?"
        " Known: present/absent, relevant/irrelevant, true/false, yes/no."
    )
