"""The values that flow through SetScore. All are frozen; stages take values and return new ones."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from setscore.errors import (
    DocumentError,
    LabelError,
    LabelWarning,
    SetScoreError,
    TruncationWarning,
    brief,
    counted,
    known_names,
    nearest,
    plural,
    unknown_name,
)
from setscore.identifiers import in_words

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]  # what is going on, how much of it is done, and of how much

LABEL_TEXTS = ("both", "description", "name")  # what a question says of a label: both is "name (description)"
LABEL_FILES = (".txt", ".csv", ".yaml", ".yml", ".json")  # how a file with an inventory ends
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Document:
    """A text to classify; `id` names it in outputs, `candidates` limits which labels are asked."""

    text: str
    id: str = ""
    candidates: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Label:
    """A name and, if the name alone does not say it, a description; `parent` names the label it is a kind of."""

    name: str
    description: str | None = None
    parent: str | None = None

    def text(self, by: str = "both") -> str:
        """What a question says of it, one of LABEL_TEXTS; its name where it has no description."""
        if not self.description or by == "name":
            return self.name
        return self.description if by == "description" else f"{self.name} ({self.description})"


@dataclass(frozen=True)
class LabelSet:
    """The ordered inventory of labels: at least one, none blank, no name twice. `label_text` is one of LABEL_TEXTS."""

    labels: tuple[Label, ...]
    label_text: str = "both"

    def __post_init__(self) -> None:
        if self.label_text not in LABEL_TEXTS:
            raise LabelError(unknown_name("label text", self.label_text, LABEL_TEXTS))
        if not self.labels:
            raise LabelError("there are no labels. Give at least one, for example labels=['oil', 'sports'].")
        for position, label in enumerate(self.labels):
            for what, value in (("name", label.name), ("description", label.description)):
                problem = None if value is None and what == "description" else text_problem(value)
                if problem:
                    raise LabelError(f"the {what} of label {position} {problem}. Labels count from 0.")
        seen: dict[str, int] = {}
        for position, name in enumerate(self.names):
            if name.strip() in seen:
                places = f"at {seen[name.strip()]} and {position}"
                raise LabelError(
                    f"label {brief(name)} is listed twice, {places}. Remove one of them. Labels count from 0."
                )
            seen[name.strip()] = position
        self._check_parents()
        self._warn_alike()

    def asked_by(self, text: str | None) -> "LabelSet":
        """The same, asked by its names, its descriptions or both; None leaves it as it is."""
        return self if text is None or text == self.label_text else LabelSet(self.labels, text)

    @property
    def asked_as(self) -> str:
        """How labels are asked: by name where none has a description."""
        return self.label_text if any(label.description for label in self.labels) else "name"

    def _warn_alike(self) -> None:
        """Names that differ only in capitals or spaces are rarely meant as two labels, but they may be."""
        first: dict[str, str] = {}
        for name in self.names:
            other = first.setdefault(" ".join(name.casefold().split()), name)
            if other != name:
                warnings.warn(
                    f"the labels {brief(other)} and {brief(name)} differ only in capitals or spaces, and are asked as"
                    " two. If they are one, remove one of them.",
                    LabelWarning,
                    stacklevel=4,
                )

    def _check_parents(self) -> None:
        """Every parent is a label, and no label is above itself. Each is visited once, however long the chains are."""
        for label in self.labels:
            if label.parent is None:
                continue
            if problem := text_problem(label.parent):
                raise LabelError(
                    f"the parent of label {brief(label.name)} {problem}. Give the name of a label, or None."
                )
            if label.parent not in self._positions:
                known = unknown_name("label", label.parent, self.names)
                raise LabelError(f"the parent of label {brief(label.name)} is not a label: {known}")
        checked: set[int] = set()
        for start in range(len(self)):
            place, path = start, dict[int, None]()
            while place >= 0 and place not in checked:
                if place in path:
                    name = brief(self.names[place])
                    raise LabelError(f"label {name} is its own ancestor: its parents form a circle.")
                path[place] = None
                place = int(self.parents[place])
            checked.update(path)

    @classmethod
    def of(cls, source: Any) -> "LabelSet":
        """From a LabelSet, a list of names or Labels, or a dict of names and descriptions (None or "" for none)."""
        if isinstance(source, LabelSet):
            return source
        if source is None:
            raise LabelError("no labels were given. Give a list of names, a dict {name: description} or Label objects.")
        if isinstance(source, str):
            remedy = f"read_labels({brief(source)})" if source.lower().endswith(LABEL_FILES) else f"[{brief(source)}]"
            raise LabelError(f"labels must be a list, got the one string {brief(source)}. Write labels={remedy}.")
        if isinstance(source, Mapping):
            return cls(tuple(_label(name, value) for name, value in source.items()))
        return cls(tuple(entry if isinstance(entry, Label) else Label(entry) for entry in source))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What questions say of the labels."""
        pairs = zip(self.called, self.labels, strict=True)
        return tuple(Label(name, label.description).text(self.label_text) for name, label in pairs)

    @cached_property
    def called(self) -> tuple[str, ...]:
        """What questions call the labels: their names, in words where they are written as identifiers."""
        return tuple(in_words(self.names))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def parents(self) -> IntArray:
        """The place of each label's parent [m]; -1 where it has none."""
        places = [-1 if label.parent is None else self._positions[label.parent] for label in self.labels]
        return np.array(places, dtype=np.int64)

    def plain(self) -> dict[str, Any]:
        """As JSON values, which `of` reads: descriptions by name; with a parent, both."""
        return {
            label.name: label.description
            if label.parent is None
            else {"description": label.description, "parent": label.parent}
            for label in self.labels
        }

    def __len__(self) -> int:
        return len(self.labels)

    def indicator(self, sets: Sequence[Iterable[str]], what: str = "gold label") -> BoolArray:
        """Sets of names as a matrix [n_documents, n_labels]; an unknown name is an error that counts them all."""
        matrix = np.zeros((len(sets), len(self)), dtype=np.bool_)
        unknown: dict[str, int] = {}
        for row, names in enumerate(sets):
            _refuse_string(names, row, what)
            if not isinstance(names, Iterable):
                raise LabelError(f"{what}s of document {row} must be a list of names, got {brief(names)}.")
            for name in names:
                if not isinstance(name, str):
                    raise LabelError(f"{what}s of document {row} must be names, got {brief(name)}.")
                if name in self._positions:
                    matrix[row, self._positions[name]] = True
                else:
                    unknown[name] = unknown.get(name, 0) + 1
        if unknown:
            told = []
            for name, count in islice(unknown.items(), 5):
                near = nearest(name, self.names)
                hint = f", did you mean {near!r}?" if near else ""
                told.append(f"{brief(name)} ({counted(count, 'time')}{hint})")
            total = sum(unknown.values())
            are = plural(total, "is", "are")
            raise LabelError(
                f"{counted(total, what)} {are} not in the inventory: {', '.join(told)}. {known_names(self.names)}"
            )
        return matrix

    def sets(self, decided: npt.NDArray[Any]) -> list[set[str]]:
        """Decisions [n_documents, n_labels] as sets of names."""
        return [{self.names[i] for i in np.flatnonzero(row)} for row in decided]

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those names that are no label."""
        return [name for name in names if name not in self._positions]

    def asked(self, documents: Sequence[Document], candidates: Sequence[Iterable[str]] | None) -> BoolArray | None:
        """The labels to ask [n_documents, n_labels]: `candidates`, else the documents' own; None asks them all."""
        if candidates is None:
            if all(document.candidates is None for document in documents):
                return None
            candidates = [self.names if document.candidates is None else document.candidates for document in documents]
        if len(candidates) != len(documents):
            raise LabelError(
                f"candidates were given for {counted(len(candidates), 'document')}, but there"
                f" {plural(len(documents), 'is', 'are')} {counted(len(documents), 'document')}."
            )
        return self.indicator(candidates, what="candidate")

    def gold(self, y: Any, documents: int) -> BoolArray:
        """Gold labels as a matrix [n_documents, n_labels], from an indicator matrix or a list of names per document."""
        if set(getattr(y, "columns", ())) == set(self.names):  # a data frame: by name, not by place
            y = y[list(self.names)]
        try:
            matrix = np.asarray(_dense(y)) if is_indicator(y) else self.indicator(list(y))
        except LabelError:
            raise
        except ValueError as error:  # numpy: rows of different lengths
            raise LabelError(f"an indicator matrix has {len(self)} columns in every row; these rows differ.") from error
        if matrix.shape != (documents, len(self)):
            raise LabelError(
                f"gold labels have the shape {matrix.shape}, there {plural(documents, 'is', 'are')}"
                f" {counted(documents, 'document')} and {counted(len(self), 'label')}."
            )
        if not np.isin(matrix, (0, 1)).all():
            raise LabelError("an indicator matrix of gold labels holds only 0 and 1.")
        return matrix.astype(np.bool_)


