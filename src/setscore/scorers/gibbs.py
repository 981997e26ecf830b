"""Annealed Gibbs sampling over the local conditionals, one of the paper's future directions.

Labels are visited in random order and drawn, yes with probability sigmoid(u_i / T), where u_i is read with every other
slot filled with its present answer. T falls from `hot` to 1 over the first half of the sweeps, to leave a biased start;
the second half is averaged:

    result_i = logit( mean over the second half of sigmoid(u_i) )
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray
from setscore.scorers.base import Asker, Window
from setscore.scorers.local import State, Walk, local_log_odds, take_walks
from setscore.scorers.seeded import SeededScorer

SMALLEST = 1e-12  # probabilities are kept this far from 0 and 1, so that their logits stay finite


@dataclass(frozen=True)
class GibbsScorer(SeededScorer):
    """sweeps: S, at least 2; hot: the first temperature.

    Cost besides the seed, in either attention: S m forwards at most. What was asked before is known: the count is that
    of different questions, and there are no more than m 2^(m - 1).
    """

    sweeps: int = 4
    hot: float = 4.0
    random_state: int = 13

    def __post_init__(self) -> None:
        if self.sweeps < 2 or not self.hot >= 1:
            raise SetScoreError(f"sweeps from 2 and hot from 1 are needed, got {self.sweeps} and {self.hot}.")

    def cost(self, labels: int, *, shared: bool) -> int:
        return self.seed.cost(labels, shared=shared) + min(self.sweeps * labels, labels << max(0, labels - 1))

    def temperatures(self) -> FloatArray:
        """[S], geometric from `hot` to 1 over the first half, then 1."""
        first = self.sweeps // 2
        return np.concatenate([np.geomspace(self.hot, 1, first + 1)[:-1], np.ones(self.sweeps - first)])

    def refine(
        self,
        asker: Asker,
        windows: Sequence[Window],
        seeds: Sequence[FloatArray],  # noqa: ARG002
        decided: Sequence[BoolArray],
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        walks = [self._walk(window, start) for window, start in zip(windows, decided, strict=True)]
        return take_walks(asker, windows, walks), {}

    def _walk(self, window: Window, start: BoolArray) -> Walk[FloatArray]:
        """The chain of one window."""
        random, m = window.generator(self.random_state), len(start)
        state = State(np.eye(m, dtype=np.bool_)[:, None], start)  # one context: only the own slot is masked
        total, first = np.zeros(m), self.sweeps // 2
        for number, temperature in enumerate(self.temperatures()):
            for label in random.permutation(m).tolist():
                found = yield from local_log_odds(state, [label])
                value = float(found[0, 0])
                state = state.changed(label, random.random() < expit(value / temperature))
                total[label] += expit(value) * (number >= first)
        return logit(np.clip(total / (self.sweeps - first), SMALLEST, 1 - SMALLEST))
