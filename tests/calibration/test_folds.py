"""Cross-validation inside the slice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setscore.calibration.base import FOLDS, assign_folds
from setscore.calibration.platt import log_loss


@given(st.integers(1, 300))
def test_folds_are_equal_in_size_and_always_the_same(documents):
    sizes = np.bincount(assign_folds(documents))
    assert len(sizes) == min(FOLDS, documents)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(assign_folds(documents), assign_folds(documents))


def test_log_loss_is_the_mean_over_what_was_asked():
    logits, gold = np.array([[0.0, 2.0], [-3.0, 800.0]]), np.array([[True, True], [False, False]])
    asked = np.array([[True, True], [True, False]])
    expected = np.mean([np.log(2), np.log1p(np.exp(-2)), np.log1p(np.exp(-3))])
    assert log_loss(logits, gold, asked) == pytest.approx(expected)
    assert log_loss(logits, gold, asked & False) == 0.0
