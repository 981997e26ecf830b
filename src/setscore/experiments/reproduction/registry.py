"""What there is to reproduce: items, cells, methods and how they belong together, from the YAML files beside this one.

A cell is one printed number (`setscore.experiments.paper`). Its quantity says how it is measured, and which runs it
needs: a method on a dataset, with a question template where that is not the default.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from setscore.errors import SetScoreError, unknown_name
from setscore.experiments import paper

KINDS = (
    *("score", "difference", "label", "headroom", "blend", "recall", "fact", "setting", "theory", "slot", "rate"),
    *("cost", "cells_of", "stated"),
)
HEADLINE, REPLICATION = (13,), (13, 17, 23)  # seeds of a single number, and of a mean with its deviation
DEFAULT_TEMPLATE, SWEPT = "express", "swept"
CORE = ("goemotions", "reuters", "eurlex")  # latencies are means over "three core benchmarks": those that unary ran on


@dataclass(frozen=True)
class Weights:
    """A public checkpoint: of a backbone by name, or of a baseline by repository."""

    name: str
    parameters: float
    backbone: str | None = None
    checkpoint: str | None = None
    active: float | None = None  # parameters that a token passes through, where that is not all of them
    bytes: float = 2.0  # of a weight

    @property
    def place(self) -> str:
        return str(self.backbone or self.checkpoint)


@dataclass(frozen=True)
class Method:
    """A row of the paper: what is run. `name` is the paper's own, `title` as it prints it."""

    name: str
    title: str
    group: str
    weights: Weights
    scorer: str = "per_label"
    baseline: str | None = None
    template: str = DEFAULT_TEMPLATE
    decided: str = "calibrated"
    prompted: bool = False
    limit: int | None = None  # documents of each slice, where the paper took fewer


@dataclass(frozen=True)
class Blend:
    """A mixture of posteriors. `weights` as printed, if they are; `steps` of the grid that they are chosen from."""

    name: str
    members: tuple[str, ...]
    weights: tuple[float, ...] = ()
    steps: int = 4


@dataclass(frozen=True)
class Size:
    """What a dataset has, for estimates: documents and asked labels of the test slice, tokens of a document."""

    documents: int
    labels: int
    asked: int
    tokens: int
    train: int


@dataclass(frozen=True)
class Need:
    """One run that a quantity is made of. `template` is a name of the sweep, or "swept" to choose one."""

    method: str
    dataset: str
    template: str = DEFAULT_TEMPLATE
    seeds: tuple[int, ...] = HEADLINE


@dataclass(frozen=True)
class Quantity:
    """How a number is measured: a kind (cells.yaml), what of it, and the options."""

    kind: str
    what: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)


@dataclass(frozen=True)
class Asked:
    """A cell that is to be measured; `cell` is None where the paper announces a number and prints none."""

    name: str
    quantity: Quantity
    cell: paper.Cell | None = None


@dataclass(frozen=True)
class Item:
    """A table or figure."""

    name: str
    title: str
    source: str
    patterns: tuple[str, ...]
    more: tuple[Mapping[str, Any], ...] = ()

    def cells(self) -> list[Asked]:
        """Printed cells in the paper's order, then what is announced without a number."""
        printed = [
            Asked(name, quantity_of(cell), cell)
            for name, cell in paper.cells().items()
            if any(fnmatchcase(name, pattern) for pattern in self.patterns)
        ]
        return printed + list(self._more())

    def _more(self) -> Iterator[Asked]:
        for entry in self.more:
            for method in entry["methods"]:
                for dataset in entry["datasets"]:
                    for measure in entry["measures"]:
                        quantity = Quantity("score", method, {"dataset": dataset, "measure": measure})
                        yield Asked(f"{entry['name']}/{method}/{dataset}/{measure}", quantity)


