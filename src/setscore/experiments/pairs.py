"""Whether two runs on the same documents differ: paired tests, seed by seed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setscore.errors import SetScoreError, counted
from setscore.experiments.evaluation import Summary, Trial, trials
from setscore.experiments.scored import Kind, Outcome, Scored, decided, fit
from setscore.metrics import Comparison, compare


@dataclass(frozen=True)
class Pair:
    """`first` minus `second` in every metric of decisions, for every seed."""

    first: str
    second: str
    seeds: Mapping[int, Mapping[str, Comparison]]

    def as_json(self) -> dict[str, Any]:
        seeds = {
            str(seed): {key: asdict(found) for key, found in metrics.items()} for seed, metrics in self.seeds.items()
        }
        return {"first": self.first, "second": self.second, "seeds": seeds}


def within(summaries: Sequence[Summary], drawn: Sequence[Trial]) -> list[Pair]:
    """The first way to decide on the model's scores against every other one."""
    first, *others = [summary for summary in summaries if summary.kind == "model"]
    return [_pair(first.name, first.rows, other.name, other.rows, drawn) for other in others]


def between(first: Summary, drawn: Sequence[Trial], other: Mapping[str, Scored], kind: Kind, name: str) -> Pair:
    """A run against `other`, saved parts of another run on the same documents, calibrated in the same way."""
    seeds = [trial.seed for trial in drawn]
    rows = {}
    for ours, theirs in zip(drawn, trials(other, seeds), strict=True):
        for part in ("validation", "test"):
            _check_same(getattr(ours, part), getattr(theirs, part), name)
        rows[ours.seed] = decided(fit(theirs.validation, theirs.test, kind), theirs.test)
    return _pair(first.name, first.rows, f"{first.name} of {name}", rows, drawn)


def _pair(
    first: str, ours: Mapping[int, Outcome], second: str, theirs: Mapping[int, Outcome], drawn: Sequence[Trial]
) -> Pair:
    seeds = {}
    for trial in drawn:
        one, other = ours[trial.seed].decisions, theirs[trial.seed].decisions
        if one is not None and other is not None:
            seeds[trial.seed] = compare(trial.test.gold, other, one)
    return Pair(first, second, seeds)


def _check_same(ours: Scored, theirs: Scored, name: str) -> None:
    if (ours.ids, ours.labels) != (theirs.ids, theirs.labels) or not np.array_equal(ours.gold, theirs.gold):
        raise SetScoreError(
            f"{name} has scores of {counted(len(theirs), 'document')} and {counted(len(theirs.labels), 'label')}, this"
            f" run of {len(ours)} and {len(ours.labels)}, and they are not the same. A paired test is about the same"
            " documents and labels."
        )
