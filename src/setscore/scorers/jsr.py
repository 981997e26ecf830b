"""Joint Set Refinement (Section 3.3, Algorithm 2): a decided set, one label after the other reconsidered.

    local      y_i becomes argmax_b l_i(b; x, y_-i), as in the paper (Eq. 3); it can lower the pseudo-likelihood
    full-gain  y_i becomes argmax_b PL(.., b, ..); never lowers it, and ends at a coordinate-wise optimum

The start is the calibrated decision of another scorer. The paper's algorithm returns decisions; here the last log-odds
of each label are returned, above 0 exactly where the decision is yes: the local ones, or the gain PL(1) - PL(0). With
no sweeps they are the seed's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from setscore.errors import SetScoreError, unknown_name
from setscore.records import BoolArray, FloatArray
from setscore.scorers.base import Asker, Window
from setscore.scorers.local import State, Walk, local_log_odds, surrogate, take_walks
from setscore.scorers.seeded import SeededScorer

RULES = ("local", "full")
LEAST = 1e-9  # log-odds of a tie


@dataclass(frozen=True)
class JsrScorer(SeededScorer):
    """sweeps: S; contexts: K for each local query; rule: local or full.

    Besides the seed, local costs at most (m + 2 S (m - 1)) K forwards, its sweeps and the surrogate before and after
    them; full at most (1 + S (m - 1)) m K, and it stops after a sweep without a change. With shared attention either
    costs at most 1 + S m. What was asked before is known: the count is that of different questions. Details:
    `surrogate_0` to `surrogate_S`, and `changes` from the seed.
    """

    sweeps: int = 1
    contexts: int = 2
    rule: str = "local"
    random_state: int = 13

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise SetScoreError(unknown_name("rule", self.rule, RULES))
        if self.sweeps < 0 or self.contexts < 1:
            raise SetScoreError(f"sweeps from 0 and contexts from 1 are needed, got {self.sweeps} and {self.contexts}.")

    def cost(self, labels: int, *, shared: bool) -> int:
        seed, m, s = self.seed.cost(labels, shared=shared), labels, self.sweeps
        if s == 0 or m == 0:
            return seed
        if shared:
            return seed + 1 + (s * m if m > 1 else 0)
        others = m - 1  # a label's own contexts do not change with its own answer
        return seed + self.contexts * (m + s * others * (m if self.rule == "full" else 2))

    def refine(
        self, asker: Asker, windows: Sequence[Window], seeds: Sequence[FloatArray], decided: Sequence[BoolArray]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        if self.sweeps == 0:
            return list(seeds), {}
        walks = [self._walk(window, start) for window, start in zip(windows, decided, strict=True)]
        found = take_walks(asker, windows, walks)
        details = {f"surrogate_{number}": [one.trace[number] for one in found] for number in range(self.sweeps + 1)}
        details["changes"] = [float((one.state != start).sum()) for one, start in zip(found, decided, strict=True)]
        return [one.log_odds for one in found], details

    def _walk(self, window: Window, start: BoolArray) -> Walk["_Refined"]:
        """Algorithm 2 for one window."""
        random = window.generator(self.random_state)
        state = State.start(start, self.contexts, random)
        value = yield from surrogate(state)
        trace, log_odds = [value], np.zeros(len(start))
        for _ in range(self.sweeps):
            before = state.assignment
            for label in random.permutation(len(start)).tolist():
                if self.rule == "full":
                    state, value, size = yield from _full_gain(state, value, label)
                else:
                    state, size = yield from _local(state, label)
                log_odds[label] = _signed(size, state, label)
            if self.rule == "local":
                value = yield from surrogate(state)
            trace.append(value)
            if self.rule == "full" and (before == state.assignment).all():
                break  # an optimum: no later sweep changes anything
        trace += trace[-1:] * (self.sweeps + 1 - len(trace))
        return _Refined(log_odds, state.assignment, tuple(trace))


@dataclass(frozen=True)
class _Refined:
    """A window's log-odds [m], its assignment [m], and the surrogate before the first and after every sweep."""

    log_odds: FloatArray
    state: BoolArray
    trace: tuple[float, ...]


def _local(state: State, label: int) -> Walk[tuple[State, float]]:
    """The label's new answer; the mean over contexts of u is l(1) - l(0), and a tie changes nothing."""
    found = yield from local_log_odds(state, [label])
    value = float(found.mean())
    return (state.changed(label, value > 0) if value else state), value


def _full_gain(state: State, value: float, label: int) -> Walk[tuple[State, float, float]]:
    """The surrogate with the label turned over, against the present one; a tie changes nothing."""
    turned = state.changed(label, not state.assignment[label])
    other = yield from surrogate(turned)
    gain = other - value
    return (turned, other, gain) if gain > 0 else (state, value, gain)


def _signed(size: float, state: State, label: int) -> float:
    """Log-odds of this size on the side of the present decision, and not 0 on a tie."""
    return max(abs(size), LEAST) * (1 if state.assignment[label] else -1)
