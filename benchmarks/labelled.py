"""Documents of the development sets as numbers: what several studies of labelled documents work on.

Each set is asked once for each model and kept in two files of a folder, the validation documents apart from the others:
who only chooses, inside the validation documents, need not wait for the rest. Nothing is asked again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common import tell
from setscore import SetScoreClassifier
from setscore.backbones import embed_documents
from setscore.encoders import ENCODER, load_encoder, unit
from setscore.errors import MissingExtraError
from setscore.experiments.evaluation import prepare
from setscore.records import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from recipes.floats import FloatBackbone

CHOICE, SEED = 200, 13  # validation documents by which everything was chosen; they are never measured on
HELD, LEAST_POOL = 400, 300
MOST = 1400  # documents of a set that are asked

Arrays = Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Labelled:
    """A set: texts, log-odds and gold [n, m], vectors [n, d] of the model and [n, e] of all-MiniLM, label vectors.

    choice  rows of the validation documents of seed 13; pool: rows to draw labelled documents from, those included;
    held    rows to measure on, which no choice has seen; none where only the validation documents were wanted
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
    def choice(self) -> IntArray:
        return np.arange(min(CHOICE, len(self.gold)))

    @property
    def held(self) -> IntArray:
        return np.arange(CHOICE, CHOICE + max(0, min(HELD, len(self.gold) - LEAST_POOL)))

    @property
    def pool(self) -> IntArray:
        return np.concatenate([self.choice, np.arange(CHOICE + len(self.held), len(self.gold))])


def chosen(name: str, weights: Path | None) -> "str | FloatBackbone":
    """The model that is asked: a packaged one by its name, or float weights of the recipe, on a GPU if there is one."""
    if weights is None:
        return name
    from recipes.floats import FloatBackbone

    return FloatBackbone(weights)


def labelled(
    name: str, data_dir: Path, folder: Path, backbone: "str | FloatBackbone", *, within: bool = False
) -> Labelled:
    """A set from the folder; what is not there yet is asked first, which takes minutes, of EURLEX half an hour.

    Rows are in the order of the draw of seed 13, so the validation documents come first; `within` wants no others.
    """
    limit = MOST if name in ("goemotions", "reuters") else None
    dataset = prepare(name, "development", [SEED], data_dir=data_dir, limit=limit).parts["pool"]
    classifier = SetScoreClassifier(dataset.labels, backbone=backbone)
    order = np.random.default_rng(SEED).permutation(len(dataset))
    parts = {"validation": order[:CHOICE]} | ({} if within else {"others": order[CHOICE:]})
    found, minilm = [], []
    for part, rows in parts.items():
        texts = [dataset.texts[row] for row in rows]
        stem = f"{name}-{part}"
        found.append(_kept(folder / f"{stem}-{classifier.identity[:12]}.npz", lambda: _asked(classifier, texts)))  # noqa: B023
        minilm.append(_minilm(folder / f"{stem}-{ENCODER}.npz", texts))
    rows = np.concatenate(list(parts.values()))
    return Labelled(
        name,
        classifier,
        tuple(dataset.texts[row] for row in rows),
        gold=dataset.gold[rows],
        log_odds=np.vstack([one["log_odds"] for one in found]),
        vectors=np.vstack([one["vectors"] for one in found]),
        labels=found[0]["labels"],
        minilm=None if any(one is None for one in minilm) else np.vstack([one for one in minilm if one is not None]),
    )


def _kept(path: Path, make: Callable[[], Arrays]) -> dict[str, FloatArray]:
    """What is in the file, or what `make` gives, which is then kept in it."""
    if not path.exists():
        tell(f"asking: {path.stem}")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **make())
    with np.load(path) as kept:
        return {key: np.asarray(kept[key], dtype=np.float64) for key in kept.files}


def _asked(classifier: SetScoreClassifier, texts: list[str]) -> Arrays:
    scores = classifier.classify(texts, embed=True).scores
    assert scores.vectors is not None
    labels = embed_documents(classifier._backbone(), classifier.labels.texts)
    return {"log_odds": scores.log_odds, "vectors": scores.vectors, "labels": labels}


def _minilm(path: Path, texts: list[str]) -> FloatArray | None:
    """Vectors of the encoder that a linear head usually stands on; None where it is not installed."""
    try:
        return _kept(path, lambda: {"vectors": unit(load_encoder(ENCODER, "the linear head")(texts))})["vectors"]
    except MissingExtraError:
        return None
