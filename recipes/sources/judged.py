"""Labels judged by hand for texts of the general data: `recipes/judged/`, JSON lines, a label set before its texts.

    {"labels": {"a": ["late delivery", "an order that came later than promised"], "b": [...], ...}}
    {"text": "9f2c51d8e07a4b36", "yes": ["a"], "unsure": ["c"]}

Every label of the set was judged for every text: it applies (`yes`), readers may disagree (`unsure`, not learned), or
it does not apply. The texts stand in the data, not here: a digest names each. One label set of ten, with its texts,
is kept apart for validate.py.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recipes.sources.rows import Row
from recipes.sources.written import Record, convert, kept_apart

NAME = "judged"


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def records(folder: Path, texts: Iterable[str]) -> tuple[list[Record], int]:
    """The judged texts that the data hold, as written rows, and how many they do not hold."""
    found, absent, known = list[Record](), 0, {digest(text): text for text in texts}
    for path in sorted(folder.glob("*.jsonl")):
        labels, number = dict[str, list[str]](), 0
        for place, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            entry = _checked(line, labels, f"{path}, line {place}")
            if "labels" in entry:
                labels, number = entry["labels"], number + 1
            elif entry["text"] in known:
                judged = {*entry["yes"], *entry["unsure"]}
                yes, no = [labels[key] for key in entry["yes"]], [labels[key] for key in labels if key not in judged]
                name = f"{NAME}-{path.stem}-{number}"
                found.append({"id": name, "text": known[entry["text"]], "yes": yes, "no": no})
            else:
                absent += 1
    return found, absent


def _checked(line: str, labels: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A line of one of the two kinds; what is wrong with it is said."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise SystemExit(f"{place}: {error}") from None
    if isinstance(entry, dict) and set(entry) == {"labels"}:
        return entry
    if not isinstance(entry, dict) or set(entry) != {"text", "yes", "unsure"}:
        raise SystemExit(f"{place}: neither a label set nor a judged text: {line[:80]}")
    if unknown := sorted({*entry["yes"], *entry["unsure"]} - set(labels)):
        raise SystemExit(f"{place}: {', '.join(unknown)} is not in the label set before it: {', '.join(labels)}.")
    return entry


def for_training(found: Iterable[Record]) -> Iterator[Row]:
    """Sets that are not kept apart; texts of one set share its name, and have no twin."""
    return (convert(record) for record in found if not kept_apart(record))


def for_validation(found: Iterable[Record]) -> list[Record]:
    return [record for record in found if kept_apart(record)]
