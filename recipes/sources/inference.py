"""Texts with what follows from them: SNLI (a caption and sentences about it) and BoolQ (a passage and a question).

A sentence of SNLI is a label of its caption: one that follows applies, one that contradicts it or cannot be known from
it does not.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recipes.sources.rows import Label, Row

SNLI, BOOLQ = "snli", "boolq"
SIDES = {"entailment": True, "neutral": False, "contradiction": False}


def captions(records: Iterable[Mapping[str, Any]]) -> Iterator[Row | None]:
    """One row for each caption with all its sentences; None for a sentence on which annotators did not agree."""
    found: dict[str, dict[bool, dict[Label, None]]] = defaultdict(lambda: {True: {}, False: {}})
    for record in records:
        if (side := SIDES.get(record["label"])) is None:
            yield None
            continue
        found[record["premise"].strip()][side][(record["hypothesis"].strip(" ."),)] = None
    for premise, sides in found.items():
        no = tuple(label for label in sides[False] if label not in sides[True])
        yield Row(SNLI, premise, "statement", tuple(sides[True]), no)


def convert_question(record: Mapping[str, Any]) -> Row | None:
    """The passage, its title the first sentence, and the question as it was asked."""
    passage, question = record["passage"].replace(" -- ", ". ", 1), record["question"].strip(" ?")
    if not question or not isinstance(record["answer"], bool):
        return None
    asked = (f"{question}?", f"According to the text, {question}?")
    return Row(BOOLQ, passage, asks=tuple((text, record["answer"]) for text in asked))