@dataclass(frozen=True)
class Slot:
    """An answer position: to be read when `answer` is None, else filled with yes (True) or no (False)."""

    answer: bool | None = None


@dataclass(frozen=True)
class Query:
    """What a backbone is asked: text before the document, the document, and the question with its slots."""

    prefix: str
    document: str
    question: tuple[str | Slot, ...]

    @property
    def open_slots(self) -> int:
        return sum(isinstance(piece, Slot) and piece.answer is None for piece in self.question)


@dataclass(frozen=True)
class Scores:
    """Log-odds of yes against no. Where `scored` is False nothing was asked, and the label counts as negative."""

    log_odds: FloatArray  # [n_documents, n_labels]; -inf where not scored
    scored: BoolArray  # [n_documents, n_labels]
    truncated: BoolArray  # [n_documents] True where only the beginning of the document was read
    forwards: int  # passes over a document that the scores cost
    details: Mapping[str, FloatArray] = field(default_factory=dict)  # what a scorer reports besides, a row a document
    vectors: FloatArray | None = None  # [n_documents, d] of length 1, where they were asked for and came along

    def warn(self) -> None:
        """Tells whoever called the classifier's method how many documents were truncated, if any were."""
        if cut := int(self.truncated.sum()):
            warnings.warn(TruncationWarning.of(cut, len(self.truncated)), stacklevel=4)


