"""The folder of a run: everything that it was made from, and everything that came of it.

    config.json          the resolved config, and a digest of it
    environment.json     versions, machine, commit
    metrics.json         for every seed what was chosen and measured; cost; identity of the model; remarks
    scores.npz           log-odds and gold labels of validation and test documents
    predictions.npz      gold labels, decisions, probabilities and scores of the test documents, as the paper saves them
    predictions.parquet  the same for people: one row a document and seed, with its text

A folder appears whole or not at all, and metrics.json is read as the sign that it is there. Two processes that make the
same run make the same folder; the second finds it there.
"""

import importlib
import io
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setscore.errors import DataFileError, SetScoreError
from setscore.experiments.evaluation import Experiment, Spread
from setscore.experiments.runs.config import RunConfig
from setscore.experiments.runs.environment import environment
from setscore.experiments.runs.execution import (
    Executed,
    SeedRun,
    execute,
    fingerprints,
    load_experiment,
    quick_identity,
)
from setscore.experiments.scored import Scored
from setscore.records import BoolArray, FloatArray, Progress
from setscore.storage import read_json, reading_json, write_bytes, write_json

FORMAT, FORMAT_CONFIG, FORMAT_ENVIRONMENT = "setscore.run/1", "setscore.run-config/1", "setscore.environment/1"
STORE = "store"  # beside the folders of runs


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a folder holds of one seed. Arrays are [n, m]; `labels` are rows of a table, one for each label."""

    seed: int
    regime: str
    choice: str
    template: str
    sweep: Mapping[str, float]
    validation: Scored
    test: Scored
    decisions: BoolArray
    probabilities: FloatArray | None
    metrics: Mapping[str, float]
    intervals: Mapping[str, Mapping[str, float]]
    labels: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run, as its folder has it."""

    folder: Path
    config: RunConfig
    seeds: tuple[Drawn, ...]
    cost: Mapping[str, float]
    identity: str
    remarks: tuple[str, ...]
    environment: Mapping[str, Any]

    @property
    def first(self) -> Drawn:
        return self.seeds[0]

    def seed(self, number: int) -> Drawn:
        for one in self.seeds:
            if one.seed == number:
                return one
        raise SetScoreError(f"{self.folder} has the seeds {[one.seed for one in self.seeds]}, not {number}.")

    def spread(self) -> Spread:
        """Means and deviations over seeds."""
        return Spread.of([one.metrics for one in self.seeds])


def milliseconds(run: Run) -> float | None:
    """For a document, from what was asked in this run; None where everything was known."""
    cost, first = run.cost, run.first
    if not cost["asked"]:
        return None
    one = 1000 * cost["seconds"] / cost["asked"]
    if run.config.method.baseline is not None:
        return one
    documents = sum(len(seed.test) + len(seed.validation) for seed in run.seeds)
    labels = float(np.isfinite(first.test.log_odds).sum(axis=1).mean())
    # With shared attention one pass answers all questions about a document; they are what was counted.
    questions = cost["forwards"] / documents
    return one * (max(questions, labels) if run.config.method.scorer == "per_label" else questions)


def make_run(
    config: RunConfig, folder: Path, *, store: Path | None = None, progress: Progress | None = None
) -> tuple[Run, bool]:
    """The run in a folder, and whether it was made now; one that is finished is only read.

    Answers are kept in `store`, or else beside the folder: a run that was interrupted goes on where it stopped.
    """
    ready = config.resolved()
    experiment = load_experiment(ready)
    about = {"key": config.key(), "documents": fingerprints(experiment)}
    identity = quick_identity(ready)
    if (folder / "metrics.json").is_file():
        _check_same(folder, about)
        found = read_run(folder)
        if identity in (None, found.identity):
            return found, False
        shutil.rmtree(folder)  # the same name now stands for another model
    elif folder.is_dir() and any(folder.iterdir()):
        raise SetScoreError(f"{folder} holds something that is no run. Choose another folder with --out.")
    place = store or folder.parent / STORE
    place.parent.mkdir(parents=True, exist_ok=True)
    write_run(folder, execute(config, place, experiment=experiment, progress=progress), about, experiment)
    return read_run(folder), True


def _check_same(folder: Path, about: Mapping[str, Any]) -> None:
    known = read_json(folder / "config.json", FORMAT_CONFIG)
    for what, name in (("key", "another config"), ("documents", "other documents")):
        if known.get(what) != about[what]:
            raise SetScoreError(
                f"{folder} holds a finished run with {name}. Choose another folder with --out, or remove it."
            )


