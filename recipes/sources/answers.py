"""Prompts with a free answer (T0, open tasks): the answer is filled in by masked diffusion, and a short one is a label.

The labels that do not apply are drawn in training from the other answers of the same source.
"""

from collections.abc import Mapping
from typing import Any

from recipes.sources.rows import Row

END = "<|endoftext|>"
LABEL_WORDS = 6
NO_LABELS = frozenset({"yes", "no", "true", "false", "none", "more", "less"})


def convert_t0(record: Mapping[str, Any]) -> Row | None:
    return _row(f"t0_{record['template']}", record["prompt"], record["completion"].replace(END, ""))


def convert_open(record: Mapping[str, Any]) -> Row | None:
    return _row(record["task"], record["input"], str(record["output"][0]))


def _row(source: str, prompt: str, answer: str) -> Row | None:
    prompt, answer = prompt.strip(), " ".join(answer.split())
    if not prompt or not any(character.isalnum() for character in answer):
        return None
    asked = ("Is the answer {label}?", "Is {label} the right answer?")
    return Row(source, prompt, "other", ((answer,),) if _is_label(answer) else (), questions=asked, answer=answer)


def _is_label(answer: str) -> bool:
    """Short and with a meaning of its own: no letter of an option, no number, no yes or no."""
    letters = sum(character.isalpha() for character in answer)
    return letters > 2 and len(answer.split()) <= LABEL_WORDS and answer.strip(".").casefold() not in NO_LABELS
