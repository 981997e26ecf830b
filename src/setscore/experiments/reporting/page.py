"""One HTML file with everything in it: styles, scripts, pictures and the documents that were decided wrongly."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setscore import __version__
from setscore.errors import MissingExtraError
from setscore.experiments.reporting import pictures
from setscore.experiments.reporting.content import COLUMNS, Section, shown
from setscore.storage import write_bytes

TEXT = ("run", "dataset", "protocol", "label_text", "regime")  # columns that are sorted as words


def write_page(sections: Sequence[Section], path: Path, title: str) -> None:
    """The report of some runs."""
    write_bytes(path, render(sections, title).encode())


def render(sections: Sequence[Section], title: str) -> str:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("setscore report", "report") from error
    place = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=place, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    used = [key for key in COLUMNS if any(shown(one.row, key) for one in sections)]
    return environment.get_template("page.html.j2").render(
        title=title,
        version=__version__,
        columns=[{"key": key, "name": COLUMNS[key], "number": key not in TEXT} for key in used],
        rows=[[{"text": shown(one.row, key), "value": one.row.get(key)} for key in used] for one in sections],
        pareto=pictures.pareto(sections),
        sections=[_section(number, one) for number, one in enumerate(sections)],
        mistakes=_script({f"run-{number}": list(one.mistakes) for number, one in enumerate(sections)}),
    )


def _section(number: int, one: Section) -> dict[str, Any]:
    first = one.run.first
    certain = first.probabilities is not None
    return {
        "id": f"run-{number}",
        "name": one.name,
        "facts": one.facts,
        "remarks": one.remarks,
        "labels": one.labels,
        "names": list(first.test.labels),
        "mistakes": len(one.mistakes),
        "wrong": int((first.decisions != first.test.gold).any(axis=1).sum()),
        "documents": len(first.test),
        "truncated": int(first.test.truncated.sum()),
        "bars": pictures.label_bars(one),
        "reliability": pictures.reliability_diagram(first) if certain else None,
        "curve": pictures.threshold_curve(first) if certain else None,
        "sweep": dict(first.sweep),
    }


def _script(values: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(values, ensure_ascii=False)
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
