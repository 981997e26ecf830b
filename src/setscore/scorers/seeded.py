"""Scorers that start from another scorer's decision, and may learn from a labelled slice."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from setscore.backbones import Backbone
from setscore.errors import LabelError
from setscore.prompts import SetTemplate, Template
from setscore.records import BoolArray, FloatArray, LabelSet, Progress, Scores
from setscore.scorers.base import Asker, Scorer, SetScorer, Window
from setscore.scorers.per_label import PerLabelScorer, Reading


@runtime_checkable
class Learner(Protocol):
    """A scorer that learns from a labelled slice; `learned` is what it learned, as JSON values."""

    @property
    def seed(self) -> Scorer: ...

    @property
    def learned(self) -> dict[str, Any]: ...

    def learn(self, cuts: FloatArray, gold: BoolArray) -> Self:
        """A copy that knows the log-odds from which the seed's labels are predicted [m], and the gold labels."""
        ...

    def restore(self, learned: Mapping[str, Any]) -> Self:
        """A copy with what `learned` gave."""
        ...


def start_from(cuts: Sequence[float], labels: int) -> FloatArray:
    """The cuts of the seed's log-odds [n_labels]; 0 before anything was learned."""
    if not cuts:
        return np.zeros(labels)
    if len(cuts) != labels:
        raise LabelError(
            f"the scorer learned about {len(cuts)} labels, but {labels} are asked. Fit it on these labels."
        )
    return np.array(cuts)


@dataclass(frozen=True)
class SeededScorer(ABC):
    """Refines the decisions of `seed`: yes where its log-odds reach `cuts` (0 until something was learned)."""

    reading: Reading = field(default_factory=Reading, kw_only=True)
    prompt: SetTemplate | None = field(default=None, kw_only=True)
    seed: Scorer = field(default_factory=lambda: PerLabelScorer(Template.of("express")), kw_only=True)
    cuts: tuple[float, ...] = field(default=(), kw_only=True)

    @property
    def learned(self) -> dict[str, Any]:
        return {"cuts": list(self.cuts)}

    def learn(self, cuts: FloatArray, gold: BoolArray) -> Self:  # noqa: ARG002
        return replace(self, cuts=tuple(cuts.tolist()))

    def restore(self, learned: Mapping[str, Any]) -> Self:
        return replace(self, cuts=tuple(learned["cuts"]))

    @abstractmethod
    def cost(self, labels: int, *, shared: bool) -> int: ...

    @abstractmethod
    def refine(
        self, asker: Asker, windows: Sequence[Window], seeds: Sequence[FloatArray], decided: Sequence[BoolArray]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        """New log-odds of each window's labels, from the seed's log-odds and decisions."""

    def score(
        self,
        backbone: Backbone,
        documents: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        seeds = self.seed.score(backbone, documents, labels, candidates=candidates)
        cuts = start_from(self.cuts, len(labels))
        scorer = _Refining(self, seeds.log_odds, seeds.log_odds >= cuts, reading=self.reading, prompt=self.prompt)
        found = scorer.score(backbone, documents, labels, candidates=candidates, progress=progress)
        cut = seeds.truncated | found.truncated
        return replace(found, forwards=seeds.forwards + found.forwards, truncated=cut)


@dataclass(frozen=True)
class _Refining(SetScorer):
    """A seeded scorer with the seed's log-odds and decisions of the documents at hand [n_documents, n_labels]."""

    scorer: SeededScorer
    log_odds: FloatArray
    decided: BoolArray

    def cost(self, labels: int, *, shared: bool) -> int:
        return self.scorer.cost(labels, shared=shared)

    def score_windows(
        self, asker: Asker, windows: Sequence[Window]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        places = [(window.row, list(window.labels)) for window in windows]
        seeds, decided = ([matrix[row, labels] for row, labels in places] for matrix in (self.log_odds, self.decided))
        return self.scorer.refine(asker, windows, seeds, decided)  # type: ignore[arg-type]
