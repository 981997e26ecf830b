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


def test_the_smoke_run_prints_every_table(tmp_path):
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "gpu.py", "--smoke", "--json", tmp_path / "numbers.json"],
        capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for way in ("naive", "exact", "shared", "fp8", "dream-7b", "llada2-mini", "as in Reuters"):
        assert f"| {way} |" in done.stdout
    assert "would waste" in done.stdout
    numbers = json.loads((tmp_path / "numbers.json").read_text())["results"]
    assert numbers["fp8"]["speedup"] > 0
    checks = [value for name, value in numbers.items() if name.startswith("check ")]
    assert len(checks) == 6
    assert all(check["kernels"] == check["plain"] < 0.5 for check in checks)  # there is one kernel only on the CPU


def test_all_ways_give_the_same_scores(monkeypatch):
    """What is timed is the same work: the usual way in fp32 against exact attention."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import full_size
    import torch
    import ways

    torch.set_num_threads(1)
    for name in ("llada-8b", "dream-7b"):
        model = full_size.random_model(full_size.architecture(name, small=True), device="cpu", dtype=torch.float32)
        for parameter in model.parameters():
            parameter.mul_(10 if parameter.ndim > 1 else 1)
        asked = ways.documents([12, 30, 7], 4, 500)
        usual, exact = ways.naive(model, asked), ways.ours(model, asked, 10_000, shared=False)
        assert sorted(usual.values) == pytest.approx(sorted(exact.values), abs=1e-4)
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
