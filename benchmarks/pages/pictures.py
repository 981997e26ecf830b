"""The pictures of the documentation, as SVG: two drawings, and two plots of committed results.

Each picture has a panel of its own, whose colours follow the reader's light or dark setting, so that it can be read on
any page. `python benchmarks/pages/all_pages.py` writes them to docs/pictures.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape

from benchmarks.common import RESULTS, ROOT

FOLDER = ROOT / "docs" / "pictures"
SCORERS_PAGE = ROOT / "docs" / "results" / "scorers.md"
STYLE = """
.panel { fill: #ffffff; stroke: #d0d7de } .text { fill: #1f2328 } .soft { fill: #59636e } .line { stroke: #59636e }
.box { fill: #eef4fb; stroke: #2f6fb3 } .seen { fill: #2f6fb3 } .empty { fill: #eceff2 } .mark { fill: #c2571a }
.grid { stroke: #e3e7eb } .thin { stroke: #9fb6cf } .thick { stroke: #c2571a }
@media (prefers-color-scheme: dark) {
.panel { fill: #161b22; stroke: #3d444d } .text { fill: #e6edf3 } .soft { fill: #9da7b1 } .line { stroke: #9da7b1 }
.box { fill: #17283d; stroke: #6aa5e3 } .seen { fill: #6aa5e3 } .empty { fill: #262c35 } .mark { fill: #f0883e }
.grid { stroke: #2b323b } .thin { stroke: #4d6784 } .thick { stroke: #f0883e }
}
text { font-family: system-ui, sans-serif; font-size: 13px } .small { font-size: 11px } .middle { text-anchor: middle }
.end { text-anchor: end }
""".strip()


def drawing(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="panel" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>\n{body}\n</svg>\n'
    )


def text(x: float, y: float, said: str, kind: str = "text") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(said)}</text>'


def arrow(x: float, y: float, length: float) -> str:
    end = x + length
    return f'<path class="line" d="M{x:g} {y:g}H{end:g}m-6 -4l6 4l-6 4" fill="none" stroke-width="1.5"/>'


def way() -> str:
    """The way of a document through the layers."""
    stages = (
        ("Document", "a text"), ("Template", "the wording"), ("Query", "one per label"),
        ("Backbone", "answers"), ("Scores", "log-odds"), ("Calibration", "thresholds"), ("Prediction", "labels"),
    )  # fmt: skip
    parts, box, gap = [], 104, 22
    for place, (name, said) in enumerate(stages):
        x = 18 + place * (box + gap)
        parts.append(f'<rect class="box" x="{x}" y="18" width="{box}" height="52" rx="6"/>')
        parts += [text(x + box / 2, 41, name, "text middle"), text(x + box / 2, 59, said, "soft small middle")]
        if place:
            parts.append(arrow(x - gap + 2, 44, gap - 4))
    said = (
        "“My parcel …”",
        "“… {label}?”",
        "“… refund? [MASK]”",
        "yes or no?",
        "one per label",
        "p ≥ threshold?",
        "refund",
    )
    parts += [
        text(18 + place * (box + gap) + box / 2, 94, example, "soft small middle") for place, example in enumerate(said)
    ]
    return drawing(892, 114, "The way of a document", parts)


def attention() -> str:
    """What each token sees, in squares: a row sees the columns that are filled."""
    parts, cell = [], 13
    document, question, labels = 6, 2, 3

    def square(x: float, y: float, *, seen: bool) -> str:
        size = cell - 2
        return (
            f'<rect class="{"seen" if seen else "empty"}" x="{x:g}" y="{y:g}" width="{size}" height="{size}" rx="2"/>'
        )

    parts.append(text(24, 30, "exact: every question reads the document again"))
    size = document + question
    for label in range(labels):
        left = 24 + label * (size * cell + 16)
        parts.append(text(left, 52, f"question {label + 1}", "soft small"))
        parts += [
            square(left + column * cell, 60 + row * cell, seen=True) for row in range(size) for column in range(size)
        ]
    parts.append(text(24, 60 + size * cell + 22, "m (D + Q) tokens", "soft"))
    left, size = 24 + labels * (8 * cell + 16) + 40, document + question * labels
    parts.append(text(left, 30, "shared: the document is read once for all"))
    parts.append(text(left, 52, "questions 1, 2 and 3", "soft small"))

    def sees(row: int, column: int) -> bool:
        if column < document:
            return True
        return row >= document and (row - document) // question == (column - document) // question

    parts += [
        square(left + column * cell, 60 + row * cell, seen=sees(row, column))
        for row in range(size)
        for column in range(size)
    ]
    parts.append(text(left, 60 + size * cell + 22, "D + m Q tokens; no question sees another", "soft"))
    return drawing(760, 60 + size * cell + 42, "Exact and shared attention", parts)


def axes(ys: Sequence[float], y_of: Callable[[float], float], left: float, right: float, title: str) -> list[str]:
    """Horizontal lines with their numbers, and what they count."""
    parts = [text(left - 34, 26, title, "soft small")]
    for value in ys:
        parts.append(f'<path class="grid" d="M{left:g} {y_of(value):g}H{right:g}"/>')
        parts.append(text(left - 8, y_of(value) + 4, f"{value:g}", "soft small end"))
    return parts


def learning_curve() -> str:
    """Micro-F1 by the number of labelled documents, of every dataset and their mean."""
    content = json.loads((RESULTS / "few-documents.json").read_text(encoding="utf-8"))
    sizes, curves = curve_of(content["found"])
    left, right, top, bottom = 56.0, 520.0, 40.0, 320.0

    def x_of(place: int) -> float:
        return left + (right - left) * place / (len(sizes) - 1)

    def y_of(value: float) -> float:
        return bottom - (bottom - top) * value / 100

    parts = axes(range(0, 101, 20), y_of, left, right, f"micro-F1, {content['measured']['backbone']}")
    parts += [text(x_of(place), bottom + 18, f"{size:,}", "soft small middle") for place, size in enumerate(sizes)]
    parts.append(text((left + right) / 2, bottom + 38, "labelled documents (0: zero-shot)", "soft small middle"))
    for (name, values), at in zip(curves.items(), spread({n: y_of(v[-1]) for n, v in curves.items()}), strict=True):
        points = " ".join(f"{x_of(place):g},{y_of(value):.1f}" for place, value in enumerate(values))
        kind, width = ("thick", 3) if name == "mean" else ("thin", 1.5)
        parts.append(f'<polyline class="{kind}" points="{points}" fill="none" stroke-width="{width}"/>')
        parts.append(text(right + 10, at + 4, f"{name} {values[-1]:.0f}", "text small"))
    return drawing(640, 376, "What labelled documents bring", parts)


def curve_of(found: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[list[int], dict[str, list[float]]]:
    """Numbers of documents, and micro-F1 for each of them by dataset; the mean comes last."""
    kept = {
        int(key.split()[0]): cells for key, cells in found.items() if key == "0 not fitting" or key.endswith(" fit")
    }
    names = list(next(iter(kept.values())))
    curves = {name: [cells[name][0] for cells in kept.values()] for name in names}
    curves["mean"] = [sum(column) / len(names) for column in zip(*curves.values(), strict=True)]
    return list(kept), curves


def spread(wanted: Mapping[str, float], apart: float = 14.0) -> list[float]:
    """Heights near the wanted ones, in their order, of texts that do not overlap."""
    order, heights, last = sorted(wanted, key=wanted.__getitem__), {}, -math.inf
    for name in order:
        last = heights[name] = max(wanted[name], last + apart)
    return [heights[name] for name in wanted]


def cost() -> str:
    """Micro-F1 of every way of scoring on Reuters against its time, both from the page of scorers."""
    points = scorer_points(SCORERS_PAGE.read_text(encoding="utf-8"))
    left, right, top, bottom = 56.0, 600.0, 40.0, 320.0
    ticks = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)

    def x_of(value: float) -> float:
        return left + (right - left) * math.log(value / ticks[0]) / math.log(ticks[-1] / ticks[0])

    def y_of(value: float) -> float:
        return bottom - (bottom - top) * (value - 30) / 60

    parts = axes(range(30, 91, 10), y_of, left, right, "micro-F1 on Reuters, calibrated, setscore-mini")
    parts += [text(x_of(value), bottom + 18, f"{value:g}", "soft small middle") for value in ticks]
    parts.append(text((left + right) / 2, bottom + 38, "time a document takes, per_label = 1", "soft small middle"))
    places = {name: (x_of(took) + 9, y_of(score)) for name, (score, took) in points.items()}
    for name, (x, y) in places.items():
        parts.append(
            f'<circle class="{"mark" if name == "per_label" else "seen"}" cx="{x - 9:.1f}" cy="{y:.1f}" r="5"/>'
        )
    parts += [text(x, y + 4, name, "text small") for name, (x, y) in beside(places).items()]
    return drawing(720, 376, "Accuracy against cost", parts)


def beside(places: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Where names stand: at their places, or lower where another name, or another's dot, is there already."""
    dots, put = [(x - 9, y) for x, y in places.values()], {}
    for name, (x, y) in sorted(places.items(), key=lambda one: one[1][1]):
        taken = [(left, left + 7 * len(other), height) for other, (left, height) in put.items()]
        taken += [(left - 5, left + 5, height) for left, height in dots if left > x]
        at, end = y, x + 7 * len(name)
        while any(left < end and x < right and abs(height - at) < 12 for left, right, height in taken):
            at += 2
        put[name] = (x, at)
    return put


def scorer_points(page: str) -> dict[str, tuple[float, float]]:
    """Micro-F1 and time of each scorer in the first table of the page."""
    table = page.partition("| reuters, ")[2].partition("\n\n")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"`\S+`", cells[0]) and cells[-1] and "layout=paper" not in cells[0]:
            found[cells[0].strip("`")] = (float(cells[1].split()[0]), float(cells[-1]))
    return found


PICTURES = {"way": way, "attention": attention, "learning-curve": learning_curve, "cost": cost}
