"""The value at the end of the way: what was found for each document, whoever asked for it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from scipy.special import expit

from setscore.errors import DocumentError, MissingExtraError, ScoreError, SetScoreError
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet, Scores

# Regimes: nothing fitted; thresholds fitted; a read-out on top of the scores.
ZERO_SHOT, CALIBRATED, LEARNED = "zero-shot", "calibrated", "learned"
Ask = Callable[..., Scores]  # ask(texts, labels, *, candidates, progress): how texts and labels become scores
SHOWN = 20  # rows that `print` shows


@dataclass(frozen=True)
class Prediction:
    """What was found for one document.

    labels         names that apply, the most probable first
    probabilities  of every label that was asked, in the order of the inventory
    log_odds       of the same labels: the answers themselves, log p(yes) - log p(no)
    truncated      whether only the beginning was read
    undecided      labels too near to their threshold, where the calibration has a margin for that; else None
    error          why this document could not be scored; then there is nothing else
    regime         "zero-shot" (nothing fitted), "calibrated" (thresholds fitted) or "learned" (a read-out too)
    """

    id: str
    labels: tuple[str, ...] = ()
    probabilities: Mapping[str, float] = field(default_factory=dict)
    log_odds: Mapping[str, float] = field(default_factory=dict)
    truncated: bool = False
    undecided: tuple[str, ...] | None = None
    error: str | None = None
    regime: str = ZERO_SHOT

    @property
    def asked(self) -> tuple[str, ...]:
        """The labels that were asked about this document."""
        return tuple(self.probabilities)

    @property
    def raw(self) -> dict[str, float]:
        """What the model alone answers to each question, whatever the other labels are: sigmoid(log-odds)."""
        return {name: float(expit(value)) for name, value in self.log_odds.items()}

    def top(self, most: int | None) -> "Prediction":
        """The same with the `most` likeliest labels alone; None keeps all."""
        if most is None or len(self.probabilities) <= most:
            return self
        kept = set(sorted(self.probabilities, key=lambda name: -self.probabilities[name])[:most])
        return replace(
            self,
            labels=tuple(name for name in self.labels if name in kept),
            probabilities={name: value for name, value in self.probabilities.items() if name in kept},
            log_odds={name: value for name, value in self.log_odds.items() if name in kept},
            undecided=None if self.undecided is None else tuple(name for name in self.undecided if name in kept),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        if self.error is not None:
            return {"id": self.id, "error": self.error, "regime": self.regime}
        found = {
            "id": self.id,
            "labels": list(self.labels),
            "probabilities": dict(self.probabilities),
            "log_odds": dict(self.log_odds),
            "truncated": self.truncated,
            "regime": self.regime,
        }
        return found if self.undecided is None else found | {"undecided": list(self.undecided)}


@dataclass(frozen=True, eq=False)
class Predictions(Sequence[Prediction]):
    """The predictions of n documents over m labels: a sequence of `Prediction`, and the matrices behind it.

    label_names    [m]
    ids            [n]
    probabilities  [n, m]; 0 where a label was not asked
    decisions      [n, m]
    scores         log-odds, what was asked, what was truncated, and what it cost
    undecided      [n, m], or None where the calibration always decides
    errors         why a document could not be scored, by row; its other values are as if nothing had been asked
    wanted         [n, m], which labels were to be asked; None for all. A shortlist leaves some of them out
    regime         as in `Prediction`
    competition    how much labels compete before `fit`: 0 asks each for itself
    """

    label_names: tuple[str, ...]
    ids: tuple[str, ...]
    probabilities: FloatArray
    decisions: BoolArray
    scores: Scores
    wanted: BoolArray | None
    undecided: BoolArray | None
    errors: Mapping[int, str]
    regime: str
    competition: float

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, row: int) -> Prediction: ...
    @overload
    def __getitem__(self, row: slice) -> list[Prediction]: ...
    def __getitem__(self, row: int | slice) -> Prediction | list[Prediction]:
        if isinstance(row, slice):
            return [self._at(place) for place in range(len(self))[row]]
        return self._at(range(len(self))[row])

    def __iter__(self) -> Iterator[Prediction]:
        return (self._at(row) for row in range(len(self)))

    def _at(self, row: int) -> Prediction:
        if row in self.errors:
            return Prediction(self.ids[row], error=self.errors[row], regime=self.regime)
        asked = np.flatnonzero(self.scores.scored[row])
        ranked = asked[np.argsort(-self.probabilities[row, asked], kind="stable")]
        return Prediction(
            id=self.ids[row],
            labels=self._names(ranked[self.decisions[row, ranked]]),
            probabilities=self._values(self.probabilities[row], asked),
            log_odds=self._values(self.scores.log_odds[row], asked),
            truncated=bool(self.scores.truncated[row]),
            undecided=None if self.undecided is None else self._names(ranked[self.undecided[row, ranked]]),
            regime=self.regime,
        )

    def _names(self, places: IntArray) -> tuple[str, ...]:
        return tuple(self.label_names[place] for place in places)

    def _values(self, row: FloatArray, places: IntArray) -> dict[str, float]:
        return {self.label_names[place]: float(row[place]) for place in places}

    @property
    def dropped(self) -> int:
        """Pairs of document and label that were to be asked and that a shortlist left out; they count as negative."""
        sound = [row for row in range(len(self)) if row not in self.errors]
        wanted = len(sound) * len(self.label_names) if self.wanted is None else int(self.wanted[sound].sum())
        return wanted - int(self.scores.scored[sound].sum())

    def checked(self) -> "Predictions":
        """The same; an error if a document could not be scored, or if there are none."""
        if not len(self):
            raise SetScoreError("there are no documents; pass at least one.")
        if self.errors:
            raise DocumentError(dict(self.errors), len(self))
        return self

    def to_dict(self) -> list[dict[str, Any]]:
        """A list of JSON values, one for each document."""
        return [prediction.to_dict() for prediction in self]

    def to_frame(self) -> Any:
        """A pandas data frame by id: `labels`, then a column of probabilities for each label, then the rest."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_frame", "pandas") from error
        asked = np.where(self.scores.scored, self.probabilities, np.nan)
        columns: dict[str, Any] = {"labels": [list(prediction.labels) for prediction in self]}
        columns |= {name: asked[:, place] for place, name in enumerate(self.label_names) if name not in columns}
        columns["truncated"] = self.scores.truncated
        columns["error"] = [self.errors.get(row) for row in range(len(self))]
        return pd.DataFrame(columns, index=pd.Index(self.ids, name="id"))

    def __str__(self) -> str:
        lines = [f"{prediction.id}: {_in_words(prediction)}" for prediction in self[:SHOWN]]
        more = len(self) - SHOWN
        return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])

    def __repr__(self) -> str:
        return f"<Predictions of {len(self)} documents over {len(self.label_names)} labels, {self.regime}>"


