"""What several benchmarks need: options, tables of Markdown, timing, progress, files."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from setscore import __version__
from setscore.backbones import backbone_spec, load_backbone
from setscore.experiments import paper

if TYPE_CHECKING:
    from recipes.floats import FloatBackbone

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"  # numbers that pages are made from
SEEDS = tuple(paper.facts()["setup"]["seeds"]["replication"])
T = TypeVar("T")


def options(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the module's docstring as it is written."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def row(cells: Iterable[object]) -> str:
    """A line of a table of Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def header(names: Sequence[object], *, left: int = 1) -> str:
    """The two lines above the rows; the first `left` columns are words, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(names) - left)
    return f"{row(names)}\n|{'|'.join(rule)}|".replace("|  |", "| |")  # a first column without a name


def table(names: Sequence[object], rows: Iterable[Iterable[object]], *, left: int = 1) -> str:
    """A table of Markdown."""
    return "\n".join([header(names, left=left), *map(row, rows)])


def f1_pair(metrics: Mapping[str, float]) -> str:
    """Micro / macro F1 in percent, of fractions."""
    return f"{100 * metrics['micro_f1']:.1f} / {100 * metrics['macro_f1']:.1f}"


def tell(*what: object, end: str = "\n") -> None:
    """Says how far it is, beside the tables and pages on standard output."""
    print(*what, end=end, file=sys.stderr, flush=True)


def write_json(path: Path | None, content: Any) -> None:
    """The numbers behind what was printed, where a file was named for them."""
    if path is not None:
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def measured(backbone: "str | FloatBackbone") -> dict[str, Any]:
    """What numbers were measured with: a page that shows them is stale when the package has something else."""
    if isinstance(backbone, str):
        name, weights = backbone, {"identity": load_backbone(backbone).identity}
    else:
        name, weights = backbone.spec.name, {"made_from_sha256": backbone.weights()["weights"]}
    return {"backbone": name, **weights, "zero_shot": zero_shot(name), "setscore": __version__}


def zero_shot(name: str) -> dict[str, float]:
    """The numbers of a model that stand in before `fit`."""
    spec = backbone_spec(name)
    return {"temperature": spec.temperature, "competition": spec.competition, "handicap": spec.handicap}


def timed(work: Callable[[], T], *, clock: Callable[[], float] = time.perf_counter) -> tuple[T, float]:
    """What `work` gives, and the seconds that it took."""
    begun = clock()
    made = work()
    return made, clock() - begun


def repeat(work: Callable[[], object], seconds: float, wait: Callable[[], None] = lambda: None) -> tuple[float, int]:
    """Calls `work` for so many seconds, at least once: the seconds that it took and the number of calls.

    The first call only warms up. `wait` ends when the device has done what it was asked.
    """
    work()
    wait()
    begun, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - begun < seconds:
        work()
        calls += 1
        wait()
    return time.perf_counter() - begun, calls
