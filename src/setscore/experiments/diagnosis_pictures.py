"""Pictures of a diagnosis. Labels go down the page, a line each, so that their names stay legible at a hundred."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setscore.errors import DataFileError
from setscore.experiments.diagnosis import LabelRates, SlotBias
from setscore.experiments.pictures import check_plots
from setscore.records import FloatArray

LINE = 0.19  # inches for one label
TALL = 40  # labels, from which on the scale at the bottom is out of sight


def draw_slot_bias(path: str | Path, found: SlotBias, names: Sequence[str], title: str) -> None:
    """Mean log-odds and share of positives by slot: a dot for the given order, a ring for each turned one."""
    figure, axes = _page(len(names), title, columns=2)
    parts = {"mean log-odds": found.mean, "documents where it is positive, %": 100 * found.rate}
    for axis, (what, values) in zip(axes, parts.items(), strict=True):
        places = np.arange(len(names))
        for number, row in enumerate(values):
            given = number == 0
            style = {"s": 26, "color": "C0"} if given else {"s": 22, "facecolors": "none", "edgecolors": "0.55"}
            label = "given order" if given else "labels turned" if number == 1 else None
            axis.scatter(row, places, label=label, zorder=3 - (number > 0), **style)
        axis.plot(values.mean(axis=0), places, color="C3", linewidth=1.2, label="mean over orders", zorder=1)
        axis.set_xlabel(what)
        _grid(axis, len(names))
    axes[0].axvline(0, color="0.6", linewidth=0.8)
    axes[1].set_xlim(-3, 103)
    _names(axes[0], [f"{place + 1}: {name}" for place, name in enumerate(names)])
    axes[0].set_ylabel("slot: the label there in the given order")
    _save(figure, axes[1], path)


def draw_label_rates(path: str | Path, found: Mapping[str, LabelRates], names: Sequence[str], title: str) -> None:
    """How often each label is predicted, by each way of deciding, beside how often it is gold where that is known."""
    figure, (axis,) = _page(len(names), title)
    places = np.arange(len(names))
    gold = next(iter(found.values())).gold
    if gold is not None:
        axis.barh(places, 100 * gold, color="0.8", height=0.8, label="gold")
    for number, (name, rates) in enumerate(found.items()):
        label = name if rates.deviation is None else f"{name}, mean |difference| {100 * rates.deviation:.1f}%"
        face = "none" if number == 0 else f"C{number}"  # a ring, so that two marks at one place are both seen
        style = {"markersize": 7 if number == 0 else 3.5, "markerfacecolor": face, "label": label}
        axis.plot(100 * rates.predicted, places, "o", color=f"C{number}", **style)
    axis.set_xlabel("documents with the label, %")
    axis.set_xlim(left=-2)
    _grid(axis, len(names))
    _names(axis, names)
    _save(figure, axis, path)


def draw_label_bias(path: str | Path, bias: FloatArray, names: Sequence[str], title: str) -> None:
    """Log-odds of each label for an empty document."""
    figure, (axis,) = _page(len(names), title)
    axis.barh(np.arange(len(names)), bias, color="C0", height=0.7)
    axis.axvline(0, color="0.4", linewidth=0.8)
    axis.set_xlabel("log-odds for an empty document (above 0 is yes)")
    axis.margins(x=0.05)
    axis.use_sticky_edges = False
    _grid(axis, len(names))
    _names(axis, names)
    _save(figure, None, path)


def _page(labels: int, title: str, columns: int = 1) -> tuple[Any, Any]:
    figure = check_plots()(figsize=(4.5 + 3 * columns, 1.8 + LINE * max(labels, 6)), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12)
    axes = figure.subplots(1, columns, sharey=True, squeeze=False)[0]
    figure.suptitle(title)
    return figure, axes


def _grid(axis: Any, labels: int) -> None:
    """Lines to follow from a name to its mark, and in a tall picture the scale at the top as well."""
    axis.grid(axis="x", color="0.9")
    axis.set_axisbelow(True)
    for place in range(4, labels - 1, 5):
        axis.axhline(place + 0.5, color="0.92", linewidth=0.8, zorder=0)
    if labels > TALL:
        axis.tick_params(axis="x", top=True, labeltop=True)
        axis.secondary_xaxis("top").set_xlabel(axis.get_xlabel())


def _names(axis: Any, names: Sequence[str]) -> None:
    """The first at the top; a long name is cut in the picture, never in the table."""
    short = [name if len(name) <= 40 else f"{name[:39]}…" for name in names]
    axis.set_yticks(range(len(names)), short, fontsize=8)
    axis.set_ylim(len(names) - 0.5, -0.5)


def _save(figure: Any, legend: Any, path: str | Path) -> None:
    if legend is not None:
        handles, labels = legend.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="png", dpi=150)
    except OSError as error:
        raise DataFileError(f"{path} cannot be written: {error.strerror}.") from error
