"""What scikit-learn must know about a classifier of texts: strings in, many labels out, no training needed."""

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier whose inputs are texts and whose outputs are sets of labels."""

    def __sklearn_is_fitted__(self) -> bool:
        return True  # training-free: every method works before `fit`

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.requires_fit = True, False, False
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
        return tags
