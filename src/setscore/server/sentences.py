"""What each sentence of a document does to its labels: the document with it, and without it."""

import re
from collections.abc import Sequence

from setscore.predictions import Prediction
from setscore.records import Document

MOST = 40  # sentences that are weighed; of a longer text several make one
WEIGHED = 20_000  # characters of a text whose sentences are weighed: more than a model reads
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=\S)|(?<=[。！？])\s*(?=\S)|\n+\s*(?=\S)")  # noqa: RUF001


def spans(text: str) -> list[tuple[int, int]]:
    """Where sentences begin and end; together they cover the text, and there are at most MOST."""
    cuts = [match.end() for match in _END.finditer(text)]
    starts = [0, *cuts]
    if len(starts) > MOST:
        starts = [starts[len(starts) * number // MOST] for number in range(MOST)]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def variants(text: str) -> tuple[list[tuple[int, int]], list[Document]]:
    """The sentences, and the document whole and without each of them; one sentence alone is weighed against nothing."""
    text = text[:WEIGHED]
    cut = spans(text)
    cut = cut if len(cut) > 1 else []
    return cut, [Document(text), *(Document(text[:start] + text[end:]) for start, end in cut)]


def weigh(cut: Sequence[tuple[int, int]], found: Sequence[Prediction]) -> list[dict[str, object]]:
    """By sentence and label, log-odds with it minus log-odds without it: above 0 it speaks for the label."""
    whole, *without = found
    return [
        {
            "start": start,
            "end": end,
            "weights": {
                name: value - other.log_odds[name] for name, value in whole.log_odds.items() if name in other.log_odds
            },
        }
        for (start, end), other in zip(cut, without, strict=True)
    ]
