"""The local scores that JSR and Gibbs sampling share (Eq. 1), estimated with K mask contexts.

    l_i(b; x, y_-i) = E_{M ~ q_i} [ log p(b | s with M and r_i masked, the other slots filled with y) ]

A backbone gives log-odds u, so log p is taken over the two answers: log sigmoid(u) for yes, log sigmoid(-u) for no. The
contexts are drawn once for each window and label and kept: then l is a function of y, and what is proved about it holds
for the estimate as well.

A refinement is a walk: a generator for one window that yields the patterns it has to know next and is sent the answers.
`take_walks` lets all windows go on together, each at its own pace: what they need next is one batch. A pattern that was
asked before is not asked again; most steps change nothing, so most of what the next step needs is known. Nothing is
asked ahead: that would save passes over the document, but ask patterns that no step needs.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from setscore.records import BoolArray, FloatArray
from setscore.scorers.base import Asker, Window, mask_set

Pattern = npt.NDArray[np.int8]  # [m]: OPEN, or the answer that fills the slot
OPEN = -1
R = TypeVar("R")
Walk = Generator[Sequence[Pattern], list[FloatArray], R]  # yields patterns, is sent the log-odds [m], NaN where filled


@dataclass(frozen=True)
class State:
    """The mask contexts of a window [m, K, m], True where a slot is open, and its present assignment [m]."""

    contexts: BoolArray
    assignment: BoolArray

    @classmethod
    def start(cls, assignment: BoolArray, contexts: int, random: np.random.Generator) -> "State":
        m = len(assignment)
        drawn = [[mask_set(random, m, label) for _ in range(contexts)] for label in range(m)]
        return cls(np.array(drawn, dtype=np.bool_).reshape(m, contexts, m), assignment)

    def changed(self, label: int, value: bool) -> "State":
        assignment = self.assignment.copy()
        assignment[label] = value
        return replace(self, assignment=assignment)

    def patterns(self, label: int) -> Pattern:
        """[K, m]: the label's contexts, filled with the assignment."""
        filled: Pattern = np.where(self.contexts[label], OPEN, self.assignment).astype(np.int8)
        return filled


def local_log_odds(state: State, labels: Sequence[int]) -> Walk[FloatArray]:
    """The log-odds [n_labels, K] of the labels wanted, one pattern for each context."""
    patterns = [pattern for label in labels for pattern in state.patterns(label)]
    answers = yield patterns
    owners = np.repeat(labels, state.contexts.shape[1])
    return np.array([answer[own] for own, answer in zip(owners, answers, strict=True)]).reshape(len(labels), -1)


def surrogate(state: State) -> Walk[float]:
    """The pseudo-likelihood sum_i l_i(y_i; x, y_-i): m K patterns."""
    u = yield from local_log_odds(state, range(len(state.assignment)))
    return float(log_sigmoid(np.where(state.assignment[:, None], u, -u)).mean(axis=1).sum())


class _Walker(Generic[R]):
    """A window on its walk: what it knows, and what it waits for."""

    def __init__(self, window: Window, walk: Walk[R]) -> None:
        self.window, self.walk = window, walk
        self.known: dict[bytes, FloatArray] = {}
        self.wanted: Sequence[Pattern] = ()
        self.results: list[R] = []  # one when it has arrived
        self._send(None)

    def unknown(self) -> dict[bytes, Pattern]:
        """What is wanted and was never asked, each pattern once."""
        return {key: pattern for pattern in self.wanted if (key := pattern.tobytes()) not in self.known}

    def go_on(self) -> None:
        """As far as what is known allows."""
        while not self.results and not self.unknown():
            self._send([self.known[pattern.tobytes()] for pattern in self.wanted])

    def _send(self, answers: list[FloatArray] | None) -> None:
        try:
            self.wanted = next(self.walk) if answers is None else self.walk.send(answers)
        except StopIteration as end:
            self.results.append(end.value)


def take_walks(asker: Asker, windows: Sequence[Window], walks: Sequence[Walk[R]]) -> list[R]:
    """What every walk returns. Each round asks, in one batch, what the walks of all windows do not know yet."""
    walkers = [_Walker(window, walk) for window, walk in zip(windows, walks, strict=True)]
    going = walkers
    while going := [walker for walker in going if not walker.results]:
        new = [walker.unknown() for walker in going]
        queries = [
            [
                asker.prompt.query(walker.window.text, walker.window.texts, _answers(pattern))
                for pattern in patterns.values()
            ]
            for walker, patterns in zip(going, new, strict=True)
        ]
        for walker, patterns, answers in zip(going, new, asker.ask(queries), strict=True):
            for (key, pattern), values in zip(patterns.items(), answers, strict=True):
                walker.known[key] = np.full(len(pattern), np.nan)
                walker.known[key][pattern == OPEN] = values
            walker.go_on()
    return [walker.results[0] for walker in walkers]


def _answers(pattern: Pattern) -> list[bool | None]:
    return [None if value == OPEN else bool(value) for value in pattern.tolist()]


def log_sigmoid(values: npt.ArrayLike) -> FloatArray:
    return -np.logaddexp(0.0, -np.asarray(values, dtype=np.float64))
