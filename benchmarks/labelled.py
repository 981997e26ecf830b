"""Documents of the development sets as numbers: what several studies of labelled documents work on.

Each set is asked once for each model and kept in a file of its own in a folder; nothing is asked again.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common import tell
from setscore import SetScoreClassifier
from setscore.encoders import ENCODER, embed_documents, load_encoder, unit
from setscore.errors import MissingExtraError
from setscore.experiments.evaluation import prepare
from setscore.records import BoolArray, FloatArray, IntArray

CHOICE, SEED = 200, 13  # validation documents by which everything was chosen; they are never measured on
HELD, LEAST_POOL = 400, 300
MOST = 1400  # documents of a set that are asked


@dataclass(frozen=True, eq=False)
class Labelled:
    """A set: texts, log-odds and gold [n, m], vectors [n, d] of the model and [n, e] of all-MiniLM, label vectors.

    choice  rows of the validation documents of seed 13; pool: rows to draw labelled documents from, those included;
    held    rows to measure on, which no choice has seen
    """

    name: str
    classifier: SetScoreClassifier
    texts: tuple[str, ...]
    log_odds: FloatArray
    gold: BoolArray
    vectors: FloatArray
    labels: FloatArray
    minilm: FloatArray | None

    @property
    def _order(self) -> IntArray:
        return np.random.default_rng(SEED).permutation(len(self.gold))

    @property
    def choice(self) -> IntArray:
        return self._order[:CHOICE]

    @property
    def held(self) -> IntArray:
        return self._order[CHOICE : CHOICE + min(HELD, len(self.gold) - LEAST_POOL)]

    @property
    def pool(self) -> IntArray:
        return np.concatenate([self.choice, self._order[CHOICE + len(self.held) :]])


def labelled(name: str, data_dir: Path, folder: Path, backbone: str) -> Labelled:
    """A set from the folder; what is not there yet is asked first, which takes minutes, of EURLEX half an hour."""
    limit = MOST if name in ("goemotions", "reuters") else None
    dataset = prepare(name, "development", [SEED], data_dir=data_dir, limit=limit).parts["pool"]
    classifier = SetScoreClassifier(dataset.labels, backbone=backbone)
    path = folder / f"{name}-{classifier.identity[:12]}.npz"
    if not path.exists():
        tell(f"{name}: asking {len(dataset)} documents")
        folder.mkdir(parents=True, exist_ok=True)
        scores = classifier.classify(dataset.texts, embed=True).scores
        labels = embed_documents(classifier._backbone(), dataset.labels.texts)
        np.savez(path, log_odds=scores.log_odds, vectors=scores.vectors, labels=labels)
    with np.load(path) as kept:
        found = {key: np.asarray(kept[key], dtype=np.float64) for key in ("log_odds", "vectors", "labels")}
    return Labelled(
        name, classifier, dataset.texts, gold=dataset.gold, minilm=_minilm(name, dataset.texts, folder), **found
    )


def _minilm(name: str, texts: tuple[str, ...], folder: Path) -> FloatArray | None:
    """Vectors of the encoder that a linear head usually stands on; None where it is not installed."""
    path = folder / f"{name}-{ENCODER}.npy"
    if not path.exists():
        try:
            np.save(path, unit(load_encoder(ENCODER, "the linear head")(list(texts))))
        except MissingExtraError:
            return None
    return np.asarray(np.load(path), dtype=np.float64)
