"""What `setscore calibrate` says in words of a fit: what was learned, and what more documents may bring."""

from types import SimpleNamespace

import numpy as np
import pytest

from setscore.experiments.learning import Point, in_words
from setscore.fitting import Known
from setscore.records import LabelSet


def fitted(documents=60, shares=(0.2, 0.2, 0.6)):
    """As much of a fit as the sentences read: five examples or more of both labels."""
    known = Known.of({}, np.ones((documents, 2), dtype=np.bool_), None)
    calibration, readout = SimpleNamespace(objective="balanced"), SimpleNamespace(shares=shares)
    return SimpleNamespace(known=known, calibration=calibration, readout=readout, labels=LabelSet.of(["a", "b"]))


def curve(*micro_f1):
    """A curve whose last step is a doubling, so that its gain is the rate."""
    return [Point(20 * 2**step, value, value) for step, value in enumerate(micro_f1)]


@pytest.mark.parametrize(
    ("gained", "told"),
    [
        (0.0, "more documents of this kind would bring little."),
        (0.4, "more documents of this kind would bring little."),
        (0.6, "60 more documents may bring about 0 to 1 point."),
        (1.2, "60 more documents may bring about 1 point."),
        (2.0, "60 more documents may bring about 1 to 2 points."),
        (6.0, "60 more documents may bring about 3 to 6 points."),
    ],
)
def test_what_more_documents_bring_is_a_range_or_one_number(gained, told):
    _, sentence = in_words(fitted(), curve(0.5, 0.5 + gained / 100))
    assert sentence == f"from 20 to 40 documents micro-F1 went {gained:+.1f}: {told}"


@pytest.mark.parametrize(("documents", "sentences"), [(49, 1), (50, 2)])
def test_the_curve_is_told_from_fifty_documents_on(documents, sentences):
    assert len(list(in_words(fitted(documents), curve(0.5, 0.6)))) == sentences


@pytest.mark.parametrize(
    ("shares", "start"),
    [
        ((0.2, 0.2, 0.6), "learned mostly what documents with each label look like (60% of the evidence)."),
        ((0.5, 0.25, 0.25), "learned partly what all labels share; there is too little to tell them apart (50% of"),
        ((0.3, 0.26, 0.44), "learned partly what documents with each label look like (44% of the evidence)."),
    ],
)
def test_mostly_is_more_than_half_of_the_evidence(shares, start):
    (sentence,) = in_words(fitted(shares=shares), [])
    assert sentence.startswith(start)
