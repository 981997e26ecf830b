"""Pictures of one evaluation: whether probabilities can be believed, and what a threshold does. Needs matplotlib."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from setscore.errors import DataFileError, MissingExtraError
from setscore.metrics import Counts, macro_f1, micro_f1, reliability
from setscore.records import BoolArray, FloatArray

THRESHOLDS = np.linspace(0.01, 0.99, 99)


def reliability_diagram(path: str | Path, gold: BoolArray, probabilities: dict[str, FloatArray], title: str) -> None:
    """How many pairs of each predicted probability are gold; on the diagonal, probabilities mean what they say.

    `probabilities` [n_documents, n_labels] by the name of the line, such as "raw" and "auto".
    """
    figure, axes = new_figure(title, "predicted probability", "share that is gold")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for name, values in probabilities.items():
        table = reliability(gold, values)
        full = table["count"] > 0
        error = float((table["count"] * np.abs(table["confidence"] - table["accuracy"])).sum() / gold.size)
        axes.plot(table["confidence"][full], table["accuracy"][full], marker="o", label=f"{name}, ECE {error:.3f}")
    save_figure(figure, axes, path)


def threshold_curve(
    path: str | Path, gold: BoolArray, probabilities: FloatArray, thresholds: FloatArray, title: str
) -> None:
    """Micro-F1 and macro-F1 at every global threshold, and the one in use (the mean where labels have their own)."""
    figure, axes = new_figure(title, "threshold", "F1")
    counts = [Counts.of(gold, probabilities >= threshold) for threshold in THRESHOLDS]
    axes.plot(THRESHOLDS, [float(micro_f1(count)) for count in counts], label="micro-F1")
    axes.plot(THRESHOLDS, [float(macro_f1(count)) for count in counts], label="macro-F1")
    name = "in use" if np.ptp(thresholds) == 0 else "in use, mean over labels"
    axes.axvline(float(thresholds.mean()), color="0.5", linestyle="--", label=f"{name}: {thresholds.mean():.2f}")
    save_figure(figure, axes, path)


def check_plots() -> Any:
    """matplotlib's Figure, or the error that says how to get it. Without pyplot: no display and no global state."""
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise MissingExtraError("pictures", "plots") from error


def new_figure(title: str, x: str, y: str) -> tuple[Any, Any]:
    """A figure and its axes, both from 0 to 1."""
    figure = check_plots()(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1))
    return figure, axes


def save_figure(figure: Any, axes: Any, path: str | Path) -> None:
    """Writes it as PNG, with its legend."""
    axes.legend()
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="png", dpi=150)
    except OSError as error:
        raise DataFileError(f"{path} cannot be written: {error.strerror}.") from error
