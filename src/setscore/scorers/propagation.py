"""Belief propagation on a co-occurrence graph, one of the paper's future directions.

    p(y | x)  ~  prod_i exp(y_i v_i)  prod_{(i, j) in the tree} ( P(y_i, y_j) / (P(y_i) P(y_j)) )^strength

v are the seed's log-odds relative to its cuts, P is counted on the labelled slice. The graph is the tree of largest
mutual information (Chow and Liu), on which two passes of messages give the marginals exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from setscore.errors import SetScoreError
from setscore.records import FloatArray
from setscore.scorers.cooccurrence import CombiningScorer, Cooccurrence

LEAST_INFORMATION = 1e-9  # labels that know less of each other are not joined


@dataclass(frozen=True)
class PropagationScorer(CombiningScorer):
    """strength: 0 ignores the graph, 1 takes co-occurrence at its word. Cost: the seed's forwards."""

    strength: float = 1.0

    def __post_init__(self) -> None:
        if not self.strength >= 0:
            raise SetScoreError(f"strength is 0 or more, got {self.strength}.")

    def combine(self, log_odds: FloatArray, labels: Sequence[int], seen: Cooccurrence) -> FloatArray:
        joint = seen.joint()[np.ix_(labels, labels)]
        single = np.stack([joint.sum(axis=3)[i, i] for i in range(len(labels))])
        ratio = self.strength * np.log(joint / (single[:, None, :, None] * single[None, :, None, :]))
        return tree_marginals(log_odds, tree_edges(joint, single), ratio)


def tree_edges(joint: FloatArray, single: FloatArray) -> list[tuple[int, int]]:
    """Parent and child, parents first: the forest of largest mutual information. joint [m, m, 2, 2], single [m, 2]."""
    free = single[:, None, :, None] * single[None, :, None, :]
    information = (joint * np.log(joint / free)).sum(axis=(2, 3))
    np.fill_diagonal(information, 0)
    information[information < LEAST_INFORMATION] = 0
    forest = minimum_spanning_tree(-information)
    edges: list[tuple[int, int]] = []
    reached: set[int] = set()
    for root in range(len(single)):
        if root not in reached:
            order, before = breadth_first_order(forest, root, directed=False)
            reached |= set(order.tolist())
            edges += [(int(before[node]), int(node)) for node in order[1:]]
    return edges


def tree_marginals(log_odds: FloatArray, edges: Sequence[tuple[int, int]], ratio: FloatArray) -> FloatArray:
    """Marginal log-odds [n, m] of a forest: `log_odds` [n, m] at the nodes, `ratio` [m, m, 2, 2] at the edges."""
    inward = log_odds.copy()  # a node with the messages of its children
    upward = np.zeros_like(log_odds)  # the message of a node to its parent
    for parent, child in reversed(edges):
        upward[:, child] = _message(inward[:, child], ratio[parent, child])
        inward[:, parent] += upward[:, child]
    whole = inward.copy()
    for parent, child in edges:
        rest = whole[:, parent] - upward[:, child]
        whole[:, child] += _message(rest, ratio[child, parent])
    return whole


def _message(log_odds: FloatArray, ratio: FloatArray) -> FloatArray:
    """What a sender's log-odds [n] mean for the receiver, with ratio[receiver, sender], as log-odds."""
    yes = np.logaddexp(ratio[1, 0], ratio[1, 1] + log_odds)
    no = np.logaddexp(ratio[0, 0], ratio[0, 1] + log_odds)
    return np.asarray(yes - no)
