"""Documents with gold labels: the value that every source becomes."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setscore.errors import DataFileError, DocumentError, LabelError, SetScoreError, brief, counted, plural
from setscore.records import BoolArray, Document, IntArray, LabelSet, text_problem

SHOWN = 5  # rows that a note names


@dataclass(frozen=True, eq=False)
class Dataset:
    """n documents with their gold labels over one inventory of m labels.

    name, split  where it comes from
    texts, ids   [n]; ids are unique
    labels       the inventory [m]
    gold         [n, m]; read-only
    notes        what was left out or stands in for something else, as sentences
    groups       [n] values of a user's column to measure by, or none
    """

    name: str
    split: str
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    labels: LabelSet
    gold: BoolArray
    notes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.texts):
            raise SetScoreError(
                f"{self._title} has {counted(len(self.texts), 'text')}, but {counted(len(self.ids), 'id')}."
            )
        if problems := {row: problem for row, text in enumerate(self.texts) if (problem := text_problem(text))}:
            raise DocumentError(problems, len(self.texts))
        if self.groups and len(self.groups) != len(self.texts):
            raise SetScoreError(
                f"{self._title} has {counted(len(self.texts), 'text')}, but {counted(len(self.groups), 'group value')}."
            )
        for what, names in (("id", self.ids), ("group", self.groups)):
            for row, name in enumerate(names):
                if problem := text_problem(name):
                    raise SetScoreError(
                        f"the {what} of document {row} of {self._title} {problem}. Documents count from 0."
                    )
        if len(set(self.ids)) < len(self.ids):
            twice = [name for name, count in Counter(self.ids).items() if count > 1]
            raise SetScoreError(
                f"{counted(len(twice), 'id')} of {self._title} {plural(len(twice), 'appears', 'appear')} more than"
                f" once, the first is {brief(twice[0])}."
            )
        gold = np.array(self.gold)
        if gold.dtype != np.bool_:
            raise LabelError(f"gold labels of {self._title} are a matrix of bool, got {gold.dtype}.")
        if gold.shape != (len(self.texts), len(self.labels)):
            raise LabelError(
                f"gold labels of {self._title} have the shape {gold.shape};"
                f" there {plural(len(self.texts), 'is', 'are')} {counted(len(self.texts), 'document')} and"
                f" {counted(len(self.labels), 'label')}."
            )
        gold.setflags(write=False)
        object.__setattr__(self, "gold", gold)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def _title(self) -> str:
        return f"{self.name} {self.split}".strip() or "the dataset"

    @property
    def documents(self) -> list[Document]:
        return [Document(text, name) for text, name in zip(self.texts, self.ids, strict=True)]

    @property
    def cardinality(self) -> float:
        """Gold labels per document."""
        return float(self.gold.sum() / len(self)) if len(self) else 0.0

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over ids, texts, labels as they are asked, and gold: 64 hexadecimal digits.

        Groups do not count: scores do not depend on them.
        """
        digest = hashlib.sha256()
        asked = [
            [name, None if text == name else text]
            for name, text in zip(self.labels.names, self.labels.texts, strict=True)
        ]
        for part in (self.ids, self.texts, asked):
            digest.update(json.dumps(part, ensure_ascii=False).encode() + b"\n")
        digest.update(np.packbits(self.gold).tobytes())
        return digest.hexdigest()

    def take(self, rows: Sequence[int] | IntArray) -> "Dataset":
        """The documents at `rows`, in the order of `rows`."""
        chosen = np.asarray(rows, dtype=np.int64).reshape(-1)
        outside = chosen[(chosen < 0) | (chosen >= len(self))]
        if outside.size:
            raise SetScoreError(f"{self._title} has the rows 0 to {len(self) - 1}; row {outside[0]} was asked for.")
        return replace(
            self,
            texts=tuple(self.texts[row] for row in chosen),
            ids=tuple(self.ids[row] for row in chosen),
            gold=self.gold[chosen],
            groups=tuple(self.groups[row] for row in chosen) if self.groups else (),
        )

    def head(self, n: int) -> "Dataset":
        """The first `n` documents."""
        return self.take(range(self._at_most(n)))

    def draw(self, n: int, seed: int) -> "tuple[Dataset, Dataset]":
        """`n` documents drawn without replacement, and the rest; both in the original order.

        The same dataset, `n` and `seed` always give the same documents.
        """
        drawn, rest = draw_rows(len(self), self._at_most(n), seed)
        note = f"{{}} of {counted(len(self), 'document')}, drawn with seed {seed}."
        return (
            self.take(drawn).noting(note.format(n)),
            self.take(rest).noting("The rest after " + note.format(n)),
        )

    def noting(self, *notes: str) -> "Dataset":
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def with_labels(self, labels: Any) -> "Dataset":
        """The same with other descriptions, or in another order: names stay, and gold labels follow their names."""
        given = LabelSet.of(labels)
        if set(given.names) != set(self.labels.names):
            raise LabelError(
                f"{self._title} has {len(self.labels)} labels, the first is {brief(self.labels.names[0])}; the"
                f" {len(given)} labels given, the first is {brief(given.names[0])}, must have the same names."
            )
        places = {name: place for place, name in enumerate(self.labels.names)}
        return replace(self, labels=given, gold=self.gold[:, [places[name] for name in given.names]])

    def _at_most(self, n: int) -> int:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n <= len(self):
            raise SetScoreError(f"{self._title} has {counted(len(self), 'document')}; {n!r} of them were asked for.")
        return int(n)


