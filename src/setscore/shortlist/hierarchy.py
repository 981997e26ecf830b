"""Labels with parents: a parent is asked first, its children only where it may apply.

Thousands of labels then cost tens of questions, as long as few parents apply. A parent is a label like any other and
keeps its own score. What lies below a parent that does not apply is not asked, and so predicted negative.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from setscore.errors import LabelError
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet, Scores

FLOOR = -2.0  # log-odds; a probability of 12%. Too low costs questions, too high costs recall


class AskLabels(Protocol):
    """A scorer that has its backbone and its documents."""

    def __call__(self, labels: LabelSet, *, candidates: BoolArray | None) -> Scores: ...


@dataclass(frozen=True)
class Descent:
    """Children are asked where the parent's log-odds reach `floor`; minus infinity asks everything."""

    floor: float = FLOOR

    def ask(self, ask: AskLabels, labels: LabelSet, asked: BoolArray | None, documents: int) -> Scores:
        """Scores level by level; `asked` [n_documents, n_labels] limits them. A parent outside of it is passed by."""
        if (labels.parents < 0).all():
            raise LabelError(
                "shortlist='parents' descends from labels to their children, and no label has a parent."
                " Give parents, as in Label('crude', parent='energy'), or a shortlist such as 32."
            )
        shape = (documents, len(labels))
        allowed = np.ones(shape, dtype=np.bool_) if asked is None else asked
        open_ = np.ones(shape, dtype=np.bool_)  # whether everything above may apply
        log_odds, scored = np.full(shape, -np.inf), np.zeros(shape, dtype=np.bool_)
        truncated, forwards, details = np.zeros(documents, dtype=np.bool_), 0, dict[str, FloatArray]()
        for level in levels(labels.parents):
            above = labels.parents[level]
            if above[0] >= 0:
                may = ~scored[:, above] | (log_odds[:, above] >= self.floor)
                open_[:, level] = open_[:, above] & may
            wanted = np.zeros(shape, dtype=np.bool_)
            wanted[:, level] = allowed[:, level] & open_[:, level]
            if wanted.any():
                found = ask(labels, candidates=wanted)
                log_odds, scored = np.where(wanted, found.log_odds, log_odds), scored | wanted
                truncated, forwards = truncated | found.truncated, forwards + found.forwards
                details = {name: details.get(name, 0) + value for name, value in found.details.items()}
        return Scores(log_odds, scored, truncated, forwards, details)


def levels(parents: IntArray) -> Iterator[IntArray]:
    """Places of the labels without a parent, then of their children, and so on."""
    level = np.flatnonzero(parents < 0)
    while len(level):
        yield level
        level = np.flatnonzero(np.isin(parents, level))
