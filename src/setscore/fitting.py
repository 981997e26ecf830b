"""What is fitted on labelled documents: pure functions of scores and gold labels. Nothing is asked in here."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import setscore.calibration as calibrations
from setscore import ensemble
from setscore import readout as readouts
from setscore.calibration import AutoCalibration, Calibration, LearnedCalibration, UnfittedCalibration, fingerprint
from setscore.ensemble import Ensemble
from setscore.errors import FewDocumentsWarning, SetScoreError, unknown_name
from setscore.predictions import CALIBRATED, LEARNED, ZERO_SHOT
from setscore.readout import Readout
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet
from setscore.scorers import Learner, Scorer

MICRO, BALANCED = "micro_f1", "balanced"  # what thresholds aim at by default, without and with a read-out
HEADS = ("auto", "readout", "none")  # what may be learned on top of the scores, see `learns`
MODEL = "model"  # the member of a blend that is the model itself
FEW_DOCUMENTS = 50
FAR = 60.0  # log-odds beyond which no label lies
STEPS = 64  # halvings: the cut is exact to the last bit

Kind = str | dict[str, Any] | Calibration  # a calibration by name, as `describe` gave it, or an object to copy


@dataclass(frozen=True, eq=False)
class Known:
    """Labelled documents as numbers; no text.

    members  log-odds [n, m] by the name of who gave them: the model, and perhaps a cosine; -inf where nothing was asked
    gold     [n, m]
    vectors  [n, d] of length 1; d is 0 where nothing looks at them
    """

    members: Mapping[str, FloatArray]
    gold: BoolArray
    vectors: FloatArray

    @classmethod
    def of(cls, members: Mapping[str, FloatArray], gold: BoolArray, vectors: FloatArray | None) -> "Known":
        """Vectors may be None where nothing looks at them."""
        return cls(members, gold, np.zeros((len(gold), 0)) if vectors is None else vectors)

    def __len__(self) -> int:
        return len(self.gold)

    def take(self, rows: IntArray | BoolArray) -> "Known":
        """The documents at `rows`."""
        members = {name: values[rows] for name, values in self.members.items()}
        return Known(members, self.gold[rows], self.vectors[rows])

    @property
    def embedded(self) -> bool:
        """Whether there are vectors, without which no read-out can be learned."""
        return bool(self.vectors.shape[1])

    def and_more(self, more: "Known") -> "Known":
        """These and others of the same labels."""
        members = {name: np.vstack([values, more.members[name]]) for name, values in self.members.items()}
        return Known(members, np.vstack([self.gold, more.gold]), np.vstack([self.vectors, more.vectors]))

    def relabelled(self, places: IntArray) -> "Known":
        """For other labels by their places among these, -1 for a new one: nobody has asked it or looked for it."""
        new = places < 0
        members = {name: np.where(new, -np.inf, values[:, places]) for name, values in self.members.items()}
        return Known(members, self.gold[:, places] & ~new, self.vectors)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Everything that `fit` learned.

    labels       the inventory it was fitted for
    calibration  from log-odds to probabilities and decisions
    blend        how the model is mixed with a cosine, where it is
    learned      what a scorer learned, as JSON values
    shortlist    the shortlist with what it remembers of the documents
    readout      what was learned on top of the scores; None where nothing was
    identity     of the model whose scores these were; None where it is not known
    known        the labelled documents themselves, as numbers; None where there was no gold, or they were not saved
    """

    labels: LabelSet
    calibration: Calibration
    blend: Ensemble | None = None
    learned: Mapping[str, Any] = field(default_factory=dict)
    shortlist: Any = None
    readout: Readout | None = None
    identity: str | None = None
    known: Known | None = None

    @property
    def regime(self) -> str:
        """What probabilities rest on: see `Prediction`."""
        if self.readout is not None:
            return LEARNED
        return ZERO_SHOT if self.calibration.name == UnfittedCalibration.name else CALIBRATED

    def answer(self, log_odds: FloatArray, vectors: FloatArray | None) -> FloatArray:
        """What is calibrated: these log-odds, or what the read-out makes of them."""
        if self.readout is None or not np.isfinite(log_odds).any():  # nothing was asked: there are no vectors either
            return log_odds
        assert vectors is not None  # a read-out asks for them
        return self.readout.log_odds(log_odds, vectors)

    def known_probabilities(self) -> FloatArray | None:
        """Today's probabilities of the labelled documents themselves, where they were kept."""
        if self.known is None:
            return None
        return self.calibration.transform(self.answer(mixed(self.known.members, self.blend), self.known.vectors))

    def relabelled(self, labels: LabelSet, vectors: FloatArray | None) -> "Fitted":
        """For other labels: one that is known by its name keeps what it learned, a new one starts without any.

        vectors [m, d] are those of the labels' texts, where a read-out wants them.
        """
        if self.shortlist is not None or self.learned:
            raise SetScoreError("labels can change after fit where no shortlist and no seeded scorer remembers them.")
        old = {name: place for place, name in enumerate(self.labels.names)}
        places = np.array([old.get(name, -1) for name in labels.names], dtype=np.int64)
        return replace(
            self,
            labels=labels,
            calibration=calibrations.relabelled(self.calibration, places),
            readout=None if self.readout is None or vectors is None else self.readout.relabelled(places, vectors),
            known=None if self.known is None else self.known.relabelled(places),
        )


@dataclass(frozen=True)
class Aim:
    """What is to be fitted: which calibration, for which objective, with which blend; `ready` needs no document."""

    kind: Kind = "auto"
    objective: str | None = None
    blend: Ensemble | None = None
    ready: Calibration | None = None


