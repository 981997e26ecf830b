"""Pictures as SVG inside the page. Ink has the page's own colour, so that they are read in light and in dark."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from setscore.errors import MissingExtraError
from setscore.experiments.reporting.content import Section
from setscore.experiments.runs.folder import Drawn
from setscore.metrics import decision_metrics, reliability

INK = "#102030"  # stands for the page's text colour until the SVG is written
FIRST, SECOND, FAINT = "#3b82c4", "#d9822b", "#8a94a0"  # readable on white and on black
LABELS = 40  # bars at most; the others are in the table


def drawn(draw: Callable[[Any], None], *, width: float = 5.2, height: float = 3.4) -> str:
    """The SVG of a figure that `draw` fills; its axes are passed."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("the pictures of a report", "report") from error
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: Any = dict.fromkeys(inked, INK) | {"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "setscore"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r'(width|height)="[\d.]+pt"', "", text, count=2)
    return re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px sans-serif", text)


def label_bars(section: Section) -> str:
    """F1 of every label, the most frequent first."""
    rows = sorted(section.labels, key=lambda row: -row["gold"])[:LABELS]

    def draw(axes: Any) -> None:
        places = np.arange(len(rows))[::-1]
        axes.barh(places, [100 * row["f1"] for row in rows], color=FIRST, height=0.7)
        axes.set_yticks(places, [f"{row['label']} ({row['gold']:.0f})" for row in rows])
        axes.set_xlim(0, 100)
        axes.set_xlabel("F1 in percent; documents with the label in brackets")

    return drawn(draw, height=0.9 + 0.2 * len(rows))


def reliability_diagram(first: Drawn) -> str:
    """Promised against true shares."""
    assert first.probabilities is not None  # who asks has looked
    found = reliability(first.test.gold, first.probabilities)

    def draw(axes: Any) -> None:
        filled = found["count"] > 0
        axes.plot([0, 1], [0, 1], color=FAINT, linestyle=":", linewidth=1)
        line = found["confidence"][filled], found["accuracy"][filled]
        axes.plot(*line, marker="o", markersize=4, color=FIRST, clip_on=False)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("probability")
        axes.set_ylabel("share that is right")

    return drawn(draw)


def threshold_curve(first: Drawn) -> str:
    """Micro and macro F1 if one threshold cut every label."""
    assert first.probabilities is not None
    cuts = np.linspace(0.02, 0.98, 49)
    found = [decision_metrics(first.test.gold, first.probabilities >= cut) for cut in cuts]

    def draw(axes: Any) -> None:
        for name, key, colour in (("micro-F1", "micro_f1", FIRST), ("macro-F1", "macro_f1", SECOND)):
            axes.plot(cuts, [100 * one[key] for one in found], label=name, color=colour)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 100)
        axes.set_xlabel("threshold")
        axes.set_ylabel("F1 in percent")
        axes.legend(frameon=False, labelcolor=INK)

    return drawn(draw)


def pareto(sections: Sequence[Section]) -> str | None:
    """Accuracy against milliseconds, with the runs that no other beats in both; None where nothing was timed."""
    timed = [one for one in sections if one.row["milliseconds"] is not None]
    if not timed:
        return None
    points = sorted((float(one.row["milliseconds"]), 100 * float(one.row["micro_f1"]), one.name) for one in timed)
    front = [
        point for number, point in enumerate(points) if point[1] > max((p[1] for p in points[:number]), default=-1)
    ]

    def draw(axes: Any) -> None:
        axes.plot(*zip(*[(x, y) for x, y, _ in front], strict=True), color=SECOND, drawstyle="steps-post", linewidth=1)
        axes.scatter([x for x, _, _ in points], [y for _, y, _ in points], color=FIRST, zorder=3)
        for x, y, name in points:
            axes.annotate(name[:30], (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
        if points[-1][0] > 3 * points[0][0]:
            axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set_ylim(0, 100)
        axes.set_xlabel("milliseconds a document")
        axes.set_ylabel("micro-F1 in percent")

    return drawn(draw, width=7)