@cache
def _data(name: str) -> Any:
    return yaml.safe_load((Path(__file__).parent / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def items() -> Mapping[str, Item]:
    """Every table and figure by name, in the paper's order."""
    return {
        name: Item(name, one["title"], one["source"], tuple(one["cells"]), tuple(one.get("more", ())))
        for name, one in _data("items").items()
    }


def item(name: str) -> Item:
    if name not in items():
        raise SetScoreError(unknown_name("table or figure", name, items()))
    return items()[name]


@cache
def weights() -> Mapping[str, Weights]:
    return {name: Weights(name, **one) for name, one in _data("methods")["weights"].items()}


@cache
def methods() -> Mapping[str, Method]:
    """Every method that cells name, with the title and the group that the paper gives it, or gives its kin."""
    printed = paper.facts()["methods"]
    made = {}
    for name, one in _data("methods")["methods"].items():
        known = printed.get(name) or printed[_kin(name)]
        options = {**one, "weights": weights()[one["weights"]]}
        made[name] = Method(name, _title(name, known["name"]), known["group"], **options)
    return made


def _kin(name: str) -> str:
    """llada_base_jsr of llada_base_jsr_2, llada_base_unary of llada_base_unary_perm8."""
    return re.sub(r"(_jsr)_\d$|_perm\d$", r"\1", name)


def _title(name: str, title: str) -> str:
    if sweeps := re.search(r"_jsr_(\d)$", name):
        return f"{title}, S = {sweeps.group(1)}"
    if orders := re.search(r"_perm(\d)$", name):
        return f"{title.replace(' (perm-4)', '').replace(' (all-masked)', '')}, P = {orders.group(1)}"
    return title


@cache
def blends() -> Mapping[str, Blend]:
    made = {}
    for name, one in _data("methods")["blends"].items():
        made[name] = Blend(name, tuple(one["members"]), tuple(one.get("weights", ())), one["steps"])
    return made


@cache
def sizes() -> Mapping[str, Size]:
    return {name: Size(**one) for name, one in _data("methods")["datasets"].items()}


def templates(dataset: str) -> Mapping[str, str]:
    """Names in the paper's sweep to names of questions; of a dataset that was not swept the default alone."""
    found: Mapping[str, str] = _data("methods")["templates"].get(dataset, {DEFAULT_TEMPLATE: DEFAULT_TEMPLATE})
    return found


def quantity_of(cell: paper.Cell) -> Quantity:
    """The first rule that fits a cell."""
    for rule in _data("cells"):
        if any(fnmatchcase(cell.name, pattern) for pattern in rule["cells"]):
            (kind,) = [key for key in rule if key in KINDS]
            options = {key: _filled(value, cell) for key, value in rule.items() if key not in ("cells", kind)}
            return Quantity(kind, _filled(rule[kind], cell), options)
    raise SetScoreError(f"no rule says how the cell {cell.name} is measured; add one to cells.yaml.")


def _filled(value: Any, cell: paper.Cell) -> Any:
    """With the cell's own row, dataset and measure in the place of {row}, {dataset} and {measure}."""
    if isinstance(value, list):
        return [_filled(one, cell) for one in value]
    if not isinstance(value, str):
        return value
    places = {"row": cell.row, "dataset": cell.dataset, "measure": cell.measure}
    places |= {f"row.{number}": part for number, part in enumerate(cell.row.split("."))}
    return re.sub(r"\{([a-z.0-9]+)\}", lambda found: places[found.group(1)], value)


def cells_of(quantity: Quantity) -> list[list[paper.Cell]]:
    """For a quantity that is made of other cells: those of each of its patterns."""
    found = []
    for pattern in quantity.what:
        named = [cell for name, cell in paper.cells().items() if fnmatchcase(name, pattern)]
        if not named:
            raise SetScoreError(f"cells.yaml: no cell is named {pattern!r}.")
        found.append(named)
    return found


def needs(quantity: Quantity) -> list[Need]:
    """The runs that a quantity is made of; none for facts, settings and what is only stated."""
    if quantity.kind == "cells_of":
        return _distinct([need for group in cells_of(quantity) for cell in group for need in needs(quantity_of(cell))])
    seeds = REPLICATION if quantity.get("over") else HEADLINE
    template = quantity.get("template", DEFAULT_TEMPLATE)
    return _distinct(
        [
            Need(method, dataset, _template(method, template), seeds)
            for method in _methods_of(quantity)
            for dataset in _datasets_of(quantity)
        ]
    )


def _template(method: str, template: str) -> str:
    return SWEPT if methods()[method].template == SWEPT else template


def _methods_of(quantity: Quantity) -> Sequence[str]:
    kind, what = quantity.kind, quantity.what
    if kind in ("score", "difference", "label", "headroom"):
        return _listed(what)
    if kind == "blend":
        return blends()[what].members
    if kind == "slot":
        return ("llada_base_unary",)
    if kind == "rate":
        return ("llada_base_per_label", "llada_instruct_per_label")
    return _listed(quantity["method"]) if kind == "cost" else ()


def _datasets_of(quantity: Quantity) -> Sequence[str]:
    return _listed(quantity.get("dataset", CORE if quantity.kind == "cost" else ()))


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _distinct(found: Sequence[Need]) -> list[Need]:
    return list(dict.fromkeys(found))
