"""Only the labels that some document is asked, so that a scorer never walks over a hundred thousand of them."""

from dataclasses import replace
from typing import Protocol

import numpy as np

from setscore.records import BoolArray, IntArray, LabelSet, Scores

LONGEST = 16  # labels with the longest texts, kept so that the room left for a document does not depend on the others


class Ask(Protocol):
    """A scorer that has its backbone and its documents."""

    def __call__(self, labels: LabelSet, *, candidates: BoolArray | None) -> Scores: ...


def ask_some(ask: Ask, labels: LabelSet, asked: BoolArray | None) -> Scores:
    """Scores over the whole inventory from a scorer that sees only the labels that some document is asked."""
    some, candidates, places = narrowed(labels, asked)
    return widened(ask(some, candidates=candidates), places, labels)


def narrowed(labels: LabelSet, asked: BoolArray | None) -> tuple[LabelSet, BoolArray | None, IntArray]:
    """The labels that are asked of some document, their part of `asked`, and their places in the inventory."""
    if asked is None or asked.any(axis=0).all():
        return labels, asked, np.arange(len(labels))
    wanted: BoolArray = np.asarray(asked.any(axis=0))
    wanted[np.argsort([-len(text) for text in labels.texts], kind="stable")[:LONGEST]] = True
    places = np.flatnonzero(wanted)
    some = tuple(replace(labels.labels[i], parent=None) for i in places)  # a parent may not be among them
    return LabelSet(some), asked[:, places], places


def widened(scores: Scores, places: IntArray, labels: LabelSet) -> Scores:
    """Scores over the whole inventory; what was left out was not asked."""
    if len(places) == len(labels):
        return scores
    shape = (len(scores.log_odds), len(labels))
    log_odds, scored = np.full(shape, -np.inf), np.zeros(shape, dtype=np.bool_)
    log_odds[:, places], scored[:, places] = scores.log_odds, scores.scored
    return Scores(log_odds, scored, scores.truncated, scores.forwards)
