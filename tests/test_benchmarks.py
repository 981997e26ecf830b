"""The GPU benchmark runs, on tiny shapes, and its shapes are those of the public checkpoints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from setscore.backbones.specs import FAMILY_SPECS, SPECS

pytest.importorskip("torch")
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
WAYS = ("naive", "exact", "shared")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The whole run on tiny shapes: the page, its numbers, and what went to standard error."""
    folder = tmp_path_factory.mktemp("gpu")
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "gpu.py", "--smoke", "--json", folder / "n.json", "--out", folder / "gpu.md"],
        capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return (folder / "gpu.md").read_text(), json.loads((folder / "n.json").read_text())


def tables(page):
    """Each table as a list of rows, the header first."""
    found = []
    for part in page.split("\n\n"):
        lines = part.strip().splitlines()
        if lines and all(line.startswith("| ") for line in lines):
            found.append([[cell.strip() for cell in line.strip("|").split("|")] for line in lines])
    return found


def test_the_page_is_written_whole(smoke):
    page, _ = smoke
    assert page.startswith(
        "# Speed on a GPU\n\nThe whole page was written by `python benchmarks/gpu.py --smoke --out docs/gpu.md`:"
    )
    assert "/tmp" not in page
    assert page.endswith(".\n")
    assert "\nCPU, torch " in page
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Right before fast", "## Three ways", "## Documents of mixed lengths", "## fp8", "## What it says"
    ]  # fmt: skip
    assert max(map(len, page.split("## What it says")[0].splitlines())) <= 250  # nothing ran together


def test_every_shape_is_in_one_table_in_all_three_ways(smoke):
    page, numbers = smoke
    (ways,) = [table for table in tables(page) if "times naive" in table[0]]
    assert ways[0][-4:] == ["goal", "memory GB", "over weights GB", "goal"]
    shapes = ("LLaDA-8B", "Dream-7B", "LLaDA2-mini")
    cells = [[shape, cell, way] for shape in shapes for cell in ("12, 3", "24, 2") for way in WAYS]
    assert [row[:3] for row in ways[2:]] == cells
    for row, measured in zip(ways[2:], numbers["ways"], strict=True):
        goal = {"exact": 0.75, "shared": 0.70}.get(row[2])
        assert row[7] == ("" if goal is None else "met" if measured["peak"] >= goal else "missed")
        assert float(row[3]) == pytest.approx(measured["rate"], abs=0.006)
    assert all(row[4] == "1.0" for row in ways[2:] if row[2] == "naive")


def test_the_rest_of_the_page_has_the_numbers_of_the_run(smoke):
    page, numbers = smoke
    assert len(numbers["checks"]) == 6
    assert all(check["kernels"] == check["plain"] < 0.5 for check in numbers["checks"])  # the CPU has one kernel only
    speedup = numbers["fp8"]["rates"]["fp8"] / numbers["fp8"]["rates"]["bf16"]
    assert f"- fp8 needs 0.0 GB and is {speedup:.2f} times as fast." in page
    assert f"they would waste {100 * numbers['mixed']['padded']:.0f}%." in page


def test_a_part_that_was_not_measured_is_left_out(smoke, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from gpu_page import Mixed, Page, Where

    where, mixed = Where(**smoke[1]["where"]), Mixed(**smoke[1]["mixed"])
    page = Page(where, checks=[], ways=[], mixed=mixed, fp8=None).markdown()
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["## Documents of mixed lengths", "## What it says"]
    assert "## " not in Page(where, checks=[], ways=[], mixed=None, fp8=None).markdown()


def test_all_ways_give_the_same_scores(monkeypatch):
    """What is timed is the same work: the usual way in fp32 against exact attention."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import full_size
    import torch
    import ways

    torch.set_num_threads(1)
    for name, block in (("llada-8b", 0), ("dream-7b", 0), ("llada2-mini", 32)):
        model = full_size.random_model(full_size.architecture(name, small=True), device="cpu", dtype=torch.float32)
        for parameter in model.parameters():
            parameter.mul_(10 if parameter.ndim > 1 else 1)
        asked = ways.documents([12, 70, 7], 4, 500)
        usual = ways.naive(model, asked, block=block)
        exact = ways.ours(model, asked, 10_000, shared=False, block=block)
        assert sorted(usual.values) == pytest.approx(sorted(exact.values), abs=1e-4), name
        assert usual.flops > exact.flops
        assert usual.tokens > exact.tokens  # padding


def test_the_shapes_have_as_many_parameters_as_the_specs_say(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import full_size

    names = {"llada-8b": "llada", "illada-8b": "illada", "dream-7b": "dream", "llada2-mini": "llada2",
             "llada-moe": "llada-moe"}  # fmt: skip
    for shape, family in names.items():
        assert full_size.architecture(shape).parameters() == FAMILY_SPECS[family].parameters, shape
    assert SPECS["llada-8b-base"].parameters == 16_031_162_368 // 2  # total_size of the checkpoint's index, in bf16
