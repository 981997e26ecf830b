"""Shortlists: which labels of a large inventory are asked for a document."""

from setscore.shortlist.choosing import ask_shortlisted, remember, shortlist_of
from setscore.shortlist.hierarchy import Descent
from setscore.shortlist.retention import Retention, f1_ceiling, retention, worst_labels
from setscore.shortlist.shortlist import RETRIEVERS, Shortlist, ShortlistWarning

__all__ = [
    "RETRIEVERS",
    "Descent",
    "Retention",
    "Shortlist",
    "ShortlistWarning",
    "ask_shortlisted",
    "f1_ceiling",
    "remember",
    "retention",
    "shortlist_of",
    "worst_labels",
]
