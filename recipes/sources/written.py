"""Rows written by hand for this recipe: `recipes/written/`, a file each writer, one JSON object a line.

    {"id": "acts-002", "kind": "text message", "text": "...", "yes": [[wordings of a label], ...], "no": [...],
     "twin": "acts-003"}

`yes` applies to the text and `no` does not, half of it hard: labels that share words or the subject with the text. A
label is two to five wordings of one meaning, a short name first. A twin is a nearly equal text to which at least one
label applies that does not apply to this one, in the same wordings. A tenth of the rows, twins together, is kept apart
for validate.py: which ones depends on their ids alone, so that rows may be added.

The package asks a label that has a description as "name (description)": this is one more wording of every label.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recipes.sources.rows import Row

Record = Mapping[str, Any]
FIELDS = ("id", "text", "yes", "no")
SOURCE = "written-"  # with the writer's name behind it
APART = 10  # one of so many is kept apart


def read(folder: Path) -> list[Record]:
    """Every row of the folder's files; what is wrong with one is said with its file and line."""
    found, places = list[Record](), dict[str, str]()
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            place = f"{path}, line {number}"
            record = _checked(line, place)
            if (first := places.setdefault(record["id"], place)) != place:
                raise SystemExit(f"{place}: the id {record['id']} stands in {first} already.")
            found.append(record)
    if not found:
        raise SystemExit(f"{folder} holds no written rows (*.jsonl).")
    for record in found:
        if record.get("twin", record["id"]) not in places:
            raise SystemExit(f"{places[record['id']]}: there is no row {record['twin']} to be its twin.")
    return found


def _checked(line: str, place: str) -> Record:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise SystemExit(f"{place}: {error}") from None
    if absent := [name for name in FIELDS if not isinstance(record, dict) or name not in record]:
        raise SystemExit(f"{place}: {' and '.join(absent)} missing.")
    labels = [*record["yes"], *record["no"]]
    if not all(isinstance(label, list) and label and all(isinstance(word, str) for word in label) for label in labels):
        raise SystemExit(f'{place}: a label is a list of wordings, as in ["refund", "a wish for money back"].')
    return record  # type: ignore[no-any-return]


def kept_apart(record: Record) -> bool:
    """Whether a row is for validation only; a twin goes where its other goes."""
    return draw_number(record) % APART == 0


def draw_number(record: Record) -> int:
    """A number drawn by the row's id, the same for twins."""
    group = min(record["id"], record.get("twin", record["id"]))
    return int.from_bytes(hashlib.blake2b(group.encode(), digest_size=8).digest(), "little")


def worded(label: Sequence[str]) -> tuple[str, ...]:
    """The wordings of a label, the last one as the package asks for it: its name with its description behind it."""
    return (*label, f"{label[0]} ({label[1]})") if len(label) > 1 else tuple(label)


def convert(record: Record) -> Row:
    yes, no = (tuple(map(worded, record[side])) for side in ("yes", "no"))
    writer = record["id"].rpartition("-")[0]
    return Row(SOURCE + writer, record["text"], "written", yes, no, name=record["id"], twin=record.get("twin", ""))


def for_training(folder: Path) -> Iterator[Row]:
    return (convert(record) for record in read(folder) if not kept_apart(record))


def for_validation(folder: Path) -> list[Record]:
    return [record for record in read(folder) if kept_apart(record)]