def draw_rows(documents: int, n: int, seed: int) -> tuple[IntArray, IntArray]:
    """`n` rows of `documents` drawn without replacement, and the rest; both rising. `Dataset.draw` draws these."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SetScoreError(f"a seed is a whole number from 0, got {seed!r}.")
    drawn = np.zeros(documents, dtype=np.bool_)
    drawn[np.random.default_rng(seed).choice(documents, size=n, replace=False)] = True
    return np.flatnonzero(drawn), np.flatnonzero(~drawn)


@dataclass(frozen=True)
class Entry:
    """A document as a source gives it, with the names of its gold labels and perhaps the group it belongs to."""

    id: str
    text: str
    labels: tuple[str, ...]
    group: str = ""


def assemble(
    name: str, split: str, entries: Sequence[Entry], labels: LabelSet, *, origin: object, notes: Sequence[str] = ()
) -> Dataset:
    """A dataset of `entries` read from `origin`. Documents without a usable text are left out, and noted."""
    if not entries:
        raise DataFileError(f"{origin} holds no documents. It is empty or broken; fetch it again.")
    usable = [entry for entry in entries if not text_problem(entry.text)]
    if blank := [entry.id for entry in entries if text_problem(entry.text)]:
        shown = ", ".join(blank[:5]) + (", …" if len(blank) > 5 else "")
        have, were = plural(len(blank), "has", "have"), plural(len(blank), "was", "were")
        count = f"{len(blank)} of {counted(len(entries), 'document')}"
        notes = [*notes, f"{count} {have} no usable text and {were} left out: {shown}."]
    try:
        gold = labels.indicator([entry.labels for entry in usable])
    except LabelError as error:
        raise LabelError(f"{origin}: {error}") from error
    texts, ids = tuple(entry.text for entry in usable), tuple(entry.id for entry in usable)
    return Dataset(name, split, texts, ids, labels, gold, tuple(notes))


def left_out(problems: Mapping[int, str], total: int) -> str:
    """A note on the rows, by number, that cannot be used while the others go on: nothing is dropped in silence."""
    count, were = len(problems), plural(len(problems), "was", "were")
    shown = "; ".join(f"row {number} {problem}" for number, problem in list(problems.items())[:SHOWN])
    more = f"; and {count - SHOWN} more" if count > SHOWN else ""
    return f"{count} of {counted(total, 'row')} cannot be used and {were} left out: {shown}{more}."


class Ids:
    """Names rows that have no id by their number, in a way that is no other row's id.

    Where some rows have ids, `row 7` stands in. In a table its header says so; in JSON the first id does, so that rows
    before it are named by bare numbers, and an id that is one of these gets its own row behind it.
    """

    def __init__(self, column: str, header: Sequence[str] | None) -> None:
        self.tabular = header is not None
        self._present = header is not None and column in header
        self._bare = 0  # rows up to this one were named by bare numbers

    def name(self, number: int, identifier: object) -> tuple[str, bool]:
        """The name of a row, and whether it is an id of its own."""
        own = written(identifier)
        if own:
            self._present = True
            taken = own.isascii() and own.isdigit() and len(own) < 19 and own == str(int(own))
            return f"{own} (row {number})" if taken and 0 < int(own) <= self._bare else own, True
        if self._present:
            return f"row {number}", False
        self._bare = number
        return str(number), False


def written(value: object) -> str:
    """A cell as text; a blank one, and the NaN that stands for none in columns of numbers, as ""."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value) if str(value).strip() else ""
