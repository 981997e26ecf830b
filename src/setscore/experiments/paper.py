"""The paper's printed numbers, from paper.json beside this file: a cell by its name, and what to compare with.

A cell's name is table/row/dataset/measure, as in "main/llada_instruct_per_label/reuters/micro"; a table without rows or
datasets leaves that part out, and single numbers of the text are "scalars/cost/llada_memory". The paper prints some
numbers twice with different values. `target` says which of them counts, or that none does, and why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from setscore.errors import SetScoreError, unknown_name
from setscore.storage import read_json

FORMAT = "setscore.paper/1"
SCALARS = "scalars"
Printed = float | str | list[Any] | None  # lists: grids, ranges and pairs; None: not given, or not run


@dataclass(frozen=True)
class Cell:
    """One number where it is printed. `row` joins what names the row in its table with dots; F1 is in percent."""

    table: str
    row: str
    dataset: str
    measure: str
    printed: Printed

    @property
    def name(self) -> str:
        return "/".join(part for part in (self.table, self.row, self.dataset, self.measure) if part)


@dataclass(frozen=True)
class Target:
    """What a cell is compared with.

    value      None: nothing, because the paper gives no number that could be met
    tolerance  how far off printed numbers for this one quantity are from each other; 0 where they agree
    reason     why it is not simply the printed number, or what to mind; empty for most cells
    """

    value: Printed
    tolerance: float = 0.0
    reason: str = ""


@cache
def facts() -> Mapping[str, Any]:
    """The whole file: methods, tables, scalars, targets and the settings that the paper states."""
    return read_json(Path(str(files("setscore") / "experiments" / "paper.json")), FORMAT)


@cache
def cells() -> Mapping[str, Cell]:
    """Every printed cell by its name, in the paper's order; empty ones too."""
    made = [*_cells_of_tables(), *_cells_of_text(facts()[SCALARS], ())]
    return {cell.name: cell for cell in made}


def cell(name: str) -> Cell:
    """The cell of this name."""
    if name not in cells():
        near = get_close_matches(name, cells(), n=1)  # all of their names would fill a screen
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SetScoreError(f"the paper has no cell {name!r}.{hint} A name is table/row/dataset/measure.")
    return cells()[name]


def printed(table: str, row: str, dataset: str, measure: str) -> float | None:
    """The printed number, None where the paper has none for this dataset or leaves the cell empty."""
    if table not in facts()["tables"]:
        raise SetScoreError(unknown_name("table of the paper", table, tuple(facts()["tables"])))
    rows = {one.row: one for one in cells().values() if one.table == table}
    if row not in rows:
        raise SetScoreError(unknown_name(f"row of the paper's table {table}", row, tuple(rows)))
    found = cells().get(Cell(table, row, dataset, measure, None).name)
    return found.printed if found is not None and isinstance(found.printed, int | float) else None


def target(name: str) -> Target:
    """What to compare with: the printed number, unless the paper contradicts it elsewhere."""
    mine = cell(name)
    for entry in facts()["targets"]:
        if any(fnmatchcase(name, pattern) for pattern in entry["cells"]):
            return Target(_value(mine, entry["target"]), entry.get("tolerance", 0.0), entry["reason"])
    return Target(mine.printed)


def _value(mine: Cell, chosen: Any) -> Printed:
    """`chosen`: "printed", null, {"value": number} or {"cell": the name of another cell, perhaps with {measure}}."""
    if chosen == "printed":
        return mine.printed
    if chosen is None:
        return None
    if "value" in chosen:
        return float(chosen["value"])
    return cell(chosen["cell"].replace("{measure}", mine.measure)).printed


def _cells_of_tables() -> Iterator[Cell]:
    for table, content in facts()["tables"].items():
        for row in content["rows"]:
            name = ".".join(str(row[column]) for column in content["row"])
            dataset = row.get("dataset", content.get("dataset", ""))
            for measure in content["measures"]:
                yield Cell(table, name, dataset, measure, row[measure])


def _cells_of_text(group: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Cell]:
    for name, content in group.items():
        if "value" in content:
            yield Cell(SCALARS, "/".join(path[:1]), "/".join(path[1:]), name, content["value"])
        else:
            yield from _cells_of_text(content, (*path, name))
