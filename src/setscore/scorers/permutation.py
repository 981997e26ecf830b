"""Permutation-averaged unary scoring (Algorithm 4): Algorithm 1, with its K contexts, in P orders of the labels.

    u_i = 1/P sum_p u^(p) at the place of label i in order p

The orders are drawn once and serve all documents, so that a document's scores do not depend on its company. Once P
reaches m! every order is asked exactly once, and with one context the scores no longer depend on the order of the
labels. A single order is the given one, as the paper's P = 1 is its all-masked row.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from setscore.errors import SetScoreError
from setscore.records import FloatArray
from setscore.scorers.base import Asker, SetScorer, Window
from setscore.scorers.unary import UnaryScorer, aggregated, check_contexts

MOST_ORDERS = 1000  # each is a prompt for every document
AT_ONCE = 8  # orders with which a whole block of windows is asked together


@dataclass(frozen=True)
class PermutationScorer(SetScorer):
    """orders: P (the paper: 1, 2, 4, 8); contexts: K of Algorithm 1 in each order.

    Cost: min(P, m!) (1 + (K - 1) m) forwards; with shared attention 1, or 2 when K > 1.
    """

    orders: int = 4
    contexts: int = 1
    random_state: int = 13

    def __post_init__(self) -> None:
        check_contexts(self.contexts)
        if not 1 <= self.orders <= MOST_ORDERS:
            raise SetScoreError(
                f"orders is a number of label orders from 1 to {MOST_ORDERS}, got {self.orders}: each is a prompt for"
                " every document, and the paper has at most 8."
            )

    @property
    def block(self) -> int:
        """Fewer windows with many orders, so that progress is told as often."""
        return max(1, super().block * AT_ONCE // max(AT_ONCE, self.orders))

    def cost(self, labels: int, *, shared: bool) -> int:
        once = UnaryScorer(contexts=self.contexts).cost(labels, shared=shared)
        return once if shared else once * min(self.orders, math.factorial(labels))

    def drawn(self, labels: int) -> list[tuple[int, ...]]:
        """The orders of so many labels: tuples of label numbers by place."""
        if self.orders == 1:
            return [tuple(range(labels))]
        if self.orders >= math.factorial(labels):
            return list(itertools.permutations(range(labels)))
        random = np.random.default_rng([self.random_state, labels])
        return [tuple(random.permutation(labels).tolist()) for _ in range(self.orders)]

    def score_windows(
        self, asker: Asker, windows: Sequence[Window]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        drawn = {count: self.drawn(count) for count in {len(window.labels) for window in windows}}
        groups = [[window.reordered(order) for order in drawn[len(window.labels)]] for window in windows]
        found = aggregated(asker, groups, contexts=self.contexts, random_state=self.random_state)
        results = []
        for window, answers in zip(windows, found, strict=True):
            total = np.zeros(len(window.labels))
            for order, answer in zip(drawn[len(window.labels)], answers, strict=True):
                total[list(order)] += answer
            results.append(total / len(answers))
        return results, {}
