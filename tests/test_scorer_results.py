"""The table of scorers: scored in shards, stopped and gone on with, joined into the same rows as one run."""

import json

import pytest
from made_up import write_goemotions

from benchmarks.pages import scorer_results
from benchmarks.pages.scorer_shards import workers

SCORERS = ("per_label", "unary", "milp")


@pytest.fixture
def folder(tmp_path):
    write_goemotions(tmp_path / "data", documents=12)
    return tmp_path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """Runs in this process; what was printed, and what was told beside it."""
    monkeypatch.chdir(folder)

    def once(*arguments):
        capsys.readouterr()
        scorer_results.main([*arguments, "--datasets", "goemotions", "--scorers", *SCORERS])
        return capsys.readouterr()

    return once


def test_shards_are_joined_and_a_stopped_run_goes_on(folder, run):
    score = ("score", "--data-dir", "data", "--limit", "12", "--jobs", "1")
    run(*score, "--save", "whole", "--shards", "1")
    run(*score, "--save", "parts", "--shards", "3")
    assert len(list((folder / "parts").iterdir())) == 9
    (folder / "parts" / "goemotions.milp.001.json").unlink()
    printed = run("table", "--save", "parts").out
    assert "`milp` was not measured on goemotions." in printed  # 8 of 12 documents
    (folder / "page.md").write_text("before\n<!-- tables -->\nold\n<!-- end of tables -->\nafter\n")
    done = run(*score, "--save", "parts", "--shards", "3", "--page", "page.md")
    assert done.err.count("goemotions") == 1  # only what was missing
    page = (folder / "page.md").read_text()
    assert page.startswith("before\n<!-- tables -->")
    assert page.endswith("<!-- end of tables -->\nafter\n")
    assert "old" not in page
    whole = run("table", "--save", "whole").out

    def rows(text):  # all but the two columns of time
        return [line.split(" | ")[:-2] for line in text.splitlines() if line.startswith("| `")]

    assert rows(page) == rows(whole)
    assert [row[0] for row in rows(page)] == [f"| `{name}`" for name in SCORERS]
    content = json.loads((folder / "parts" / "goemotions.milp.002.json").read_text())
    assert content["rows"] == [2, 5, 8, 11]
    assert set(content["seeds"]) == {"13", "17", "23"}


def test_a_scorer_that_was_stopped_is_shown_beside_others_on_its_documents(folder, run, monkeypatch):
    monkeypatch.setattr(scorer_results, "FEWEST", 6)
    run("score", "--data-dir", "data", "--limit", "12", "--jobs", "1", "--save", "parts", "--shards", "3")
    (folder / "parts" / "goemotions.milp.001.json").unlink()
    printed = run("table", "--save", "parts").out
    assert "`milp` was stopped after 8 documents. On these:" in printed
    rows = [line.split(" | ")[0] for line in printed.split("On these:")[1].splitlines() if line.startswith("| ")]
    assert rows == ["| goemotions, 8 documents", "| `per_label`", "| `milp`", "| the label prior, no text read"]


def test_several_jobs_are_processes_and_one_is_this():
    with workers(1) as each:
        assert list(each(abs, [-1, 2])) == [1, 2]
    with workers(2) as each:
        assert sorted(each(abs, [-1, 2])) == [1, 2]
