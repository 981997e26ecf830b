"""What a report says about finished runs, as plain values: a table, labels, mistakes, and what was cut or left out."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setscore.errors import SetScoreError
from setscore.experiments.runs.folder import Drawn, Run, milliseconds, read_run

MISTAKES = 200  # documents of a run that the error browser holds, those with most wrong labels first
CHARACTERS = 2000  # of a document that it shows
COLUMNS = {
    "run": "run",
    "dataset": "dataset",
    "protocol": "protocol",
    "label_text": "labels by",
    "regime": "regime",
    "seeds": "seeds",
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "exact_match": "exact match",
    "ece": "ECE",
    "brier": "Brier",
    "documents": "documents",
    "truncated": "read in part",
    "milliseconds": "ms a document",
    "forwards": "passes a document",
    "memory": "peak MB",
}
PERCENT = ("micro_f1", "macro_f1", "exact_match")


@dataclass(frozen=True)
class Section:
    """One run in a report: its row, its labels, its mistakes, and what is to be said."""

    run: Run
    row: Mapping[str, Any]
    labels: Sequence[Mapping[str, Any]]
    mistakes: Sequence[Mapping[str, Any]]
    remarks: Sequence[str]
    facts: Mapping[str, str]

    @property
    def name(self) -> str:
        return str(self.row["run"])


def sections(folders: Sequence[Path]) -> list[Section]:
    """Runs by their folders; a folder of several runs stands for all of them."""
    found = [run for folder in folders for run in _runs(folder)]
    names = _distinct([run.config.title or run.folder.name for run in found], [run.folder.name for run in found])
    return [_section(run, name) for run, name in zip(found, names, strict=True)]


def _runs(folder: Path) -> list[Run]:
    if (folder / "metrics.json").is_file():
        return [read_run(folder)]
    inside = sorted(path.parent for path in folder.glob("*/metrics.json"))
    if not inside:
        raise SetScoreError(f"{folder} holds no finished run. `setscore run CONFIG --out {folder}` makes one.")
    return [read_run(one) for one in inside]


def _distinct(titles: Sequence[str], folders: Sequence[str]) -> list[str]:
    return [
        title if titles.count(title) == 1 else f"{title} ({folder})"
        for title, folder in zip(titles, folders, strict=True)
    ]


def _section(run: Run, name: str) -> Section:
    first = run.first
    facts = {
        "model": run.config.method.baseline or run.config.method.backbone,
        "identity": run.identity[:16],
        "scorer": run.config.method.scorer,
        "question": first.template,
        "calibration": first.choice,
        "shortlist": run.config.method.shortlist or "none",
        "machine": str(run.environment.get("gpu") or run.environment.get("processor") or ""),
        "version": str(run.environment.get("setscore")),
        "folder": run.folder.name,
    }
    shown = {key: value for key, value in facts.items() if value}
    return Section(run, _row(run, name), first.labels, mistakes(run), run.remarks, shown)


def _row(run: Run, name: str) -> dict[str, Any]:
    spread, first = run.spread(), run.first
    metrics = {key: spread.mean[key] for key in (*PERCENT, "ece", "brier") if key in spread.mean}
    sd = {f"{key}_sd": value for key, value in spread.sd.items() if key in PERCENT and value >= 0}
    documents = sum(len(one.test) + len(one.validation) for one in run.seeds)
    return {
        "run": name,
        "dataset": first.test.name,
        "protocol": run.config.protocol,
        "label_text": run.config.dataset.label_text,
        "regime": first.regime,
        "seeds": len(run.seeds),
        "documents": len(first.test),
        "truncated": int(first.test.truncated.sum()),
        "milliseconds": milliseconds(run),
        "forwards": run.cost["forwards"] / documents if run.cost["forwards"] else None,
        "memory": run.cost["memory"] / 1e6,
        **metrics,
        **sd,
    }


def mistakes(run: Run) -> list[dict[str, Any]]:
    """Documents of the first seed that were decided wrongly, most wrong labels first."""
    first, texts = run.first, _texts(run)
    names = np.array(first.test.labels)
    wrong = first.decisions != first.test.gold
    rows = [row for row in np.argsort(-wrong.sum(axis=1), kind="stable") if wrong[row].any()][:MISTAKES]
    return [_mistake(first, names, int(row), texts.get(first.test.ids[row], "")) for row in rows]


def _mistake(first: Drawn, names: Any, row: int, text: str) -> dict[str, Any]:
    gold, decided = first.test.gold[row], first.decisions[row]
    shares = first.probabilities
    touched = np.flatnonzero(gold | decided)
    return {
        "id": first.test.ids[row],
        "text": text[:CHARACTERS] + ("…" if len(text) > CHARACTERS else ""),
        "right": names[gold & decided].tolist(),
        "missed": names[gold & ~decided].tolist(),
        "wrong": names[~gold & decided].tolist(),
        "probabilities": {} if shares is None else {str(names[i]): round(float(shares[row, i]), 3) for i in touched},
        "truncated": bool(first.test.truncated[row]),
    }


def _texts(run: Run) -> dict[str, str]:
    parquet = importlib.import_module("pyarrow.parquet")
    table = parquet.read_table(run.folder / "predictions.parquet", columns=["seed", "id", "text"])
    rows = zip(*(table.column(name).to_pylist() for name in ("seed", "id", "text")), strict=True)
    return {name: text for seed, name, text in rows if seed == run.first.seed}


def shown(row: Mapping[str, Any], column: str) -> str:
    """A cell as the tables print it."""
    value = row.get(column)
    if value is None:
        return ""
    if column in PERCENT:
        sd = row.get(f"{column}_sd")
        return f"{100 * value:.1f}" + ("" if sd is None else f" ± {100 * sd:.1f}")
    if column in ("ece", "brier"):
        return f"{value:.3f}"
    if column in ("milliseconds", "forwards"):
        return f"{value:.1f}"
    return f"{value:.0f}" if isinstance(value, float) else str(value)
