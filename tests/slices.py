"""Made-up labelled slices for the tests of calibrations: log-odds and gold, both [n_documents, n_labels]."""

import numpy as np
from hypothesis import strategies as st
from scipy.special import expit

NOT_ASKED = -np.inf


@st.composite
def slices(draw, not_asked=True, values=None, max_documents=8):
    """Small ones. Few distinct log-odds, so that ties are common."""
    rows, columns = draw(st.integers(1, max_documents)), draw(st.integers(1, 4))
    if values is None:
        values = st.one_of(st.integers(-6, 6).map(float), st.floats(-30, 30))
    if not_asked:
        values = st.one_of(values, st.just(NOT_ASKED))
    size = rows * columns
    log_odds = np.array(draw(st.lists(values, min_size=size, max_size=size))).reshape(rows, columns)
    gold = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(rows, columns)
    return log_odds, gold


def biased(seed, documents=200, biases=(-4.0, -3.0, -2.0, -1.0, 0.0, 1.0), slope=1.0, missing=0.0):
    """Gold drawn with P(gold) = sigmoid(slope u + bias of the label); a share of the pairs was not asked."""
    generator = np.random.default_rng(seed)
    log_odds = generator.normal(scale=2.5, size=(documents, len(biases)))
    gold = generator.random(log_odds.shape) < expit(slope * log_odds + np.array(biases))
    log_odds[generator.random(log_odds.shape) < missing] = NOT_ASKED
    return log_odds, gold


def f1(gold, predicted):
    """Over all entries; 0 where nothing is right."""
    hits, wrong, missed = (gold & predicted).sum(), (~gold & predicted).sum(), (gold & ~predicted).sum()
    return 2 * hits / (2 * hits + wrong + missed) if hits else 0.0
