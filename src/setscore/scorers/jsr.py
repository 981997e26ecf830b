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
from setscore.scorers.local import State, local_log_odds, surrogates
from setscore.scorers.seeded import SeededScorer

RULES = ("local", "full")
LEAST = 1e-9  # log-odds of a tie


@dataclass(frozen=True)
class JsrScorer(SeededScorer):
    """sweeps: S; contexts: K for each local query; rule: local or full.

    Besides the seed, local costs S m K forwards for the sweeps and (S + 1) m K for the surrogate before and after them;
    full costs (1 + S m) m K at most: it stops after a sweep without a change. With shared attention a step costs one
    forward: S m + S + 1, and 1 + S m. Details: `surrogate_0` to `surrogate_S`, and `changes` from the seed.
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
        each = 1 if shared else m * self.contexts  # a surrogate
        step = 1 if shared else self.contexts  # a local update
        return seed + (each * (1 + s * m) if self.rule == "full" else s * m * step + (s + 1) * each)

    def refine(
        self, asker: Asker, windows: Sequence[Window], seeds: Sequence[FloatArray], decided: Sequence[BoolArray]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        if self.sweeps == 0:
            return list(seeds), {}
        randoms = [window.generator(self.random_state) for window in windows]
        states = [
            State.start(window, start, self.contexts, random)
            for window, start, random in zip(windows, decided, randoms, strict=True)
        ]
        values = surrogates(asker, self.prompt, states)
        details = {"surrogate_0": list(values)}
        log_odds = [np.zeros(len(window.labels)) for window in windows]
        active = list(range(len(windows)))
        for number in range(1, self.sweeps + 1):
            orders = [random.permutation(len(window.labels)) for random, window in zip(randoms, windows, strict=True)]
            before = [state.assignment for state in states]
            for place in range(max(len(order) for order in orders)):
                chosen = [(row, int(orders[row][place])) for row in active if place < len(orders[row])]
                step = self._full if self.rule == "full" else self._local
                step(asker, chosen, states, values, log_odds)
            if self.rule == "local":
                values = surrogates(asker, self.prompt, states)
            else:
                active = [row for row in active if (before[row] != states[row].assignment).any()]
            details[f"surrogate_{number}"] = list(values)
        pairs = zip(states, decided, strict=True)
        details["changes"] = [float((state.assignment != start).sum()) for state, start in pairs]
        return log_odds, details

    def _local(
        self,
        asker: Asker,
        chosen: Sequence[tuple[int, int]],
        states: list[State],
        values: list[float],  # noqa: ARG002
        log_odds: list[FloatArray],
    ) -> None:
        """One label of each chosen window; the mean over contexts of u is l(1) - l(0)."""
        found = local_log_odds(asker, self.prompt, [(states[row], [label]) for row, label in chosen])
        for (row, label), answers in zip(chosen, found, strict=True):
            value = float(answers.mean())
            if value != 0:
                states[row] = states[row].changed(label, value > 0)
            log_odds[row][label] = _signed(value, states[row], label)

    def _full(
        self,
        asker: Asker,
        chosen: Sequence[tuple[int, int]],
        states: list[State],
        values: list[float],
        log_odds: list[FloatArray],
    ) -> None:
        """The surrogate with the label turned over, against the present one; a tie changes nothing."""
        turned = [states[row].changed(label, not states[row].assignment[label]) for row, label in chosen]
        for (row, label), state, value in zip(chosen, turned, surrogates(asker, self.prompt, turned), strict=True):
            gain = value - values[row]
            if gain > 0:
                states[row], values[row] = state, value
            log_odds[row][label] = _signed(gain, states[row], label)


def _signed(size: float, state: State, label: int) -> float:
    """Log-odds of this size on the side of the present decision, and not 0 on a tie."""
    return max(abs(size), LEAST) * (1 if state.assignment[label] else -1)
