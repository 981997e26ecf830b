"""The classifier's option `shortlist`: what its values mean, and how labels are asked with each."""

from collections.abc import Sequence
from typing import Any

from setscore.errors import SetScoreError
from setscore.records import BoolArray, Document, LabelSet, Scores
from setscore.shortlist.hierarchy import Ask, Descent
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


def remember(
    source: Any, documents: Sequence[Document], labels: LabelSet, gold: BoolArray | None
) -> Shortlist | Descent | None:
    """The same, with what a Shortlist remembers of labelled documents."""
    shortlist = shortlist_of(source)
    if not isinstance(shortlist, Shortlist):
        return shortlist
    return shortlist.fitted([document.text for document in documents], labels, gold)


def ask_shortlisted(
    ask: Ask, texts: Sequence[str], labels: LabelSet, asked: BoolArray | None, shortlist: Shortlist | Descent | None
) -> Scores:
    """Scores [n_documents, n_labels] of the labels that the shortlist leaves, of those `asked` where that is given."""
    if isinstance(shortlist, Descent):
        return shortlist.ask(ask, labels, asked, len(texts))
    return ask(labels, candidates=asked if shortlist is None else shortlist.select(texts, labels, within=asked))


def _descent(source: str) -> Descent:
    _, _, floor = source.partition(":")
    try:
        return Descent(float(floor)) if floor else Descent()
    except ValueError as error:
        raise SetScoreError(f"parents:FLOOR takes log-odds, as in parents:-2; got {source!r}.") from error
