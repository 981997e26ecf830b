"""What a scorer is, and what the scorers that put several labels into one prompt share."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from setscore.backbones import Backbone
from setscore.errors import BackboneError, SetScoreError
from setscore.prompts import SET_LAYOUTS, SetTemplate
from setscore.records import BoolArray, FloatArray, LabelSet, Progress, Query, Scores, steps
from setscore.scorers.per_label import Reading, document_room, pool_windows, read_document

BLOCK_WINDOWS = 256  # refined together, so that every step of a sequential scorer still fills a batch


class Scorer(Protocol):
    """A method: which queries to ask and how to combine the answers."""

    def cost(self, labels: int, *, shared: bool) -> int:
        """Forwards for one window of a document and so many labels.

        A forward is a pass over a document. With shared attention all queries that are asked together about one
        window cost one; with exact attention each costs one.
        """
        ...

    def score(
        self,
        backbone: Backbone,
        documents: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        """Scores of every label, or of each document's `candidates` [n_documents, n_labels] only."""
        ...


@dataclass(frozen=True)
class Window:
    """A part of a document that fits, with the labels asked about it."""

    row: int
    text: str
    labels: tuple[int, ...]
    texts: tuple[str, ...]  # of those labels

    def reordered(self, order: Sequence[int]) -> "Window":
        """The same with its labels in another order: label numbers by place."""
        return replace(self, labels=tuple(self.labels[i] for i in order), texts=tuple(self.texts[i] for i in order))

    def generator(self, seed: int) -> np.random.Generator:
        """Random numbers that depend on nothing but the text, so neither batches nor the order of documents matter."""
        return np.random.default_rng([seed, zlib.crc32(self.text.encode("utf-8", "surrogatepass"))])


class Asker:
    """Asks a backbone and counts the forwards. Without a `prompt` labels stand as the backbone knows them best."""

    def __init__(self, backbone: Backbone, prompt: SetTemplate | None = None) -> None:
        self.backbone, self.forwards = backbone, 0
        self.prompt = prompt or SET_LAYOUTS[backbone.spec.set_layout]

    def ask(self, groups: Sequence[Sequence[Query]]) -> list[list[FloatArray]]:
        """Queries by window to answers by window."""
        shared = self.backbone.attention == "shared"
        self.forwards += sum(bool(group) if shared else len(group) for group in groups)
        flat = [query for group in groups for query in group]
        answers = iter(self.backbone.log_odds(flat) if flat else [])
        return [[next(answers) for _ in group] for group in groups]


@dataclass(frozen=True)
class SetScorer(ABC):
    """Scores windows whose labels stand in one prompt. A subclass says how a window is scored.

    The number of labels is limited by what a backbone reads, as all of them share one prompt: `prompt`, or else the
    layout that the backbone knows best.
    """

    reading: Reading = field(default_factory=Reading, kw_only=True)
    prompt: SetTemplate | None = field(default=None, kw_only=True)

    @property
    def block(self) -> int:
        """Windows that are asked about together; progress is told after each block."""
        return BLOCK_WINDOWS

    @abstractmethod
    def cost(self, labels: int, *, shared: bool) -> int: ...

    @abstractmethod
    def score_windows(
        self, asker: Asker, windows: Sequence[Window]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        """For each window the log-odds of its labels; and by name a detail for each window, perhaps none."""

    def score(
        self,
        backbone: Backbone,
        documents: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        scored = np.ones((len(documents), len(labels)), dtype=np.bool_) if candidates is None else candidates
        asker = Asker(backbone, self.prompt)
        windows, truncated = self._windows(asker, documents, labels, scored)
        parts: list[list[FloatArray]] = [[] for _ in documents]
        details: dict[str, list[list[float]]] = {}
        step = steps(progress, "scoring", len(documents))
        for start in range(0, len(windows), self.block):
            block = windows[start : start + self.block]
            found, more = self.score_windows(asker, block)
            for number, (window, values) in enumerate(zip(block, found, strict=True)):
                parts[window.row].append(values)
                for name, entries in more.items():
                    details.setdefault(name, [[] for _ in documents])[window.row].append(entries[number])
            step(len({window.row for window in block} - {window.row for window in windows[start + len(block) :]}))
        log_odds = np.full(scored.shape, -np.inf)
        for row, several in enumerate(parts):
            if several:
                log_odds[row, scored[row]] = pool_windows(np.array(several), self.reading.pool)
        sums = {name: np.array([sum(entries) for entries in rows]) for name, rows in details.items()}
        return Scores(log_odds, scored, truncated, asker.forwards, sums)

    def longest_query(self, prompt: SetTemplate, texts: Sequence[str]) -> Query:
        """The query about these labels that takes most room."""
        return prompt.query("", texts, [None] * len(texts))

    def _windows(
        self, asker: Asker, documents: Sequence[str], labels: LabelSet, scored: BoolArray
    ) -> tuple[list[Window], BoolArray]:
        """Windows, long documents first; documents without labels to ask have none."""
        truncated = np.zeros(len(documents), dtype=np.bool_)
        rooms: dict[tuple[int, ...], int] = {}
        windows: list[Window] = []
        for row in sorted(range(len(documents)), key=lambda row: len(documents[row]), reverse=True):
            asked = tuple(np.flatnonzero(scored[row]).tolist())
            if not asked:
                continue
            texts = tuple(labels.texts[i] for i in asked)
            if asked not in rooms:
                rooms[asked] = self._room(asker, texts)
            cut, truncated[row] = read_document(asker.backbone, documents[row], self.reading, room=rooms[asked], most=1)
            windows += [Window(row, text, asked, texts) for text in cut]
        return windows, truncated

    def _room(self, asker: Asker, texts: tuple[str, ...]) -> int:
        backbone, longest = asker.backbone, self.longest_query(asker.prompt, texts)
        try:
            room = document_room(backbone, [longest], self.reading.max_document_tokens)
        except BackboneError as error:
            raise BackboneError(
                f"{len(texts)} labels in one prompt leave no room for the document in the {backbone.spec.context}"
                f" tokens that {backbone.spec.name} reads. Ask fewer labels (candidates) or use the scorer per_label."
            ) from error
        if self.reading.overlap >= room:
            raise SetScoreError(
                f"windows of {room} tokens cannot overlap by {self.reading.overlap}; choose a smaller overlap."
            )
        return room


def mask_set(random: np.random.Generator, slots: int, own: int) -> BoolArray:
    """The masking law q_i of Section 3.1: which of the slots are masked [slots], slot `own` always.

    How many others: uniform on 0..m-1. Which: a uniform subset of that size.
    """
    masked = np.zeros(slots, dtype=np.bool_)
    others = np.delete(np.arange(slots), own)
    masked[random.permutation(others)[: random.integers(slots)]] = True
    masked[own] = True
    return masked


def local_query(prompt: SetTemplate, window: Window, assignment: BoolArray, masked: BoolArray) -> Query:
    """The suffix with the masked slots open and the others filled with the assignment's answers."""
    answers = [None if hidden else bool(value) for hidden, value in zip(masked, assignment, strict=True)]
    return prompt.query(window.text, window.texts, answers)


def read_own(answer: FloatArray, masked: BoolArray, own: int) -> float:
    """The log-odds of slot `own` among those of all open slots."""
    return float(answer[int(masked[:own].sum())])
