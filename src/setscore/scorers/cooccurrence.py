"""Which labels occur together in a labelled slice, and what scorers share that use it without asking anything more."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from setscore.backbones import Backbone
from setscore.prompts import Template
from setscore.records import BoolArray, FloatArray, LabelSet, Progress, Scores
from setscore.scorers.base import Scorer
from setscore.scorers.per_label import PerLabelScorer
from setscore.scorers.seeded import start_from


@dataclass(frozen=True)
class Cooccurrence:
    """Of `documents`, how many have both labels: [m, m] counts, those of a label alone on the diagonal."""

    documents: int
    together: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, gold: BoolArray) -> "Cooccurrence":
        counts = gold.astype(np.int64).T @ gold.astype(np.int64)
        return cls(len(gold), tuple(map(tuple, counts.tolist())))

    def counts(self) -> FloatArray:
        return np.array(self.together, dtype=np.float64)

    def joint(self, smoothing: float = 1.0) -> FloatArray:
        """Pr(Y_i = a, Y_j = b) as [m, m, 2, 2], `smoothing` pseudo-documents spread as if labels were independent."""
        both, n = self.counts(), float(self.documents)
        single = (np.diag(both) + smoothing / 2) / (n + smoothing)
        alone = np.stack([1 - single, single], axis=-1)  # [m, 2]
        i, j = np.diag(both)[:, None], np.diag(both)[None, :]
        seen = np.stack([np.stack([n - i - j + both, j - both], -1), np.stack([i - both, both], -1)], -2)
        free = alone[:, None, :, None] * alone[None, :, None, :]
        table: FloatArray = (seen + smoothing * free) / (n + smoothing)
        return table


@dataclass(frozen=True)
class CombiningScorer(ABC):
    """Changes the log-odds of `seed`, read relative to `cuts`, with what `learn` saw. Cost: the seed's, nothing more.

    Before anything was learned the seed's log-odds come out as they are.
    """

    seed: Scorer = field(default_factory=lambda: PerLabelScorer(Template.of("express")), kw_only=True)
    cuts: tuple[float, ...] = field(default=(), kw_only=True)
    seen: Cooccurrence | None = field(default=None, kw_only=True)

    @property
    def learned(self) -> dict[str, Any]:
        seen = (
            None
            if self.seen is None
            else {"documents": self.seen.documents, "together": [*map(list, self.seen.together)]}
        )
        return {"cuts": list(self.cuts), "seen": seen}

    def learn(self, cuts: FloatArray, gold: BoolArray) -> Self:
        return replace(self, cuts=tuple(cuts.tolist()), seen=Cooccurrence.of(gold))

    def restore(self, learned: Mapping[str, Any]) -> Self:
        seen = learned["seen"]
        made = None if seen is None else Cooccurrence(seen["documents"], tuple(map(tuple, seen["together"])))
        return replace(self, cuts=tuple(learned["cuts"]), seen=made)

    def cost(self, labels: int, *, shared: bool) -> int:
        return self.seed.cost(labels, shared=shared)

    @abstractmethod
    def combine(self, log_odds: FloatArray, labels: Sequence[int], seen: Cooccurrence) -> FloatArray:
        """New log-odds [n, k] from log-odds relative to the cuts [n, k] of the `labels` asked; above 0 means yes."""

    def score(
        self,
        backbone: Backbone,
        documents: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        scores = self.seed.score(backbone, documents, labels, candidates=candidates, progress=progress)
        cuts = start_from(self.cuts, len(labels))
        if self.seen is None:
            return scores
        log_odds = scores.log_odds.copy()
        groups: dict[tuple[int, ...], list[int]] = {}  # documents by the labels asked
        for row, asked in enumerate(scores.scored):
            groups.setdefault(tuple(np.flatnonzero(asked).tolist()), []).append(row)
        for columns, rows in groups.items():
            if columns:
                place = np.ix_(rows, columns)
                log_odds[place] = self.combine(scores.log_odds[place] - cuts[list(columns)], columns, self.seen)
        return replace(scores, log_odds=log_odds)
