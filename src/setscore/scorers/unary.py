"""Unary Score Aggregation (Algorithm 1): all labels and all answer slots in one prompt, every slot masked.

    u_i(x) = 1/K sum_k [ log p(yes | s with M_k masked, r_i) - log p(no | ..) ]

The first context masks every slot: for K = 1 that is the paper's all-masked row, one forward for all labels. A suffix
without answers has only this one context, so the K - 1 others fill the slots outside M_k, drawn for each label by the
masking law q_i, with the answers that the first context gives. The paper's negative result: the first slot collapses
to yes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray
from setscore.scorers.base import Asker, SetScorer, Window, local_query, mask_set, read_own


@dataclass(frozen=True)
class UnaryScorer(SetScorer):
    """contexts: K. Cost: 1 + (K - 1) m forwards; with shared attention 1, or 2 when K > 1."""

    contexts: int = 1
    random_state: int = 13

    def __post_init__(self) -> None:
        check_contexts(self.contexts)

    def cost(self, labels: int, *, shared: bool) -> int:
        if labels == 0:
            return 0
        return 1 + (self.contexts > 1 if shared else (self.contexts - 1) * labels)

    def score_windows(
        self, asker: Asker, windows: Sequence[Window]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        groups = [[window] for window in windows]
        found = aggregated(asker, groups, contexts=self.contexts, random_state=self.random_state)
        return [values for (values,) in found], {}


def check_contexts(contexts: int) -> None:
    if contexts < 1:
        raise SetScoreError(f"contexts is a number of mask contexts, 1 or more, got {contexts}.")


def aggregated(
    asker: Asker, groups: Sequence[Sequence[Window]], *, contexts: int, random_state: int
) -> list[list[FloatArray]]:
    """Algorithm 1 for every window of every group; a group holds one window with its labels in several orders."""
    first = [[asker.prompt.query(one.text, one.texts, [None] * len(one.labels)) for one in group] for group in groups]
    found = asker.ask(first)
    if contexts == 1:
        return found
    drawn = [_draw(group, contexts - 1, random_state) for group in groups]
    queries = [
        [local_query(asker.prompt, group[number], values[number] > 0, masked) for number, _, masked in places]
        for group, values, places in zip(groups, found, drawn, strict=True)
    ]
    totals = [[values.copy() for values in group] for group in found]
    for total, places, answers in zip(totals, drawn, asker.ask(queries), strict=True):
        for (number, label, masked), answer in zip(places, answers, strict=True):
            total[number][label] += read_own(answer, masked, label)
    return [[values / contexts for values in total] for total in totals]


def _draw(group: Sequence[Window], more: int, random_state: int) -> list[tuple[int, int, BoolArray]]:
    """The further contexts of a group: the number of the window in it, the label, and what is masked."""
    random = group[0].generator(random_state)
    return [
        (number, label, mask_set(random, len(one.labels), label))
        for number, one in enumerate(group)
        for label in range(len(one.labels))
        for _ in range(more)
    ]
