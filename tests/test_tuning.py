"""The benchmark of tuning times runs and prints a row for every calibration that it names."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "tuning.py"


def test_a_small_run_prints_every_row():
    small = ["--documents", "40", "--labels", "3", "--rounds", "1"]
    done = subprocess.run([sys.executable, SCRIPT, *small], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("| ")]
    assert rows[1:8] == ["auto", "levelled", "platt", "shrunk", "isotonic", "temperature", "paper"]
    assert rows[8].startswith("scikit-learn")
    assert "40 documents, 3 labels" in done.stdout
