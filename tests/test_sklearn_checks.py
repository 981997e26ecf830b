"""scikit-learn's own estimator checks, on the classifier and on every calibration.

Neither fits them as it stands, because the checks feed numbers with one class per row:

- SetScoreClassifier reads texts. `NumbersAsText` writes rows of numbers as words, describes each class by the words of
  its mean row, and passes everything on. Multi-label targets and answers go through unchanged; of a vector of classes
  it makes one label per class, and of the log-odds the likeliest class.
- A calibration wants a gold answer for every log-odds. `OneAnswerPerRow` stands before it; its `fit` repeats the one
  answer of a row for each of its columns. Validation, tags, `transform` and `predict` are the calibration's own, so
  this is as direct as the checks allow. "conformal" is checked where its extra is installed.
"""

from collections import Counter
from importlib.util import find_spec
from unittest import SkipTest

import numpy as np
import pytest
from fakes import EmbeddingBackbone
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from setscore import SetScoreClassifier
from setscore.calibration import (
    CALIBRATIONS,
    AutoCalibration,
    BiasCalibration,
    ConformalCalibration,
    IsotonicCalibration,
    LearnedCalibration,
    LevelledCalibration,
    PaperCalibration,
    PlattCalibration,
    ShrunkCalibration,
    TemperatureCalibration,
    UnfittedCalibration,
)

STEPS = np.linspace(-2, 2, 9)


def as_words(row):
    """A row as words, one per feature and step: the nearer two rows, the more words they share."""
    return " ".join(
        f"f{j}{'over' if x >= step else 'under'}{k}" for j, x in enumerate(row) for k, step in enumerate(STEPS)
    )


class NumbersAsText(ClassifierMixin, BaseEstimator):
    """SetScoreClassifier for rows of numbers."""

    def __init__(self, threshold=0.5):
        self.threshold = threshold

    def fit(self, X, y):
        X, y = validate_data(self, X, y, multi_output=True)
        check_classification_targets(y)
        self.multilabel_ = type_of_target(y) == "multilabel-indicator"
        if self.multilabel_:
            self.classes_, gold = np.arange(y.shape[1]), y
        else:
            self.classes_, index = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            gold = np.eye(len(self.classes_), dtype=int)[index]
        labels = {f"label {i}": as_words(X[column == 1].mean(axis=0)) for i, column in enumerate(gold.T)}
        classifier = SetScoreClassifier(labels, backbone=EmbeddingBackbone(), threshold=self.threshold)
        self.classifier_ = classifier.fit([as_words(row) for row in X], gold)
        return self

    def _texts(self, X):
        check_is_fitted(self)
        return [as_words(row) for row in validate_data(self, X, reset=False)]

    def decision_function(self, X):
        texts = self._texts(X)
        log_odds = self.classifier_.decision_function(texts)
        binary = not self.multilabel_ and len(self.classes_) == 2
        return log_odds[:, 1] - log_odds[:, 0] if binary else log_odds

    def predict_proba(self, X):
        texts = self._texts(X)
        if self.multilabel_:
            return self.classifier_.predict_proba(texts)
        return softmax(self.classifier_.decision_function(texts), axis=1)

    def predict(self, X):
        texts = self._texts(X)
        if self.multilabel_:
            return self.classifier_.predict(texts)
        return self.classes_[self.classifier_.decision_function(texts).argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output, tags.classifier_tags.multi_label = True, True
        return tags


class OneAnswerPerRow:
    """Before a calibration: one gold answer per row, whether `y` is above its mean."""

    def fit(self, X, y):
        log_odds = self._check(X, reset=True)
        if y is not None:
            answers = np.asarray(y, dtype=float)
            y = np.repeat((answers > answers.mean())[:, None], log_odds.shape[1], axis=1)
        return super().fit(X, y)


# Written out, because the checks pickle them.
class Auto(OneAnswerPerRow, AutoCalibration): ...


class Bias(OneAnswerPerRow, BiasCalibration): ...


class Conformal(OneAnswerPerRow, ConformalCalibration): ...


class Isotonic(OneAnswerPerRow, IsotonicCalibration): ...


class Paper(OneAnswerPerRow, PaperCalibration): ...


class Platt(OneAnswerPerRow, PlattCalibration): ...


class Learned(OneAnswerPerRow, LearnedCalibration): ...


class Levelled(OneAnswerPerRow, LevelledCalibration): ...


class Shrunk(OneAnswerPerRow, ShrunkCalibration): ...


class Temperature(OneAnswerPerRow, TemperatureCalibration): ...


class Unfitted(OneAnswerPerRow, UnfittedCalibration): ...


ADAPTED = [Auto, Bias, Conformal, Isotonic, Learned, Levelled, Paper, Platt, Shrunk, Temperature, Unfitted]
CHECKED = [NumbersAsText, *(kind for kind in ADAPTED if kind is not Conformal or find_spec("mapie"))]

# Per estimator and check, why it is right that the check fails. Strict: one that passes after all fails here.
EXPECTED_FAILURES = {
    "NumbersAsText": {
        "check_classifier_multioutput": "it wants predict to be decision_function > 0 and probability > 0.5; `fit`"
        " chooses the threshold, as TunedThresholdClassifierCV does, and decision_function stays the log-odds",
    },
    "Conformal": {
        "check_fit2d_1sample": "one document cannot be split in two; the error says so in documents, not in samples",
    },
}
# Only runs where SCIPY_ARRAY_API was set before SciPy was imported.
MAY_SKIP = {"check_array_api_input"}
# With the scikit-learn of constraints.txt. Another version may bring other checks: look at them, then change this.
CHECKS = {kind.__name__: 48 for kind in ADAPTED} | {"NumbersAsText": 60, "Bias": 47}  # "bias" does not require y


@parametrize_with_checks(
    [kind() for kind in CHECKED],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
    xfail_strict=True,
)
def test_scikit_learn_check(estimator, check):
    try:
        check(estimator)
    except SkipTest as skipped:
        if check.func.__name__ not in MAY_SKIP:
            pytest.fail(f"{check.func.__name__} did not run: {skipped}")
        raise


def test_no_check_was_dropped():
    cases = [getattr(case, "values", case) for case in test_scikit_learn_check.pytestmark[0].args[1]]
    found = Counter(type(estimator).__name__ for estimator, _ in cases)
    assert found == {kind.__name__: CHECKS[kind.__name__] for kind in CHECKED}
    assert {kind.name for kind in ADAPTED} == CALIBRATIONS.keys()
