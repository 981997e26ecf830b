"""Scores of many scorers in shards: a file for each scorer and shard, so that a run that was stopped goes on."""

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import SEEDS, tell
from setscore import fitting, scorers
from setscore.backbones import Backbone, load_backbone
from setscore.backbones.specs import MINI
from setscore.classifier import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.errors import SetScoreError
from setscore.experiments.comparison import Timed, check_depth, score_timed
from setscore.experiments.evaluation import Trial, changed, prepare, trials
from setscore.experiments.scored import Scored
from setscore.fitting import Fitted
from setscore.prompts import Template
from setscore.records import LabelSet
from setscore.storage import write_bytes
from setscore.store import MemoryStore

KIND = "auto"  # the calibration


@dataclass(frozen=True)
class Places:
    """Where documents come from and scores go to; `weights` of the recipe take the place of the int8 graph."""

    save: Path
    data_dir: Path | None
    weights: Path | None
    limit: int


@dataclass(frozen=True)
class Task:
    """Every `shards`-th document from number `shard` on, scored by `scorer`."""

    dataset: str
    scorer: str
    shard: int
    shards: int

    @property
    def file(self) -> str:
        name = self.scorer.translate(str.maketrans("?&=", "--_"))
        return f"{self.dataset}.{name}.{self.shard:03d}.json"


def score_all(datasets: Sequence[str], scorers: Sequence[str], shards: int, places: Places, *, jobs: int) -> None:
    """Seeds first: the others learn from their scores. What is there is not scored again."""
    places.save.mkdir(parents=True, exist_ok=True)
    seeds = list(dict.fromkeys(seed for name in scorers if (seed := check_depth(name))))
    stages = [seeds, [name for name in scorers if name not in seeds]]
    with workers(jobs) as each:
        for stage in stages:
            tasks = [
                Task(dataset, scorer, shard, shards)
                for scorer in stage
                for dataset in datasets
                for shard in range(shards)
            ]
            missing = [task for task in tasks if not (places.save / task.file).exists()]
            for number, task in enumerate(each(partial(run, places=places), missing), start=1):
                tell(f"{number} of {len(missing)}: {task.file}")


@contextmanager
def workers(jobs: int) -> Iterator[Any]:
    """How to do something for each of many: in as many processes, with a single job in this one."""
    if jobs == 1:
        yield map
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield pool.imap_unordered


def run(task: Task, places: Places) -> Task:
    """Scores a shard and writes its file."""
    pool = prepare(task.dataset, "development", SEEDS, data_dir=places.data_dir, limit=places.limit).parts["pool"]
    rows = list(range(task.shard, len(pool), task.shards))
    part = pool.take(rows)
    backbone = load_backbone("setscore-mini", threads=1) if places.weights is None else full_precision(places.weights)
    plain = SetScoreClassifier(pool.labels, backbone=backbone, long_documents="truncate")
    content = {
        "rows": rows,
        "documents": len(pool),
        "per_label_seconds": score_timed(plain, part).seconds,
        "labels": pool.labels.names,
        "gold": part.gold.astype(int).tolist(),
        "seeds": {name: _plain(timed) for name, timed in _scored(task, plain, part, places.save).items()},
    }
    write_bytes(places.save / task.file, json.dumps(content).encode())
    return task


def _scored(task: Task, plain: SetScoreClassifier, part: Dataset, save: Path) -> dict[str, Timed]:
    """By seed, or as "all" where the seed does not matter."""
    seed = check_depth(task.scorer)
    if seed is None:
        return {"all": score_timed(changed(plain, scorer=task.scorer), part)}
    starts = trials({"pool": joined(task.dataset, seed, save)["all"].scored}, SEEDS)
    # Seeds ask much the same. A store in memory, for this shard alone: a saved answer would count as no time.
    model = changed(plain, scorer=task.scorer, store=MemoryStore())
    return {str(start.seed): score_timed(learned(model, start), part) for start in starts}


def learned(model: SetScoreClassifier, start: Trial) -> SetScoreClassifier:
    """The classifier with what its scorer learns from another one's scores of the validation documents.

    `fit` would score all of these with the slow scorer too, in every shard.
    """
    reading = scorers.Reading(model.long_documents, model.pool, model.overlap)
    scorer = scorers.make(model.scorer, Template.of(model.template), reading)
    found = fitting.learn(scorer, start.validation.log_odds, start.validation.gold, KIND)
    other = changed(model)
    other.fitted_ = Fitted(LabelSet.of(model.labels), model.current_calibration(), learned=found)
    return other


def recipe() -> Any:
    """The backbone of the recipe's float weights; an error where the package is not there."""
    try:
        from recipes.floats import FloatBackbone
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "recipes":
            raise
        raise SetScoreError(
            f"--weights needs the package recipes of the repository, and there is no {error.name}. Run this from a"
            " checkout with recipes/floats.py, or leave --weights out."
        ) from error
    return FloatBackbone


@cache
def full_precision(weights: Path) -> Backbone:
    """The model of the recipe, with fp32 weights."""
    backbone = recipe()
    import torch

    torch.set_num_threads(1)
    made: Backbone = backbone(weights, spec=MINI)
    return made


def _plain(timed: Timed) -> dict[str, Any]:
    details = {name: values.tolist() for name, values in timed.details.items()}
    log_odds = timed.scored.log_odds.round(9).tolist()
    return {"log_odds": log_odds, "forwards": timed.forwards, "seconds": timed.seconds, "details": details}


def joined(dataset: str, scorer: str, save: Path, rows: Sequence[int] | None = None) -> dict[str, Timed]:
    """A scorer's shards as one, by seed, or as "all" where the seed does not matter; of some documents only."""
    parts = files_of(dataset, scorer, save)
    places = {row: place for place, row in enumerate(row for part in parts for row in part["rows"])}
    wanted = range(parts[0]["documents"]) if rows is None else rows
    if missing := [row for row in wanted if row not in places]:
        raise SystemExit(f"{dataset} {scorer}: {len(missing)} of {len(wanted)} documents are not scored.")
    order = [places[row] for row in wanted]

    def column(several: Sequence[Any]) -> np.ndarray:
        return np.concatenate([np.array(one) for one in several])[order]

    gold, ids = column([part["gold"] for part in parts]).astype(bool), tuple(map(str, wanted))
    made = {}
    for name, first in parts[0]["seeds"].items():
        found = [part["seeds"][name] for part in parts]
        log_odds, none = column([one["log_odds"] for one in found]), np.zeros(len(order), dtype=bool)
        scored = Scored(dataset, "pool", tuple(parts[0]["labels"]), ids, log_odds, gold, none)
        details = {key: column([one["details"][key] for one in found]) for key in first["details"]}
        forwards, seconds = (sum(one[key] for one in found) for key in ("forwards", "seconds"))
        made[name] = Timed(scored, forwards, seconds, details)
    return made


def files_of(dataset: str, scorer: str, save: Path) -> list[dict[str, Any]]:
    pattern = Task(dataset, scorer, 0, 0).file.replace(".000.json", ".*.json")
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(save.glob(pattern))]


def rows_of(dataset: str, scorer: str, save: Path) -> set[int]:
    return {row for part in files_of(dataset, scorer, save) for row in part["rows"]}
