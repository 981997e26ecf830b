"""What every converter returns: a document and what is known about it, as yes/no questions.

A **label** is a tuple of wordings that mean the same (a name, paraphrases, a description); training draws one of them.
"""

from dataclasses import dataclass

Label = tuple[str, ...]

# The families decide which question wordings fit: "is the writer feeling {label}?" suits no topic.
FAMILIES = ("topic", "emotion", "sentiment", "toxicity", "intent", "style", "other", "written", "statement")


@dataclass(frozen=True)
class Row:
    """One document with labels that apply (`yes`), labels that do not (`no`), and whole questions with their answer."""

    source: str
    document: str
    family: str = "other"
    yes: tuple[Label, ...] = ()
    no: tuple[Label, ...] = ()
    asks: tuple[tuple[str, bool], ...] = ()
    questions: tuple[str, ...] = ()
    """Wordings with `{label}` that fit this source, beside those of its family."""
    answer: str | None = None
    """For the masked-diffusion objective: the text that answers `document`."""
    name: str = ""
    """Of a written row, for its twin."""
    twin: str = ""
    """The name of a nearly equal text of which some label's answer is the other one."""
