"""What scikit-learn must know about our estimators, without loading it: that takes two seconds, which a command that
classifies one text would spend on nothing.

Options are the parameters of `__init__`, by name. Everything of scikit-learn works on such objects (clone, pipelines,
searches): they are what it asks for, and the tests run its own checks on them.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from setscore.errors import unknown_name
from setscore.records import FloatArray, IntArray


class Estimator:
    """Options by name, and tags as scikit-learn has them: `mixins` names its classes that say what this is."""

    mixins: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _options(cls) -> dict[str, inspect.Parameter]:
        return {name: one for name, one in inspect.signature(cls.__init__).parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options by name; with `deep` those of an option that is an estimator too, as in calibration__most."""
        found = {name: getattr(self, name) for name in self._options()}
        inner = {name: value for name, value in found.items() if deep and isinstance(value, Estimator)}
        return found | {f"{name}__{key}": each for name, one in inner.items() for key, each in one.get_params().items()}

    def set_params(self, **params: Any) -> Self:
        """Sets options by name; one that there is not is an error."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(unknown_name(f"option of {type(self).__name__}", name, known))
            option, _, of_inner = name.partition("__")
            if of_inner:
                getattr(self, option).set_params(**{of_inner: value})
            else:
                setattr(self, option, value)
        return self

    def __repr__(self) -> str:
        """With the options that are not at their defaults."""
        values = [(name, getattr(self, name), one.default) for name, one in self._options().items()]
        changed = [f"{name}={value!r}" for name, value, default in values if not _same(value, default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn import base

        bases = tuple(getattr(base, name) for name in (*self.mixins, "BaseEstimator"))
        return type("Tagged", bases, {})().__sklearn_tags__()


class Transformer(Estimator, ABC):
    """A scikit-learn transformer of numbers. What this package makes is checked here, all else by scikit-learn."""

    n_features_in_: int  # columns, of `fit`

    mixins: ClassVar[tuple[str, ...]] = ("TransformerMixin",)

    @abstractmethod
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> Self:
        """Learns from numbers [n, m] with gold."""

    @abstractmethod
    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Other numbers [n, m]."""

    def fit_transform(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> FloatArray:
        """What the numbers that are fitted on become."""
        return self.fit(X, y).transform(X)

    def matrix(self, X: npt.ArrayLike, *, reset: bool) -> FloatArray:
        """Numbers [n, m], checked: in `fit`, which is `reset`, any m and a row at least, afterwards the m of `fit`."""
        if reset and isinstance(X, np.ndarray) and X.dtype == np.float64 and X.ndim == 2 and X.size:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = X.shape[1]
            return X
        from sklearn.utils.validation import validate_data

        checks = {"dtype": np.float64, "ensure_all_finite": False, "ensure_min_samples": int(reset)}
        return np.asarray(validate_data(self, X, reset=reset, **checks))


class TextClassifier(Estimator, ABC):
    """A scikit-learn classifier whose inputs are texts and whose outputs are sets of labels."""

    mixins: ClassVar[tuple[str, ...]] = ("ClassifierMixin",)

    @abstractmethod
    def predict(self, X: Iterable[Any]) -> IntArray:
        """Decisions [n_documents, n_labels], 0 or 1."""

    def score(self, X: Iterable[Any], y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of documents whose labels are all right, as scikit-learn's multi-label classifiers have it."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return True  # training-free: every method works before `fit`

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.requires_fit = True, False, False
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
        return tags


def _same(value: Any, default: Any) -> bool:
    """Whether an option is at its default; an array never is."""
    return value is default or (type(value) is type(default) and not isinstance(value, np.ndarray) and value == default)
