"""Log-odds of a whole dataset, kept on disk: asked once, re-used by every experiment, resumed after a kill.

A folder holds scores.json (what was asked, and of which documents) and scores-<digest>.npz (the numbers). The JSON
names the numbers' file with its SHA-256 and is written last, so whatever it names is complete.
"""

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import numpy as np

from setscore import __version__
from setscore.backbones import backbone_spec
from setscore.calibration import UnfittedCalibration
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.ensemble import blend_of
from setscore.errors import DataFileError, LabelError, SetScoreError, TruncationWarning, counted
from setscore.fitting import Fitted
from setscore.prompts import Template, Verbalizer
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet
from setscore.shortlist import shortlist_of
from setscore.storage import reading_json, write_bytes, write_json

FORMAT = "setscore.scored/1"
FILE = "scores.json"
BLOCK_QUESTIONS = 8192  # asked between two savings

Progress = Callable[[int, int, str], None]  # documents done, of how many, and what is going on
Tell = Callable[[str, int, int, str], None]  # of which part; then the same


@dataclass(frozen=True, eq=False)
class Scored:
    """The log-odds of n documents and m labels beside their gold labels.

    name, split  of the dataset; `notes` say which slice of it, and what was left out
    labels, ids  [m] names, [n] unique ids
    log_odds     [n, m]; -inf where nothing was asked
    gold         [n, m]
    truncated    [n]: whether only the beginning of a document was read
    config       how it was asked: backbone, template, attention, verbalizer, long_documents, version, fingerprint
    groups       [n] values of a user's column to measure by, or none
    """

    name: str
    split: str
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    log_odds: FloatArray
    gold: BoolArray
    truncated: BoolArray
    notes: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.ids), len(self.labels))
        if not (self.log_odds.shape == self.gold.shape == shape and self.truncated.shape == shape[:1]):
            raise SetScoreError(
                f"{counted(shape[0], 'document')} and {counted(shape[1], 'label')} have log-odds of the shape"
                f" {self.log_odds.shape}, gold of {self.gold.shape} and truncation of {self.truncated.shape}; they"
                " must agree."
            )
        if self.groups and len(self.groups) != shape[0]:
            raise SetScoreError(
                f"{counted(len(self.groups), 'group value')} came with {counted(shape[0], 'document')}."
            )
        if self.gold.dtype != np.bool_ or np.isnan(self.log_odds).any() or np.isposinf(self.log_odds).any():
            raise SetScoreError(
                "gold holds bool, and log-odds are numbers or -inf; there is something else among them."
            )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: IntArray, *notes: str) -> Self:
        """The documents at `rows`, with more notes."""
        return replace(
            self,
            ids=tuple(self.ids[row] for row in rows),
            log_odds=self.log_odds[rows],
            gold=self.gold[rows],
            truncated=self.truncated[rows],
            notes=(*self.notes, *notes),
            groups=tuple(self.groups[row] for row in rows) if self.groups else (),
        )

    def save(self, folder: str | Path) -> None:
        """Writes the folder's two files; what was there before stays whole until the new ones are."""
        _write(Path(folder), self, np.ones(len(self), dtype=np.bool_))

    @classmethod
    def load(cls, folder: str | Path) -> "Scored":
        """What `save` wrote. Scores of a run that was stopped are an error here; `score_dataset` goes on with them."""
        scored, done = _read(Path(folder))
        if not done.all():
            raise DataFileError(
                f"{folder} holds scores of {done.sum()} of {counted(len(done), 'document')}: the run was stopped. Run"
                " it again to finish them."
            )
        return scored


