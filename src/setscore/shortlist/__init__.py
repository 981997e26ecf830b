"""Shortlists: which labels of a large inventory are asked for a document."""

from setscore.shortlist.choosing import ask_shortlisted, remember, shortlist_of
from setscore.shortlist.hierarchy import Descent
from setscore.shortlist.shortlist import RETRIEVERS, Shortlist, ShortlistWarning

__all__ = [
    "RETRIEVERS",
    "Descent",
    "Shortlist",
    "ShortlistWarning",
    "ask_shortlisted",
    "remember",
    "shortlist_of",
]