def write_run(folder: Path, made: Executed, about: Mapping[str, Any], experiment: Experiment) -> None:
    """Writes everything beside the target and renames it."""
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(8)}.tmp"
    try:
        temporary.mkdir(parents=True)
        config = made.config.model_dump(mode="json")
        write_json(temporary / "config.json", FORMAT_CONFIG, {**about, "config": config})
        write_json(temporary / "environment.json", FORMAT_ENVIRONMENT, environment())
        write_bytes(temporary / "scores.npz", _scores(made))
        write_bytes(temporary / "predictions.npz", _predictions(made))
        _write_parquet(temporary / "predictions.parquet", made)
        write_json(temporary / "metrics.json", FORMAT, _metrics(made, experiment))
        try:
            os.replace(temporary, folder)
        except OSError:
            if not (folder / "metrics.json").is_file():
                raise
    except OSError as error:
        raise DataFileError(f"{folder} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary)


def _metrics(made: Executed, experiment: Experiment) -> dict[str, Any]:
    spread = Spread.of([one.outcome.metrics for one in made.seeds])
    several = len(made.seeds) > 1
    return {
        "protocol": made.config.protocol,
        "title": made.config.title,
        "dataset": experiment.name,
        "slices": experiment.slices,
        "label_text": made.config.dataset.label_text,
        "identity": made.identity,
        "mean": dict(spread.mean),
        "sd": dict(spread.sd) if several else None,
        "seeds": {str(one.seed): _seed(one) for one in made.seeds},
        "cost": made.cost.plain(),
        "remarks": list(made.remarks),
    }


def _seed(one: SeedRun) -> dict[str, Any]:
    outcome = one.outcome
    return {
        "regime": outcome.name,
        "choice": outcome.choice,
        "template": one.template,
        "sweep": dict(one.sweep),
        "validation": len(one.validation),
        "test": len(one.test),
        "truncated": int(one.test.truncated.sum()),
        "metrics": dict(outcome.metrics),
        "intervals": {key: asdict(interval) for key, interval in outcome.intervals.items()},
        "labels": [dict(label) for label in outcome.labels],
    }


def _scores(made: Executed) -> bytes:
    arrays: dict[str, Any] = {"labels": np.array(made.seeds[0].test.labels)}
    for one in made.seeds:
        for part in ("validation", "test"):
            scored: Scored = getattr(one, part)
            arrays |= {
                f"{part}_{one.seed}_log_odds": scored.log_odds,
                f"{part}_{one.seed}_gold": scored.gold,
                f"{part}_{one.seed}_truncated": scored.truncated,
                f"{part}_{one.seed}_ids": np.array(scored.ids, dtype=np.str_),
            }
    return _packed(arrays)


def _predictions(made: Executed) -> bytes:
    """Arrays of the first seed by their plain names, those of the others with the seed behind."""
    arrays: dict[str, Any] = {"labels": np.array(made.seeds[0].test.labels)}
    for number, one in enumerate(made.seeds):
        end = "" if number == 0 else f"_{one.seed}"
        arrays |= {
            f"ids{end}": np.array(one.test.ids, dtype=np.str_),
            f"y_true{end}": one.test.gold,
            f"y_pred{end}": one.outcome.decisions,
            f"scores{end}": one.test.log_odds,
        }
        if one.probabilities is not None:
            arrays[f"y_prob{end}"] = one.probabilities
        arrays |= {f"metric_{name}{end}": np.array(value) for name, value in one.outcome.metrics.items()}
    return _packed(arrays)


def _packed(arrays: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _write_parquet(path: Path, made: Executed) -> None:
    pyarrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    rows = []
    for one in made.seeds:
        names, decisions = np.array(one.test.labels), one.outcome.decisions
        assert decisions is not None  # every outcome of a run has them
        for row, text in enumerate(one.texts):
            asked = np.isfinite(one.test.log_odds[row])
            rows.append(
                {
                    "seed": one.seed,
                    "id": one.test.ids[row],
                    "text": text,
                    "gold": names[one.test.gold[row]].tolist(),
                    "predicted": names[decisions[row]].tolist(),
                    "asked": names[asked].tolist(),
                    "log_odds": one.test.log_odds[row][asked].tolist(),
                    "probabilities": None if one.probabilities is None else one.probabilities[row][asked].tolist(),
                    "truncated": bool(one.test.truncated[row]),
                }
            )
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def read_run(folder: Path) -> Run:
    """A finished run. What is missing or damaged in a folder is an error that names the file."""
    config = read_json(folder / "config.json", FORMAT_CONFIG)
    with reading_json(folder / "metrics.json", FORMAT) as found:
        seeds = {int(seed): content for seed, content in found["seeds"].items()}
        read = [_drawn(folder, found, seed, content) for seed, content in seeds.items()]
        return Run(
            folder,
            RunConfig.model_validate(config["config"]),
            tuple(read),
            found["cost"],
            found["identity"],
            tuple(found["remarks"]),
            read_json(folder / "environment.json", FORMAT_ENVIRONMENT),
        )


def _drawn(folder: Path, found: Mapping[str, Any], seed: int, content: Mapping[str, Any]) -> Drawn:
    with np.load(folder / "scores.npz", allow_pickle=False) as arrays:
        labels = tuple(map(str, arrays["labels"]))
        parts = {
            part: Scored(
                found["dataset"],
                part,
                labels,
                tuple(map(str, arrays[f"{part}_{seed}_ids"])),
                arrays[f"{part}_{seed}_log_odds"],
                arrays[f"{part}_{seed}_gold"],
                arrays[f"{part}_{seed}_truncated"],
            )
            for part in ("validation", "test")
        }
    end = "" if next(iter(found["seeds"])) == str(seed) else f"_{seed}"
    with np.load(folder / "predictions.npz", allow_pickle=False) as arrays:
        decisions = arrays[f"y_pred{end}"]
        probabilities = arrays.get(f"y_prob{end}")
    return Drawn(
        seed,
        content["regime"],
        content["choice"],
        content["template"],
        content["sweep"],
        parts["validation"],
        parts["test"],
        decisions,
        probabilities,
        content["metrics"],
        content["intervals"],
        tuple(content["labels"]),
    )
