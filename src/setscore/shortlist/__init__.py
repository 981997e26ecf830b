"""Shortlists: which labels of a large inventory are asked for a document."""

from setscore.shortlist.choosing import ask_shortlisted, remember, shortlist_of
from setscore.shortlist.encoder import (
    EMBEDDED,
    ENCODER,
    Encode,
    encoder_folder,
    load_encoder,
    load_sentence_transformer,
    unit,
)
from setscore.shortlist.hierarchy import Descent
from setscore.shortlist.retention import Retention, f1_ceiling, retention, worst_labels
from setscore.shortlist.shortlist import RETRIEVERS, Shortlist, ShortlistWarning

__all__ = [
    "EMBEDDED",
    "ENCODER",
    "RETRIEVERS",
    "Descent",
    "Encode",
    "Retention",
    "Shortlist",
    "ShortlistWarning",
    "ask_shortlisted",
    "encoder_folder",
    "f1_ceiling",
    "load_encoder",
    "load_sentence_transformer",
    "remember",
    "retention",
    "shortlist_of",
    "unit",
    "worst_labels",
]