def score_each(
    ask: Ask, texts: Sequence[str], labels: LabelSet, wanted: BoolArray | None, skip: Collection[int]
) -> tuple[Scores, dict[int, str]]:
    """Scores of all texts but those to `skip`, and by row why the model has no number for an answer.

    A document for which it has none is parted from the others by halves, so that they keep theirs.
    """
    shape = (len(texts), len(labels))
    log_odds, scored = np.full(shape, -np.inf), np.zeros(shape, dtype=np.bool_)
    truncated, forwards, details = np.zeros(len(texts), dtype=np.bool_), 0, dict[str, FloatArray]()
    errors: dict[int, str] = {}
    vectors: FloatArray | None = None
    waiting = [[row for row in range(len(texts)) if row not in skip]]
    while waiting:
        rows = waiting.pop()
        if not rows:
            continue
        try:
            found = ask([texts[row] for row in rows], labels, candidates=None if wanted is None else wanted[rows])
        except ScoreError as error:
            half = len(rows) // 2
            if half == 0:
                errors[rows[0]] = f"could not be scored: {error}"
            else:
                waiting += [rows[half:], rows[:half]]
            continue
        if len(rows) == len(texts):
            return found, errors
        log_odds[rows], scored[rows], truncated[rows] = found.log_odds, found.scored, found.truncated
        forwards += found.forwards
        if found.vectors is not None:
            vectors = np.zeros((len(texts), found.vectors.shape[1])) if vectors is None else vectors
            vectors[rows] = found.vectors
        for name, values in found.details.items():
            details.setdefault(name, np.full(len(texts), np.nan))[rows] = values
    return Scores(log_odds, scored, truncated, forwards, details, vectors), errors


def _in_words(prediction: Prediction) -> str:
    if prediction.error is not None:
        return f"error: {prediction.error}"
    found = (f"{label} {prediction.probabilities[label]:.0%}" for label in prediction.labels)
    return ", ".join(found) or "no label"
