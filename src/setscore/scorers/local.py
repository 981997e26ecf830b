"""The local scores that JSR and Gibbs sampling share (Eq. 1), estimated with K mask contexts.

    l_i(b; x, y_-i) = E_{M ~ q_i} [ log p(b | s with M and r_i masked, the other slots filled with y) ]

A backbone gives log-odds u, so log p is taken over the two answers: log sigmoid(u) for yes, log sigmoid(-u) for no. The
contexts are drawn once for each window and label and kept: then l is a function of y, and what is proved about it holds
for the estimate as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setscore.prompts import SetTemplate
from setscore.records import BoolArray, FloatArray
from setscore.scorers.base import Asker, Window, local_query, mask_set, read_own


@dataclass(frozen=True)
class State:
    """A window, its mask contexts [m, K, m], and its present assignment [m]."""

    window: Window
    contexts: BoolArray
    assignment: BoolArray

    @classmethod
    def start(cls, window: Window, assignment: BoolArray, contexts: int, random: np.random.Generator) -> "State":
        m = len(window.labels)
        drawn = [[mask_set(random, m, label) for _ in range(contexts)] for label in range(m)]
        return cls(window, np.array(drawn, dtype=np.bool_).reshape(m, contexts, m), assignment)

    def changed(self, label: int, value: bool) -> "State":
        assignment = self.assignment.copy()
        assignment[label] = value
        return State(self.window, self.contexts, assignment)


def local_log_odds(
    asker: Asker, prompt: SetTemplate, wanted: Sequence[tuple[State, Sequence[int]]]
) -> list[FloatArray]:
    """For each state the log-odds [n_labels wanted, K] of the labels wanted, one query for each context."""
    queries = [
        [
            local_query(prompt, state.window, state.assignment, masked)
            for label in labels
            for masked in state.contexts[label]
        ]
        for state, labels in wanted
    ]
    results = []
    for (state, labels), answers in zip(wanted, asker.ask(queries), strict=True):
        contexts = [(label, masked) for label in labels for masked in state.contexts[label]]
        values = [read_own(answer, masked, label) for (label, masked), answer in zip(contexts, answers, strict=True)]
        results.append(np.array(values).reshape(len(labels), -1))
    return results


def surrogates(asker: Asker, prompt: SetTemplate, states: Sequence[State]) -> list[float]:
    """The pseudo-likelihood sum_i l_i(y_i; x, y_-i) of each state: m K queries each."""
    found = local_log_odds(asker, prompt, [(state, range(len(state.window.labels))) for state in states])
    return [
        float(log_sigmoid(np.where(s.assignment[:, None], u, -u)).mean(axis=1).sum())
        for s, u in zip(states, found, strict=True)
    ]


def log_sigmoid(values: npt.ArrayLike) -> FloatArray:
    return -np.logaddexp(0.0, -np.asarray(values, dtype=np.float64))
