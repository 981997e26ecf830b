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
from setscore.scorers.local import State, local_log_odds
from setscore.scorers.seeded import SeededScorer

SMALLEST = 1e-12  # probabilities are kept this far from 0 and 1, so that their logits stay finite


@dataclass(frozen=True)
class GibbsScorer(SeededScorer):
    """sweeps: S, at least 2; hot: the first temperature. Cost besides the seed: S m forwards, in either attention."""

    sweeps: int = 4
    hot: float = 4.0
    random_state: int = 13

    def __post_init__(self) -> None:
        if self.sweeps < 2 or not self.hot >= 1:
            raise SetScoreError(f"sweeps from 2 and hot from 1 are needed, got {self.sweeps} and {self.hot}.")

    def cost(self, labels: int, *, shared: bool) -> int:
        return self.seed.cost(labels, shared=shared) + self.sweeps * labels

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
        randoms = [window.generator(self.random_state) for window in windows]
        states = [
            State(window, np.eye(len(start), dtype=np.bool_)[:, None], start)  # only the own slot is masked
            for window, start in zip(windows, decided, strict=True)
        ]
        totals = [np.zeros(len(window.labels)) for window in windows]
        for number, temperature in enumerate(self.temperatures()):
            orders = [random.permutation(len(window.labels)) for random, window in zip(randoms, windows, strict=True)]
            for place in range(max(len(order) for order in orders)):
                chosen = [(row, int(order[place])) for row, order in enumerate(orders) if place < len(order)]
                found = local_log_odds(asker, self.prompt, [(states[row], [label]) for row, label in chosen])
                for (row, label), answer in zip(chosen, found, strict=True):
                    value = float(answer[0, 0])
                    states[row] = states[row].changed(label, randoms[row].random() < expit(value / temperature))
                    totals[row][label] += expit(value) * (number >= self.sweeps // 2)
        kept = self.sweeps - self.sweeps // 2
        return [logit(np.clip(total / kept, SMALLEST, 1 - SMALLEST)) for total in totals], {}
