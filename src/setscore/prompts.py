"""The wording: where the document and the label go, and which answers are compared.

Replacement is literal, never `str.format`: braces in a document or a label are just text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from setscore.errors import TemplateError, VerbalizerError, unknown_name
from setscore.records import Query, Slot, text_problem

# The paper's prompt (appendix "Verbatim prompt templates"), unwrapped. The answer slot follows "Answer:" directly: the
# leading space belongs to the verbalizer. The other layouts stand elsewhere in the paper: in its setup, its body and,
# with a full stop after the document, in its remarks (Q1).
LAYOUTS = {
    "paper": "Document:\n{document}\n\nQuestion: {question}\nAnswer:",
    "compact": "Document:\n{document}\nQuestion: {question}\nAnswer:",
    "line": "Document: {document} Question: {question} Answer:",
    "stop": "Document: {document}. Question: {question} Answer:",
}

# Every question of the paper's sweep (Table "Full prompt-template sweep"), as full sentences.
QUESTIONS = {
    "express": "Does this document express {label}?",
    "comment-topic": "Is the main topic of this comment {label}?",
    "writer-expresses": "Does the writer express {label}?",
    "writer-feeling": "Is the writer feeling {label}?",
    "article-topic": "Is the main topic of this article {label}?",
    "article-about": "Is this article about {label}?",
    "article-concerns": "Does this article concern {label}?",
    "legal-topic": "Is the main legal topic of this document {label}?",
    "eu-concerns": "Does this EU legal document concern {label}?",
    "eu-about": "Is this EU legal document about {label}?",
    "case-concerns": "Does this case concern {label}?",
    "case-about": "Is this case about {label}?",
    "case-violation": "Does this case involve a violation of {label}?",
    "comment-is": "Is this comment {label}?",
    "comment-contains": "Does this comment contain {label}?",
    "comment-classified": "Can this comment be classified as {label}?",
}

_PLACE = re.compile(r"(\{document\}|\{label\})")


@dataclass(frozen=True)
class Template:
    """A whole prompt with `{document}` once and `{label}` at least once; the answer slot follows its end."""

    text: str

    def __post_init__(self) -> None:
        if problem := text_problem(self.text):
            raise TemplateError(f"the template {problem}.")
        rest = _PLACE.sub("", self.text)
        stray = re.search(r"\{[^{}]*\}|[{}]", rest)
        if stray:
            raise TemplateError(
                f"the template holds {stray.group()!r}; only {{document}} and {{label}} may stand in braces,"
                f" and a brace on its own is not allowed: {self.text!r}"
            )
        if "{label}" not in self.text:
            raise TemplateError(f"the template has no {{label}}, so every question would be the same: {self.text!r}")
        documents = self.text.count("{document}")
        if documents != 1:
            raise TemplateError(f"a template has {{document}} exactly once, this one {documents} times: {self.text!r}")
        if self.text != self.text.rstrip():
            raise TemplateError(
                "the template ends in white space; the answer follows its end directly, and a leading space belongs"
                f" to the answer itself. Strip it: {self.text!r}"
            )

    @classmethod
    def of(cls, wording: "str | Template", layout: str = "paper") -> "Template":
        """From the name of a question, a question with `{label}`, or a whole prompt with `{document}` too."""
        if isinstance(wording, Template):
            return wording
        if layout not in LAYOUTS:
            raise TemplateError(unknown_name("layout", layout, LAYOUTS))
        if wording in QUESTIONS:
            wording = QUESTIONS[wording]
        elif not re.search(r"[{}\s]", wording):
            raise TemplateError(unknown_name("template", wording, QUESTIONS) + " Or write a question with {label}.")
        return cls(wording if "{document}" in wording else LAYOUTS[layout].replace("{question}", wording))

    @property
    def label_first(self) -> bool:
        """Whether a label stands before the document; then nothing of the document can be shared between labels."""
        return self.text.index("{label}") < self.text.index("{document}")

    def query(self, document: str, label: str) -> Query:
        """The per-label question: one open slot at the end (Eq. 2)."""
        prefix, question = self.text.split("{document}")
        return Query(prefix.replace("{label}", label), document, (question.replace("{label}", label), Slot()))


# The paper's prompt for all labels at once (the same appendix), unwrapped. No space before a slot: see above.
SUFFIX = (
    "Decide whether each candidate label applies. Use one token per label, in order.\n\n"
    "Document:\n{document}\n\nLabels:\n{labels}\n\nAnswers:\n"
)


_SLOTS = {answer: Slot(answer) for answer in (None, True, False)}  # refinement keeps many queries in memory


@dataclass(frozen=True)
class SetTemplate:
    """A whole prompt for all labels at once: `{document}`, after it `{labels}`; a slot per label follows its end.

    item, between  how a label is written in the list, and what stands between two of them
    separator      what stands between two slots
    inline         whether a slot follows its label instead; then nothing has to be counted to tell whose it is
    """

    text: str = SUFFIX
    item: str = "- {label}"
    between: str = "\n"
    separator: str = ";"
    inline: bool = False

    def __post_init__(self) -> None:
        parts = re.findall(r"\{document\}|\{labels\}", self.text)
        if parts != ["{document}", "{labels}"]:
            raise TemplateError(f"a prompt for all labels has {{document}} once, then {{labels}} once: {self.text!r}")

    @classmethod
    def like(cls, template: Template) -> "SetTemplate":
        """The per-label question about a list of labels; with one label it asks what that question asks."""
        return cls(template.text.replace("{label}", "{labels}"), item="{label}", between=", ")

    def query(self, document: str, labels: Sequence[str], answers: Sequence[bool | None]) -> Query:
        """One slot per label, open where its answer is None (s with the mask set M, Section 3.1)."""
        prefix, rest = self.text.split("{document}")
        written = [self.item.replace("{label}", label) for label in labels]
        if self.inline:
            before, after = rest.split("{labels}")
            written = [(self.between if number else before) + item for number, item in enumerate(written)]
            filled = [piece for item, answer in zip(written, answers, strict=True) for piece in (item, _SLOTS[answer])]
            return Query(prefix, document, (*filled, *([after] if after else [])))
        pieces: list[str | Slot] = [rest.replace("{labels}", self.between.join(written))]
        for number, answer in enumerate(answers):
            pieces += [self.separator] * (number > 0) + [_SLOTS[answer]]
        return Query(prefix, document, tuple(pieces))


# How all labels stand in one prompt, by the name that scorers take as `layout`.
SET_LAYOUTS = {
    "paper": SetTemplate(),
    "compact": SetTemplate(re.sub(r"\n\n", "\n", SUFFIX)),  # as the setup prints it, without empty lines
    "inline": SetTemplate(
        "Decide whether each candidate label applies.\n\nDocument:\n{document}\n\nLabels:\n{labels}",
        item="- {label}:",
        inline=True,
    ),
}


@dataclass(frozen=True)
class Verbalizer:
    """The two answers whose log-probabilities are compared, without a leading space."""

    yes: str
    no: str

    @classmethod
    def of(cls, pair: "str | Verbalizer") -> "Verbalizer":
        if isinstance(pair, Verbalizer):
            return pair
        if pair not in VERBALIZERS:
            raise VerbalizerError(unknown_name("verbalizer", pair, VERBALIZERS))
        return VERBALIZERS[pair]


VERBALIZERS = {
    "yes/no": Verbalizer("yes", "no"),
    "true/false": Verbalizer("true", "false"),
    "relevant/irrelevant": Verbalizer("relevant", "irrelevant"),
    "present/absent": Verbalizer("present", "absent"),
}
