"""Batches: rows a second, memory that stays flat, and what the way around the model costs, measured in one run.

    python benchmarks/speed/batch.py [--many 1000000] [--scored 6000] [--json FILE]
    python benchmarks/speed/batch.py --smoke                # a few rows: does it run?

    flat      10 thousand and a million short rows through a backbone that costs next to nothing, one process: the
              whole way from a CSV file to a Parquet file. Its memory must not grow by 100 MB. Also what a row takes
              in the Parquet file, and how fast one process reads all rows for a plan
    classify  the same for `setscore classify --file` at a thousand and at 100 thousand rows: at most 50 MB
    overhead  setscore-mini on short rows, one process: the share of the time that is not spent in the model, which is
              to stay under 10%
    engines   the same rows by one process, by two, and by Ray with two workers: the same bytes

Every line is a process of its own. Read the ratios: rows a second belong to the machine. Ray runs its workers at low
priority (nice 15), so that on a machine with other work they get what is left.
"""

import argparse
import csv
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.common import options, table, tell, timed, write_json
from setscore import SetScoreClassifier
from setscore.backbones import BACKBONES, BackboneSpec
from setscore.batch import SHARD_ROWS, here, processes, run_batch
from setscore.batch.folders import folder_at
from setscore.batch.inputs import find_input
from setscore.batch.plan import make_plan
from setscore.batch.ray_engine import RayEngine

LABELS = ["oil", "sports", "music"]
MODEL = "setscore-mini"
FLAT, CLASSIFY, OVERHEAD = 100, 50, 10  # the goals: MB, MB, per cent
ENGINES = {"one process": here, "two processes": processes(2), "Ray, two workers": RayEngine(workers=2)}
WORDS = ("price", "match", "song", "market", "river", "team", "band", "storm", "engine", "garden", "city", "bridge")


class CheapBackbone:
    """Answers by a checksum: what is left is the cost of everything else."""

    attention = "shared"
    identity = "cheap"
    spec = BackboneSpec(
        "cheap", "cheap", "a checksum", 0, 2000, ("shared",), licence="none", mask="[MASK]", leading_space=False
    )

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [(0, 0)] * (text.count(" ") + 1)

    def log_odds(self, queries: Sequence[Any]) -> list[Any]:
        return [np.array([zlib.crc32(query.document.encode()) / 2**31 - 1]) for query in queries]


