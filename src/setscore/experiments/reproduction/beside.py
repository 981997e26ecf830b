"""Our cell beside the paper's: the difference, an interval, and whether it is a reproduction at all.

A row that another model, another slice or fewer documents made is labelled so, and is never called a reproduction. A
cell that cannot be measured says what is missing; nothing is filled in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from setscore.datasets import DATASETS
from setscore.experiments import paper
from setscore.experiments.protocol import PAPER
from setscore.experiments.reproduction.bench import Bench, MissingError
from setscore.experiments.reproduction.planning import Choice
from setscore.experiments.reproduction.quantities import StatedError, measure
from setscore.experiments.reproduction.registry import Asked, methods, needs

MEASURED, MISSING, STATED = "measured", "missing", "stated"


@dataclass(frozen=True)
class Row:
    """One cell.

    ours, low, high  the value and its bootstrap interval (95%); None where there is none
    printed, target  what the paper prints, and what is compared with: it decides between contradictions
    difference       ours minus target, of numbers; of lists one for each
    inside           whether the target lies in the interval, or within rounding where there is none
    by               what stands in the place of the paper's weights and documents; empty where they are the paper's own
    reproduction     whether weights, documents and protocol are all the paper's
    status, note     measured, missing or stated, and why
    """

    cell: str
    status: str
    ours: Any = None
    low: float | None = None
    high: float | None = None
    printed: Any = None
    target: Any = None
    difference: Any = None
    inside: bool | None = None
    by: str = ""
    reproduction: bool = False
    note: str = ""
    protocol: str = PAPER.name

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def rows(asked: Sequence[Asked], bench: Bench) -> Iterator[Row]:
    """A row for every cell, as soon as it is measured."""
    for one in asked:
        yield row(one, bench)


def row(asked: Asked, bench: Bench) -> Row:
    target = paper.target(asked.name) if asked.cell is not None else paper.Target(None)
    printed = None if asked.cell is None else asked.cell.printed
    by, same = made_by(asked, bench.choice)
    about: dict[str, Any] = {"cell": asked.name, "printed": printed, "target": target.value, "by": by}
    try:
        found = measure(asked.quantity, bench)
    except StatedError as error:
        return Row(**about, status=STATED, note=str(error))
    except MissingError as error:
        return Row(**about, status=MISSING, note=str(error))
    difference = _difference(found.value, target.value)
    inside = _inside(found.value, (found.low, found.high), target, printed)
    notes = [text for text in (found.note, target.reason) if text]
    papers_documents = bench.choice.is_paper_slice and all(map(bench.has_papers_documents, datasets(asked)))
    about["by"] = ", ".join([*filter(None, [by]), *([] if papers_documents else ["other documents"])])
    return Row(
        **about,
        status=MEASURED,
        ours=found.value,
        low=found.low,
        high=found.high,
        difference=difference,
        inside=inside,
        reproduction=same and papers_documents,
        note="; ".join(notes),
    )


def datasets(asked: Asked) -> set[str]:
    """The datasets that a cell is measured on: those of its runs, and that of its name."""
    named = {part for part in asked.name.split("/") if part in DATASETS}
    return named | {need.dataset for need in needs(asked.quantity)}


def made_by(asked: Asked, choice: Choice) -> tuple[str, bool]:
    """What stands in the place of the paper's weights, and whether nothing does."""
    used = {need.method: methods()[need.method].weights for need in needs(asked.quantity)}.values()
    others = dict.fromkeys(f"{choice.place(one)} for {one.place}" for one in used if not choice.is_papers(one))
    return ", ".join(others), not others


def _difference(ours: Any, target: Any) -> Any:
    if _is_number(ours) and _is_number(target):
        return ours - target
    if _is_list(ours) and _is_list(target) and len(ours) == len(target):
        return [one - other for one, other in zip(ours, target, strict=True)]
    return None


def _inside(ours: Any, interval: tuple[float | None, float | None], target: paper.Target, printed: Any) -> bool | None:
    """None where there is nothing to compare with."""
    wanted: Any = target.value
    if wanted is None:
        return None
    if _is_number(ours) and _is_number(wanted):
        slack = target.tolerance + _rounding(printed if _is_number(printed) else wanted)
        low, high = (ours if end is None else end for end in interval)
        return bool(low - slack <= wanted <= high + slack)
    if _is_list(ours) and _is_list(wanted) and len(ours) == len(wanted):
        pairs = zip(ours, wanted, strict=True)
        return all(abs(one - other) <= target.tolerance + _rounding(other) for one, other in pairs)
    return bool(ours == wanted)


def _rounding(value: float) -> float:
    """Half a unit of the last printed digit."""
    text = repr(value)
    if "e" in text:
        return abs(value) * 1e-6
    decimals = len(text.partition(".")[2]) if "." in text else 0
    return 0.5 * 10**-decimals if decimals and not text.endswith(".0") else 0.05 if decimals else 0.5


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_number(one) for one in value)
