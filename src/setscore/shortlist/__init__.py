"""Shortlists: which labels of a large inventory are asked for a document."""

from setscore.shortlist.encoder import ENCODER, Encode, encoder_folder, load_encoder, load_sentence_transformer, unit
from setscore.shortlist.inventory import ask_some
from setscore.shortlist.retention import Retention, f1_ceiling, retention, worst_labels
from setscore.shortlist.shortlist import RETRIEVERS, Shortlist, ShortlistWarning, shortlist_of

__all__ = [
    "ENCODER",
    "RETRIEVERS",
    "Encode",
    "Retention",
    "Shortlist",
    "ShortlistWarning",
    "ask_some",
    "encoder_folder",
    "f1_ceiling",
    "load_encoder",
    "load_sentence_transformer",
    "retention",
    "shortlist_of",
    "unit",
    "worst_labels",
]
