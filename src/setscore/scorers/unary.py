"""Unary Score Aggregation (Algorithm 1): all labels and all answer slots in one prompt, every slot masked.

    u_i(x) = 1/K sum_k [ log p(yes | s with M_k masked, r_i) - log p(no | ..) ]

The first context masks every slot: for K = 1 that is the paper's all-masked row, one forward for all labels. A suffix
without answers has only this one context, so the K - 1 others fill the slots outside M_k, drawn for each label by the
masking law q_i, with the answers that the first context gives. The paper's negative result: the first slot collapses
to yes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from setscore.errors import SetScoreError
from setscore.records import FloatArray
from setscore.scorers.base import Asker, SetScorer, Window, local_query, mask_set, read_own


@dataclass(frozen=True)
class UnaryScorer(SetScorer):
    """contexts: K. Cost: 1 + (K - 1) m forwards; with shared attention 1, or 2 when K > 1."""

    contexts: int = 1
    random_state: int = 13

    def __post_init__(self) -> None:
        if self.contexts < 1:
            raise SetScoreError(f"contexts is a number of mask contexts, 1 or more, got {self.contexts}.")

    def cost(self, labels: int, *, shared: bool) -> int:
        if labels == 0:
            return 0
        return 1 + (self.contexts > 1 if shared else (self.contexts - 1) * labels)

    def score_windows(
        self, asker: Asker, windows: Sequence[Window]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        first = [self.prompt.query(window.text, window.texts, [None] * len(window.labels)) for window in windows]
        found = [answers[0] for answers in asker.ask([[query] for query in first])]
        if self.contexts == 1:
            return found, {}
        drawn = [self._contexts(window) for window in windows]
        queries = [
            [local_query(self.prompt, window, values > 0, masked) for _, masked in contexts]
            for window, values, contexts in zip(windows, found, drawn, strict=True)
        ]
        totals = [values.copy() for values in found]
        for total, contexts, answers in zip(totals, drawn, asker.ask(queries), strict=True):
            for (label, masked), answer in zip(contexts, answers, strict=True):
                total[label] += read_own(answer, masked, label)
        return [total / self.contexts for total in totals], {}

    def _contexts(self, window: Window) -> list[tuple[int, np.ndarray]]:
        random, count = window.generator(self.random_state), len(window.labels)
        return [(label, mask_set(random, count, label)) for label in range(count) for _ in range(self.contexts - 1)]