def write_rows(path: Path, count: int) -> Path:
    """Short rows, each another one."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "text"))
        for number in range(count):
            words = " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 5, 7, 11))
            writer.writerow((number, f"Note {number} about {words} and the {WORDS[number % 7]} of today."))
    return path


class Timed(SetScoreClassifier):
    """Counts the seconds that are spent in the classifier, as opposed to those around it."""

    seconds = 0.0

    def classify(self, *arguments: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        found = super().classify(*arguments, **named)
        type(self).seconds += time.perf_counter() - begun
        return found


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def part(what: str, source: str, out: str) -> dict[str, float]:
    """What one process measures."""
    planning = 0.0
    if what == "flat":
        _, planning = timed(lambda: make_plan(find_input(source, folder_at(".")), SHARD_ROWS), clock=time.process_time)
    begun, worked = time.perf_counter(), time.process_time()
    if what == "flat":
        run_batch(SetScoreClassifier(LABELS, backbone=CheapBackbone()), source, out)
    elif what == "classify":
        classify(source, out)
    else:
        model = Timed(LABELS, backbone=MODEL)
        model.classify(["A first sentence, for which the model is loaded."])
        Timed.seconds, begun, worked = 0.0, time.perf_counter(), time.process_time()
        run_batch(model, source, out, engine=ENGINES.get(what, here), shard_rows=512)
    seconds, worked = time.perf_counter() - begun, time.process_time() - worked
    return {"seconds": seconds, "worked": worked, "memory": peak(), "scoring": Timed.seconds, "planning": planning}


def classify(source: str, out: str) -> None:
    """The command itself, with the cheap backbone among its own."""
    from setscore.cli import main

    BACKBONES["cheap"] = "benchmarks.speed.batch"
    sys.argv = ["setscore", "classify", "--file", source, "--labels", ",".join(LABELS), "--backbone", "cheap"]
    sys.argv += ["--format", "jsonl", "--output", out]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise


def spec_of(name: str, options: Any) -> BackboneSpec:
    return CheapBackbone.spec


def load(name: str, **options: Any) -> CheapBackbone:
    return CheapBackbone()


def measured(what: str, source: Path, out: Path) -> dict[str, float]:
    """The same in a process of its own."""
    tell(f"{what}: {source.name} ...", end=" ")
    command = [sys.executable, "-m", "benchmarks.speed.batch", "--part", what, str(source), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    tell(f"{found['seconds']:.1f} s")
    return found


def growth(what: str, folder: Path, sizes: Sequence[int], goal: int) -> tuple[str, dict[str, Any]]:
    found = {}
    for size in sizes:
        source = folder / f"{size}.csv"
        if not source.exists():
            write_rows(source, size)
        out = folder / f"{what}-{size}.{'jsonl' if what == 'classify' else 'parquet'}"
        found[size] = measured(what, source, out) | {"written": out.stat().st_size}
    rows = [
        [
            f"{size:,}",
            f"{size / one['seconds']:,.0f}",
            f"{size / one['worked']:,.0f}",
            f"{one['memory']:.0f}",
            f"{one['written'] / size:.1f}",
        ]
        for size, one in found.items()
    ]
    grown = found[sizes[-1]]["memory"] - found[sizes[0]]["memory"]
    said = f"It grows by {grown:.0f} MB; the goal is {goal} at most: {'met' if grown <= goal else 'missed'}."
    if planning := found[sizes[-1]]["planning"]:
        said += f" Reading all rows once, as a plan does: {sizes[-1] / planning:,.0f} rows a CPU second."
    names = ["rows", "rows a second", "rows a CPU second", "peak memory MB", "bytes a row written"]
    return f"{table(names, rows, left=0)}\n\n{said}", found


def engines(folder: Path, count: int) -> tuple[str, dict[str, Any]]:
    source = write_rows(folder / "scored.csv", count)
    found, digests = {}, {}
    for name in ENGINES:
        out = folder / f"{name.replace(' ', '-').replace(',', '')}.parquet"
        found[name] = measured(name, source, out)
        digests[name] = hashlib.sha256(out.read_bytes()).hexdigest()
    first = found["one process"]
    rows = [
        [name, f"{one['seconds']:.1f}", f"{count / one['seconds']:,.0f}", f"{first['seconds'] / one['seconds']:.2f}"]
        for name, one in found.items()
    ]
    share = 100 * (1 - first["scoring"] / first["seconds"])
    same = "the same bytes" if len(set(digests.values())) == 1 else "NOT the same bytes"
    said = (
        f"All write {same}. With one process {share:.1f}% of the time is spent around the model; the goal is under"
        f" {OVERHEAD}%: {'met' if share < OVERHEAD else 'missed'}."
        f" It does {count / first['worked']:,.0f} rows a CPU second."
    )
    return f"{table(['', 'seconds', 'rows a second', 'times one'], rows)}\n\n{said}", found


def main(arguments: Sequence[str] | None = None) -> None:
    parser: argparse.ArgumentParser = options(__doc__)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--scored", type=int, default=6000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.part:
        print(json.dumps(part(*chosen.part)))
        return
    many, scored = (3000, 60) if chosen.smoke else (chosen.many, chosen.scored)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        flat, all_flat = growth("flat", folder, (max(10, many // 100), many), FLAT)
        commands, all_commands = growth("classify", folder, (max(10, many // 1000), many // 10), CLASSIFY)
        compared, all_compared = engines(folder, scored)
    print(f"## Memory of a batch\n\n{flat}\n")
    print(f"## Memory of setscore classify --file\n\n{commands}\n")
    print(f"## {scored:,} short rows over {len(LABELS)} labels, {MODEL}\n\n{compared}")
    write_json(chosen.json, {"flat": all_flat, "classify": all_commands, "engines": all_compared})


if __name__ == "__main__":
    main()
