"""An item as Markdown: a matrix of methods and datasets where it is one, else a row for each cell.

Bold is derived from the data: in every column the highest value among methods that learn nothing from labels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from setscore.experiments.reproduction.beside import Row
from setscore.experiments.reproduction.registry import Item, methods

MATRIX = ("main", "full_matrix", "supervised", "dream_replication")
FREE = "training-free"


def markdown(item: Item, rows: Sequence[Row]) -> str:
    """A page of one item."""
    parts = [f"# {item.title}", "", f"In the paper: {item.source}. Protocol: paper.", ""]
    matrix = [row for row in rows if row.cell.split("/")[0] in MATRIX]
    if matrix:
        parts += [*_matrix(matrix), ""]
    parts += _cells([row for row in rows if row not in matrix] or list(rows))
    return "\n".join(parts) + "\n"


def _matrix(rows: Sequence[Row]) -> list[str]:
    """Ours over the paper's, micro/macro; empty where nothing is measured."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        _, method, dataset, measure = row.cell.split("/")
        found.setdefault((method, dataset), {})[measure] = row
    datasets = list(dict.fromkeys(dataset for _, dataset in found))
    lines = [_line(["method", "by", *datasets]), _line(["---"] * (2 + len(datasets)))]
    best = _best(rows)
    for name in dict.fromkeys(method for method, _ in found):
        title = methods()[name].title if name in methods() else name
        for what in ("ours", "paper"):
            pairs = [found.get((name, dataset), {}) for dataset in datasets]
            if what == "ours" and not any(row.status == "measured" for pair in pairs for row in pair.values()):
                lines.append(_line([title, "missing", *[""] * len(datasets)]))
                continue
            by = next((row.by for pair in pairs for row in pair.values() if row.by), "") if what == "ours" else "paper"
            lines.append(_line([title if what == "ours" else "", by, *(_pair(pair, what, best) for pair in pairs)]))
    return lines


def _best(rows: Sequence[Row]) -> Mapping[tuple[str, str], float]:
    """The highest of our values in each column, of methods that learn nothing."""
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        _, method, dataset, measure = row.cell.split("/")
        if row.status == "measured" and method in methods() and methods()[method].group == FREE:
            best[dataset, measure] = max(row.ours, best.get((dataset, measure), -1.0))
    return best


def _pair(pair: Mapping[str, Row], what: str, best: Mapping[tuple[str, str], float]) -> str:
    cells = []
    for measure, row in pair.items():
        value = row.ours if what == "ours" else row.printed
        if value is None:
            cells.append("")
            continue
        text = f"{value:.1f}"
        dataset, method = row.cell.split("/")[2], row.cell.split("/")[1]
        free = method in methods() and methods()[method].group == FREE
        bold = what == "ours" and free and value == best.get((dataset, measure))
        cells.append(f"**{text}**" if bold else text)
    return "/".join(cells) if any(cells) else ""


def _cells(rows: Sequence[Row]) -> list[str]:
    lines = [_line(["cell", "ours", "interval (95%)", "paper", "difference", "inside", "made by", "note"])]
    lines.append(_line(["---"] * 8))
    for row in rows:
        bounds = "" if row.low is None or row.high is None else f"{row.low:.1f} to {row.high:.1f}"
        inside = "" if row.inside is None else "yes" if row.inside else "no"
        ours = _text(row.ours) if row.status == "measured" else row.status
        cells = [row.cell, ours, bounds, _text(row.target), _text(row.difference), inside, row.by]
        lines.append(_line([*cells, row.note.replace("|", "/")]))
    return lines


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return " / ".join(_text(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