def learns(head: str, kind: Kind) -> bool:
    """Whether a read-out is learned; an error for a head that there is none of.

    "auto" learns one where the calibration is left to `fit` too. Whoever names a calibration, such as "paper", wants
    the model's own scores calibrated that way: there a read-out is learned only when it is asked for, as "readout".
    """
    if head not in HEADS:
        raise SetScoreError(unknown_name("head", head, HEADS))
    if head == "auto":
        return kind == AutoCalibration.name or calibrations.make(kind).name == AutoCalibration.name
    return head == "readout"


def conclude(known: Known, labels: FloatArray | None, aim: Aim) -> tuple[Calibration, Ensemble | None, Readout | None]:
    """The calibration, the weights of a blend, and a read-out where `labels` [m, d], the vectors of their texts, come.

    The blend of `aim` is how members are mixed before anything is fitted. With a read-out the calibration is fitted on
    what it says of documents that it has not seen. Where there is nothing to learn from, such as one document,
    everything stays as `ready` has it. Without a read-out a few documents raise a warning.
    """
    if labels is None and (message := few_documents(len(known))):
        warnings.warn(message, FewDocumentsWarning, stacklevel=4)
    # Matrices are small: on a machine that others use, two threads that wait for each other take twenty times as long.
    with threadpool_limits(1, user_api="blas"):
        return _concluded(known, labels, aim)


def _concluded(
    known: Known, labels: FloatArray | None, aim: Aim
) -> tuple[Calibration, Ensemble | None, Readout | None]:
    blend = None if aim.blend is None else ensemble.fit(known.members, known.gold, in_doubt=MODEL)
    calibration, scores = calibrations.make(aim.kind), mixed(known.members, blend)
    if labels is None:
        return _aiming(calibration, aim.objective).fit(scores, known.gold), blend, None
    learned = readouts.fit(scores, known.vectors, labels, known.gold, _start(aim.ready))
    if calibration.name == AutoCalibration.name:
        if learned.readout is None and aim.ready is not None:
            return aim.ready, blend, None
        calibration = _for_readout(aim.kind, calibration, learned.doubt)
    found = _aiming(calibration, aim.objective).fit(learned.unseen, known.gold)
    found.fingerprint_ = fingerprint(scores, known.gold)  # by which a later measurement knows these documents
    return found, blend, learned.readout


def _start(ready: Calibration | None) -> FloatArray:
    """What a read-out starts from: the answer before any label, or where none is known the bare log-odds."""
    if isinstance(ready, UnfittedCalibration):
        return readouts.zero_shot(ready.temperature, ready.competition, ready.handicap)
    return readouts.OWN


def without_gold(members: Mapping[str, FloatArray], aim: Aim) -> Calibration:
    """A calibration that needs no gold labels; the others say so."""
    return calibrations.make(aim.kind).fit(mixed(members, aim.blend), None)


def _for_readout(kind: Kind, calibration: Calibration, doubt: float) -> Calibration:
    """What "auto" means after a read-out. Where nobody asked for one F1 alone, both count."""
    options = calibration.get_params(deep=False)
    if options["objective"] == MICRO and not (isinstance(kind, str) and "objective=" in kind):
        options["objective"] = BALANCED
    return LearnedCalibration(**options).starting_at(doubt)


def _aiming(calibration: Calibration, objective: str | None) -> Calibration:
    """The same calibration with another objective."""
    if objective is None:
        return calibration
    if "objective" not in calibration.get_params(deep=False):
        raise SetScoreError(f"the calibration {calibration.name} has no objective, got {objective!r}; remove it.")
    aimed: Calibration = calibration.set_params(objective=objective)
    return aimed


def mixed(members: Mapping[str, FloatArray], blend: Ensemble | None) -> FloatArray:
    """The log-odds that are calibrated: the model's own, or mixed with a cosine. What was not asked stays so."""
    model = members[MODEL]
    return model if blend is None else np.where(np.isneginf(model), -np.inf, blend.mix(members))


def learn(scorer: Scorer, seeds: FloatArray, gold: BoolArray | None, kind: Kind) -> dict[str, Any]:
    """What a scorer learns from the log-odds of the scorer it starts from, as JSON values; nothing if it learns none.

    They are calibrated with a fresh calibration, and the start's decisions are those of that, label by label: the level
    of a document has no cut.
    """
    if not isinstance(scorer, Learner):
        return {}
    if gold is None:
        raise SetScoreError("this scorer learns from gold labels; pass y to fit, or use the scorer per_label.")
    calibration = calibrations.make(kind).label_by_label().fit(seeds, gold)
    return scorer.learn(log_odds_cuts(calibration, gold.shape[1]), gold).learned


def log_odds_cuts(calibration: Calibration, labels: int) -> FloatArray:
    """The log-odds [n_labels] from which a fitted calibration predicts each label, in [-FAR, FAR].

    Probabilities never fall as log-odds grow, so the place is found by halving. A cap or a floor on the number of
    labels per document is not part of it.
    """
    low, high = np.full(labels, -FAR), np.full(labels, FAR)
    for _ in range(STEPS):
        middle = (low + high) / 2
        reached = calibration.transform(middle[None])[0] >= calibration.thresholds_
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def few_documents(n: int) -> str | None:
    """The warning for a slice of `n` labelled documents, or None if they are enough."""
    if n >= FEW_DOCUMENTS:
        return None
    return f"fitted on few documents ({n}): with fewer than {FEW_DOCUMENTS}, decisions can get worse; 200 are good."
