"""The classifier's option `shortlist`: what its values mean, and how labels are asked with each."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from setscore.errors import SetScoreError
from setscore.predictions import Ask
from setscore.records import BoolArray, LabelSet, Progress, Scores
from setscore.shortlist.hierarchy import Descent
from setscore.shortlist.shortlist import Shortlist

PARENTS = "parents"


def shortlist_of(source: Any) -> Shortlist | Descent | None:
    """None, a Shortlist, or for "parents" a Descent."""
    if source is None or isinstance(source, Descent):
        return source
    if isinstance(source, dict) and "floor" in source:
        return Descent(**source)
    if isinstance(source, str) and source.partition(":")[0] == PARENTS:
        return _descent(source)
    return Shortlist.of(source)


def remember(source: Any, texts: Sequence[str], labels: LabelSet, gold: BoolArray | None) -> Shortlist | Descent | None:
    """The same, with what a Shortlist remembers of labelled documents."""
    shortlist = shortlist_of(source)
    return shortlist.fitted(texts, labels, gold) if isinstance(shortlist, Shortlist) else shortlist


def ask_shortlisted(
    shortlist: Shortlist | Descent,
    ask: Ask,
    texts: Sequence[str],
    labels: LabelSet,
    *,
    candidates: BoolArray | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Scores [n_documents, n_labels] of the labels that the shortlist leaves, of the `candidates` if there are any."""
    if isinstance(shortlist, Descent):
        return shortlist.ask(partial(ask, texts, progress=progress), labels, candidates, len(texts))
    return ask(texts, labels, candidates=shortlist.select(texts, labels, within=candidates), progress=progress)


def _descent(source: str) -> Descent:
    _, _, floor = source.partition(":")
    try:
        return Descent(float(floor)) if floor else Descent()
    except ValueError as error:
        raise SetScoreError(f"parents:FLOOR takes log-odds, as in parents:-2; got {source!r}.") from error