def steps(progress: Progress | None, what: str, total: int) -> Callable[[int], None]:
    """A function that is told how many more are done and passes the sum on; without `progress` it does nothing."""
    done = 0

    def step(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(what, done, total)

    return step


def text_problem(value: object) -> str | None:
    """What makes `value` useless as a text, or None. Reads on after a subject: "document 3" + " is empty"."""
    if not isinstance(value, str):
        kind = "None" if value is None else f"{brief(value)} of type {type(value).__name__}"
        return f"is {kind}, not a text"
    if not value.strip():
        return "is empty or blank"
    if (surrogate := _SURROGATE.search(value)) is None:
        return None
    code, place = ord(surrogate.group()), surrogate.start()
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps bytes that it cannot decode
        return f"is not UTF-8 text (byte 0x{code - 0xDC00:02X} at character {place}); save the source as UTF-8"
    return (
        f"holds a lone surrogate (U+{code:04X}) at character {place}, which is no valid text;"
        " decode the source with errors='replace'"
    )


def as_documents(documents: Any) -> list[Document]:
    """Strings or Documents as Documents; every unusable row is named in one error."""
    entries = _entries(documents)
    problems = {row: problem for row, entry in enumerate(entries) if (problem := text_problem(entry.text))}
    if problems:
        raise DocumentError(problems, len(entries))
    if not entries:
        raise SetScoreError("there are no documents; pass at least one.")
    return entries


def readable(documents: Any, labels: LabelSet) -> tuple[list[Document], dict[int, str]]:
    """Strings or Documents as Documents, and for those that cannot be scored the reason, by row.

    A row that cannot be scored is empty and has no candidates, so that whatever looks at it finds nothing.
    """
    entries = _entries(documents)
    errors = {row: problem for row, entry in enumerate(entries) if (problem := _problem(entry, labels))}
    return [Document("", entry.id, ()) if row in errors else entry for row, entry in enumerate(entries)], errors


def _problem(document: Document, labels: LabelSet) -> str | None:
    if problem := text_problem(document.text):
        return problem
    unknown = labels.unknown(document.candidates or ())
    return f"asks an {unknown_name('label', unknown[0], labels.names[:50])}" if unknown else None


def _entries(documents: Any) -> list[Document]:
    if isinstance(documents, str | bytes):
        raise DocumentError({0: "a single string was given where a list of documents is expected; write [text]"}, 1)
    if hasattr(documents, "columns"):  # iterating over a data frame gives the names of its columns
        raise SetScoreError(f"a table was given; pass the column with the texts, one of {list(documents.columns)[:8]}.")
    return [entry if isinstance(entry, Document) else Document(_plain(entry)) for entry in documents]


def _label(name: Any, value: Any) -> Label:
    """From a description, or a mapping of `description` and `parent`."""
    if not isinstance(value, Mapping):
        return Label(name, None if value == "" else value)
    if unknown := sorted(map(str, set(value) - {"description", "parent"})):
        raise LabelError(f"label {brief(name)} has a description and perhaps a parent, got {', '.join(unknown)[:200]}.")
    given = (value.get(key) for key in ("description", "parent"))
    return Label(name, *(None if part == "" else part for part in given))  # False is no empty text, but a mistake


def _plain(text: Any) -> Any:
    return str(text) if isinstance(text, np.str_) else text


def _dense(y: Any) -> Any:
    return y.toarray() if hasattr(y, "toarray") else y


def is_indicator(y: Any) -> bool:
    """Whether gold labels come as numbers (a matrix) rather than names."""
    if hasattr(y, "ndim") or hasattr(y, "toarray"):
        return np.asarray(_dense(y)).dtype.kind in "biuf"
    first = next((entry for row in y if isinstance(row, Iterable) and not isinstance(row, str) for entry in row), None)
    return isinstance(first, int | float | np.number | np.bool_)


def names_in(y: Any) -> list[str]:
    """The label names that occur in lists of names, sorted."""
    if y is None:
        raise LabelError("no labels and no gold labels were given. Pass labels=... to the classifier.")
    if is_indicator(y):
        raise LabelError("an indicator matrix names no labels. Pass labels=... to the classifier as well.")
    for row, names in enumerate(y):
        _refuse_string(names, row, "gold label")
    return sorted({name for names in y for name in names})


def _refuse_string(names: Any, row: int, what: str) -> None:
    """A string would be read as a set of letters."""
    if isinstance(names, str):
        raise LabelError(f"{what}s of document {row} must be a list of names, got the string {brief(names)}.")