def score_dataset(
    dataset: Dataset,
    classifier: SetScoreClassifier | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Scored:
    """Asks `classifier` every label of every document, or takes the answers from `folder` if the same was asked before.

    Labels are the dataset's; a classifier with others is an error. With a folder, answers are saved after each block of
    documents, and a run that was stopped goes on where it stopped. `progress` is told what happens.
    """
    if not len(dataset):
        raise SetScoreError(f"{dataset.name} {dataset.split} has no documents to score.")
    model = _with_labels(classifier or SetScoreClassifier(), dataset.labels)
    tell = progress or _silent
    scored, done, message = _begin(dataset, describe(model, dataset), None if folder is None else Path(folder))
    tell(int(done.sum()), len(dataset), message)
    if done.all():
        return scored
    # Long documents first and blocks of like length: little padding, and the time left is never underestimated.
    order = sorted(np.flatnonzero(~done).tolist(), key=lambda row: len(dataset.texts[row]), reverse=True)
    size = max(1, BLOCK_QUESTIONS // len(dataset.labels))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)  # counted, and told once at the end
            answers = model.score_documents([dataset.texts[row] for row in rows])
        scored.log_odds[rows], scored.truncated[rows], done[rows] = answers.log_odds, answers.truncated, True
        if folder is not None:
            _write(Path(folder), scored, done)
        tell(int(done.sum()), len(dataset), message)
    if cut := int(scored.truncated.sum()):
        warnings.warn(TruncationWarning.of(cut, len(dataset)), stacklevel=2)
    return scored


def saved_scores(dataset: Dataset, classifier: SetScoreClassifier, folder: str | Path) -> Scored | None:
    """What `score_dataset` saved there, if the same was asked and all of it is done."""
    if not (Path(folder) / FILE).exists():
        return None
    saved, done = _read(Path(folder))
    same = saved.config == describe(_with_labels(classifier, dataset.labels), dataset)
    return replace(saved, groups=dataset.groups) if same and done.all() else None


def _silent(done: int, total: int, message: str) -> None:
    """Nobody watches."""


def describe(classifier: SetScoreClassifier, dataset: Dataset) -> dict[str, Any]:
    """Everything that the log-odds depend on, as JSON values."""
    backbone, verbalizer = classifier.backbone, Verbalizer.of(classifier.verbalizer)
    if isinstance(backbone, str):
        spec = backbone_spec(backbone)
        name, native = backbone, spec.attention[0]
    else:
        spec = backbone.spec
        name, native = spec.name, backbone.attention
    config: dict[str, Any] = {
        "backbone": name,
        "weights": embedded_weights(name) or spec.revision,
        "template": Template.of(classifier.template).text,
        "attention": native if classifier.attention == "auto" else classifier.attention,
        "verbalizer": f"{verbalizer.yes}/{verbalizer.no}",
        **_reading(classifier, spec.windows),
        "version": __version__,
        "fingerprint": dataset.fingerprint,
    }
    if classifier.scorer != "per_label":
        config["scorer"] = classifier.scorer
    if learned := learned_of(classifier):
        config["learned"] = learned
    if blend := blend_of(classifier.blend):
        config |= {"blend": blend.sentence(), "scales": [list(scale) for scale in blend.scales]}
    if shortlist := shortlist_of(classifier.shortlist):
        config["shortlist"] = {key: value for key, value in vars(shortlist).items() if key not in ("cache", "memory")}
        if memory := getattr(shortlist, "memory", None):
            config["memory"] = hashlib.sha256(json.dumps(memory.plain()).encode()).hexdigest()
    return config


def _reading(classifier: SetScoreClassifier, windows: int) -> dict[str, Any]:
    """How long documents are read, in the words that say the same whatever the defaults are."""
    mode = classifier.long_documents
    if mode == "auto" and (windows == 1 or classifier.scorer != "per_label"):
        mode = "truncate"
    if mode == "truncate":
        return {"long_documents": mode}
    most = {"windows": windows} if mode == "auto" else {}
    return {"long_documents": mode, "pool": classifier.pool, "overlap": classifier.overlap} | most


def embedded_weights(backbone: str) -> str | None:
    """SHA-256 of an embedded model's list of files: retrained weights keep their name, but not their scores."""
    manifest = Path(str(files("setscore") / "models" / backbone / "manifest.json"))
    return hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None


def _with_labels(classifier: SetScoreClassifier, labels: LabelSet) -> SetScoreClassifier:
    params = classifier.get_params(deep=False)
    if params["labels"] is not None and LabelSet.of(params["labels"]) != labels:
        raise LabelError(
            "the classifier has other labels than the dataset, or in another order. Make it without labels or with"
            " dataset.labels, or give the dataset the classifier's: dataset.with_labels(classifier.labels)."
        )
    return with_learned(SetScoreClassifier(**params | {"labels": labels}), learned_of(classifier))


def learned_of(classifier: SetScoreClassifier) -> Mapping[str, Any] | None:
    return getattr(getattr(classifier, "fitted_", None), "learned", None)


def with_learned(classifier: SetScoreClassifier, learned: Mapping[str, Any] | None) -> SetScoreClassifier:
    """The classifier itself, its scorer knowing what one like it has learnt."""
    if learned:
        labels = LabelSet.of(classifier.labels)
        calibration = UnfittedCalibration().for_labels(len(labels))
        classifier.fitted_ = Fitted(labels, calibration, learned=dict(learned))
    return classifier


def _begin(dataset: Dataset, config: dict[str, Any], folder: Path | None) -> tuple[Scored, BoolArray, str]:
    """What is known already, which documents are done, and a sentence on it."""
    message = "scoring"
    if folder is not None and (folder / FILE).exists():
        saved, done = _read(folder)
        other = [key for key in sorted(saved.config.keys() | config.keys()) if saved.config.get(key) != config.get(key)]
        if not other:
            where = f"scores in {folder}"
            message = f"re-using the {where}" if done.all() else f"going on with the {where}, {done.sum()} were done"
            return replace(saved, groups=dataset.groups), done, message  # scores do not depend on groups
        message = f"scoring again: the scores in {folder} have another {', '.join(other)}"
    n = len(dataset)
    none = np.zeros(n, dtype=np.bool_)
    empty = np.full(dataset.gold.shape, -np.inf)
    parts = (dataset.name, dataset.split, dataset.labels.names, dataset.ids, empty, dataset.gold, none.copy())
    return Scored(*parts, dataset.notes, config, dataset.groups), none, message


def _write(folder: Path, scored: Scored, done: BoolArray) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, log_odds=scored.log_odds, gold=scored.gold, truncated=scored.truncated, done=done)
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    target = folder / f"scores-{digest[:16]}.npz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(f"scores cannot be written into {folder}: {error.strerror}.") from error
    write_bytes(target, data)
    content = {key: getattr(scored, key) for key in ("name", "split", "notes", "config", "labels", "ids", "groups")}
    content |= {"documents_done": int(done.sum()), "arrays": target.name, "sha256": digest}
    write_json(folder / FILE, FORMAT, content)
    for old in folder.glob("scores-*.npz"):
        if old != target:
            old.unlink(missing_ok=True)


def _read(folder: Path) -> tuple[Scored, BoolArray]:
    with reading_json(folder / FILE, FORMAT) as saved:
        arrays = _arrays(folder / Path(saved["arrays"]).name, saved["sha256"])
        scored = Scored(
            name=saved["name"],
            split=saved["split"],
            labels=tuple(saved["labels"]),
            ids=tuple(saved["ids"]),
            log_odds=arrays["log_odds"],
            gold=arrays["gold"],
            truncated=arrays["truncated"],
            notes=tuple(saved["notes"]),
            config=dict(saved["config"]),
            groups=tuple(saved.get("groups", ())),
        )
        done = arrays["done"]
        if done.shape != (len(scored),):
            raise ValueError(f"{len(done)} marks for {len(scored)} documents")
    return scored, done


def _arrays(path: Path, digest: str) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataFileError(
            f"the file {path} cannot be read: {error.strerror}. Delete its folder to score again."
        ) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise DataFileError(
            f"{path} is damaged: its SHA-256 is not the recorded one. Delete its folder to score again."
        )
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in ("log_odds", "gold", "truncated", "done")}
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataFileError(f"{path} is damaged: {error}. Delete its folder to score again.") from error
