"""The table of scorers: scored in shards, stopped and gone on with, joined into the same rows as one run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "scorer_results.py"
TEXTS = ["I love it!", "So sad.", "Why though?", "Great, thanks.", "This is awful.", "What a day."] * 2
SCORERS = ("per_label", "unary", "milp")


def run(*arguments, folder):
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments, "--datasets", "goemotions", "--scorers", *SCORERS],
        capture_output=True, text=True, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "goemotions").mkdir(parents=True)
    rows = [f"{text}\t{number % 5}\tid{number}" for number, text in enumerate(TEXTS)]
    (tmp_path / "data" / "goemotions" / "dev.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_shards_are_joined_and_a_stopped_run_goes_on(folder):
    score = ("score", "--data-dir", "data", "--limit", "12", "--jobs", "1")
    run(*score, "--save", "whole", "--shards", "1", folder=folder)
    run(*score, "--save", "parts", "--shards", "3", folder=folder)
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()}
    assert len(before) == 9
    (folder / "parts" / "goemotions.milp.001.json").unlink()
    printed = run("table", "--save", "parts", folder=folder).stdout
    assert "`milp` was not measured on goemotions." in printed  # 8 of 12 documents
    (folder / "page.md").write_text("before\n<!-- tables -->\nold\n<!-- end of tables -->\nafter\n")
    done = run(*score, "--save", "parts", "--shards", "3", "--page", "page.md", folder=folder)
    assert done.stderr.count("goemotions") == 1  # only what was missing
    page = (folder / "page.md").read_text()
    assert page.startswith("before\n<!-- tables -->")
    assert page.endswith("<!-- end of tables -->\nafter\n")
    assert "old" not in page
    whole = run("table", "--save", "whole", folder=folder).stdout

    def rows(text):  # all but the two columns of time
        return [line.split(" | ")[:-2] for line in text.splitlines() if line.startswith("| `")]

    assert rows(page) == rows(whole)
    assert [row[0] for row in rows(page)] == [f"| `{name}`" for name in SCORERS]
    content = json.loads((folder / "parts" / "goemotions.milp.002.json").read_text())
    assert content["rows"] == [2, 5, 8, 11]
    assert set(content["seeds"]) == {"13", "17", "23"}
