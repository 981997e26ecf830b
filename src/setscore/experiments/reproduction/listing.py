"""What there is to reproduce, before anything starts: every cell with what it takes, here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from setscore.errors import SetScoreError
from setscore.experiments import paper
from setscore.experiments.reproduction.planning import Choice, Estimate, estimate, merged
from setscore.experiments.reproduction.registry import Asked, Item, Need, item, items, methods, needs
from setscore.experiments.reproduction.settings import STATED

ALL = "all"
SECONDS = {"min": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Listed:
    """A cell before it is measured: the runs it takes, or why there is nothing to measure."""

    asked: Asked
    needs: tuple[Need, ...]
    why: str

    def plain(self, choice: Choice) -> dict[str, Any]:
        """As JSON values."""
        cell = self.asked.cell
        target = paper.Target(None) if cell is None else paper.target(cell.name)
        used = {need.method: methods()[need.method].weights for need in self.needs}.values()
        return {
            "cell": self.asked.name,
            "printed": None if cell is None else cell.printed,
            "target": target.value,
            "target_reason": target.reason,
            "measured_as": self.asked.quantity.kind,
            "stated": self.why,
            "runs": [f"{need.method} on {need.dataset}, template {need.template}" for need in self.needs],
            "weights": list(dict.fromkeys(choice.place(one) for one in used)),
        }


def chosen(names: Sequence[str], cells: Sequence[str] = ()) -> dict[str, tuple[Item, list[Asked]]]:
    """Items by name with their cells; those that fit METHOD/DATASET or a pattern, where some are given."""
    wanted = list(items()) if ALL in names else list(dict.fromkeys(names))
    found = {}
    for name in wanted:
        one = item(name)
        kept = [asked for asked in one.cells() if not cells or any(_fits(asked, cell) for cell in cells)]
        if kept:
            found[name] = (one, kept)
    if not found:
        raise SetScoreError(
            f"no cell of {', '.join(wanted)} fits {', '.join(cells)}. A cell is METHOD/DATASET, as in"
            " llada_instruct_per_label/reuters, or a pattern of names; --list shows them."
        )
    return found


def _fits(asked: Asked, cell: str) -> bool:
    return f"/{cell}/" in f"/{asked.name}/" or any(fnmatchcase(asked.name, one) for one in (cell, f"*/{cell}"))


def listed(asked: Asked) -> Listed:
    quantity = asked.quantity
    why = quantity.what if quantity.kind == "stated" else STATED.get(str(quantity.what), "")
    return Listed(asked, tuple(needs(quantity)), why)


@dataclass(frozen=True)
class Budget:
    """What an item takes in all: runs that differ, passes, seconds, the largest memory and whether all of it fits."""

    runs: int
    forwards: int
    seconds: float
    memory: float
    fits: bool


def budget(asked: Sequence[Asked], choice: Choice, *, teraflops: float | None = None) -> Budget:
    """Of all the runs that are made for these cells, here or on a machine of this speed; equal runs count once."""
    each: Mapping[tuple[str, ...], Estimate] = {
        _same(need, choice): estimate(need, choice, teraflops=teraflops)
        for need in merged(asked).values()
        if choice.uses(methods()[need.method].weights)
    }
    found = list(each.values())
    return Budget(
        len(found),
        sum(one.forwards for one in found),
        sum(one.seconds for one in found),
        max((one.memory for one in found), default=0.0),
        all(one.fits for one in found),
    )


def _same(need: Need, choice: Choice) -> tuple[str, ...]:
    """What tells a run from others: with one model in the place of all, many are the same."""
    method = methods()[need.method]
    what = method.baseline or method.scorer.replace("permutation?orders=1", "unary")
    return (choice.place(method.weights), what, need.dataset, need.template)


def duration(seconds: float) -> str:
    """About so long: 40 s, 12 min, 3.5 h, 2 d."""
    for unit, size in reversed(SECONDS.items()):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
