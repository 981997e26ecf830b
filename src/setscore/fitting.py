"""What is fitted on labelled documents: pure functions of scores and gold labels. Nothing is asked in here."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import setscore.calibration as calibrations
from setscore import ensemble
from setscore import readout as readouts
from setscore.calibration import Calibration
from setscore.ensemble import Ensemble
from setscore.errors import FewDocumentsWarning, SetScoreError
from setscore.predictions import CALIBRATED
from setscore.readout import Readout
from setscore.records import BoolArray, FloatArray, LabelSet
from setscore.scorers import Learner, Scorer

MODEL = "model"  # the member of a blend that is the model itself
FEW_DOCUMENTS = 50
FAR = 60.0  # log-odds beyond which no label lies
STEPS = 64  # halvings: the cut is exact to the last bit

Kind = str | dict[str, Any] | Calibration  # a calibration by name, as `describe` gave it, or an object to copy


@dataclass(frozen=True, eq=False)
class Fitted:
    """Everything that `fit` learned.

    labels       the inventory it was fitted for
    calibration  from log-odds to probabilities and decisions
    blend        how the model is mixed with a cosine, where it is
    learned      what a scorer learned, as JSON values
    shortlist    the shortlist with what it remembers of the documents
    readout      what was learned on top of the scores, where that is likelier than the scores alone
    identity     of the model whose scores these were; None where it is not known
    regime       what probabilities rest on: see `Prediction`
    known        the labelled documents themselves, as numbers; None where there was no gold
    """

    labels: LabelSet
    calibration: Calibration
    blend: Ensemble | None = None
    learned: Mapping[str, Any] = field(default_factory=dict)
    shortlist: Any = None
    readout: Readout | None = None
    identity: str | None = None
    regime: str = CALIBRATED
    known: "Known | None" = None


@dataclass(frozen=True, eq=False)
class Known:
    """Labelled documents as numbers: log-odds by member [n, m], gold [n, m], unit vectors [n, d]; d may be 0."""

    members: Mapping[str, FloatArray]
    gold: BoolArray
    vectors: FloatArray


Vectors = tuple[FloatArray, FloatArray]  # of documents [n, d] and of labels [m, d], all of length 1


def fit(
    members: Mapping[str, FloatArray], gold: BoolArray | None, kind: Kind = "auto", blend: Ensemble | None = None
) -> tuple[Calibration, Ensemble | None]:
    """The calibration, and the weights of a blend, for log-odds [n_documents, n_labels] by member.

    `members` holds the model's log-odds as "model" and perhaps a cosine. `blend` is how both are mixed before anything
    is fitted; without gold labels its weights stay. A few documents raise a warning.
    """
    blend = _weighed(members, gold, blend)
    log_odds = mixed(members, blend)
    return calibrations.make(kind).fit(log_odds, gold), blend


def fit_readout(  # noqa: PLR0917
    members: Mapping[str, FloatArray],
    gold: BoolArray | None,
    kind: Kind,
    blend: Ensemble | None,
    ready: Calibration,
    vectors: Vectors,
) -> tuple[Calibration, Ensemble | None, Readout | None]:
    """The same with a read-out between scores and calibration, where that is surely likelier than the scores alone.

    `ready` calibrates before anything is fitted: a read-out starts from its answers. The calibration is fitted on what
    a read-out says of documents that it has not seen.
    """
    blend = _weighed(members, gold, blend)
    log_odds, readout = mixed(members, blend), None
    if gold is not None:
        readout, unseen = readouts.fit(ready.logits(log_odds), *vectors, gold)
        log_odds = log_odds if readout is None else unseen
    return calibrations.make(kind).fit(log_odds, gold), blend, readout


def _weighed(members: Mapping[str, FloatArray], gold: BoolArray | None, blend: Ensemble | None) -> Ensemble | None:
    """The blend with weights that gold labels choose; a warning where they are few."""
    if gold is not None and (message := few_documents(len(gold))):
        warnings.warn(message, FewDocumentsWarning, stacklevel=4)
    return blend if blend is None or gold is None else ensemble.fit(members, gold, in_doubt=MODEL)


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
    return f"fitted on few documents ({n}): with fewer than {FEW_DOCUMENTS} decisions can get worse, use about 200."
