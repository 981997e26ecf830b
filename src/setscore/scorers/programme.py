"""An exact integer programme over per-label log-odds, one of the paper's future directions.

    maximise  sum_i v_i y_i + strength sum_{i < j} w_ij y_i y_j      y in {0, 1}^m

v are the seed's log-odds relative to its cuts. From the labelled slice: w_ij, the pointwise mutual information of pairs
that occur together; y_i <= y_j where label i never came without j (a hierarchy); y_i + y_j <= 1 where two labels were
never together though chance would have it. Solved by SciPy's `milp`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from setscore.errors import ScoreError, SetScoreError, unknown_name
from setscore.records import FloatArray
from setscore.scorers.cooccurrence import CombiningScorer, Cooccurrence

CONSTRAINTS = ("both", "hierarchy", "exclusion", "none")
LEAST = 1e-6  # how far from 0 a decision against the seed is moved


@dataclass(frozen=True)
class Rules:
    """What the slice says about pairs: (child, parent), (one, other), and (i, j, w)."""

    implied: tuple[tuple[int, int], ...]
    excluded: tuple[tuple[int, int], ...]
    pairs: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class ProgrammeScorer(CombiningScorer):
    """constraints: both, hierarchy, exclusion or none; support: documents that a rule needs. Cost: the seed's forwards.

    The result is the seed's log-odds relative to its cuts, moved to the other side of 0 where the programme decides
    otherwise.
    """

    constraints: str = "both"
    strength: float = 0.0
    support: float = 5.0

    def __post_init__(self) -> None:
        if self.constraints not in CONSTRAINTS:
            raise SetScoreError(unknown_name("constraints", self.constraints, CONSTRAINTS))
        if not (self.strength >= 0 and self.support > 0):
            raise SetScoreError(f"strength from 0, support above 0 are needed: got {self.strength}, {self.support}.")

    def combine(self, log_odds: FloatArray, labels: Sequence[int], seen: Cooccurrence) -> FloatArray:
        rules = self.rules(seen, labels)
        decided = np.array([solve(row, rules) for row in log_odds])
        return np.where(decided, np.maximum(log_odds, LEAST), np.minimum(log_odds, -LEAST))

    def rules(self, seen: Cooccurrence, labels: Sequence[int]) -> Rules:
        """The rules among `labels`, numbered by their place there."""
        both = seen.counts()[np.ix_(labels, labels)]
        alone, m = np.diag(both), len(labels)
        expected = alone[:, None] * alone[None, :] / max(1, seen.documents)
        ordered = [(i, j) for i in range(m) for j in range(m) if i != j]
        implied = [(i, j) for i, j in ordered if alone[i] >= self.support and both[i, j] == alone[i] < alone[j]]
        excluded = [(i, j) for i, j in ordered if i < j and both[i, j] == 0 and expected[i, j] >= self.support]
        pairs = [
            (i, j, self.strength * float(np.log(both[i, j] / expected[i, j])))
            for i, j in ordered
            if i < j and self.strength and both[i, j] >= self.support
        ]
        return Rules(
            tuple(implied) if self.constraints in ("both", "hierarchy") else (),
            tuple(excluded) if self.constraints in ("both", "exclusion") else (),
            tuple(pairs),
        )


def solve(values: FloatArray, rules: Rules) -> np.ndarray:
    """The assignment [m] of the largest value; a label of value 0 stays out unless a rule wants it."""
    m, pairs = len(values), rules.pairs
    if not (rules.implied or rules.excluded or pairs):
        return values > 0
    rows: list[tuple[dict[int, float], float]] = []  # coefficients and the most their sum may be
    rows += [({i: 1, j: -1}, 0) for i, j in rules.implied]
    rows += [({i: 1, j: 1}, 1) for i, j in rules.excluded]
    for number, (i, j, _) in enumerate(pairs, start=m):  # z = y_i y_j
        rows += [({number: 1, i: -1}, 0), ({number: 1, j: -1}, 0), ({i: 1, j: 1, number: -1}, 1)]
    entries = [(row, column, value) for row, (line, _) in enumerate(rows) for column, value in line.items()]
    at, columns, data = zip(*entries, strict=True)
    matrix = coo_array((data, (at, columns)), shape=(len(rows), m + len(pairs)))
    cost = -np.concatenate([values, [weight for _, _, weight in pairs]])
    constraint = LinearConstraint(matrix.tocsr(), ub=np.array([most for _, most in rows], dtype=np.float64))
    found = milp(
        cost,
        integrality=np.ones(len(cost), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=[constraint],
        options={"mip_rel_gap": 0.0},  # exact, not within the solver's usual gap
    )
    if found.x is None:
        raise ScoreError(f"the integer programme over {m} labels has no solution: {found.message}")
    return np.asarray(found.x[:m] > 0.5)
