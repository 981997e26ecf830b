"""The table of scorers: scored in shards, stopped and continued, joined into the same rows as one run."""

import json
import sys
from types import ModuleType

import numpy as np
import pytest
from made_up import write_goemotions

from benchmarks.pages import scorer_results, scorer_shards
from benchmarks.pages.scorer_shards import KIND, full_precision, learned, recipe, workers
from setscore import SetScoreClassifier
from setscore.experiments import prepare, trials
from setscore.experiments.evaluation import changed, score_dataset
from setscore.store import MemoryStore

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


def test_a_scorer_learns_in_a_shard_what_it_learns_in_fit(folder):
    """The shards learn from saved scores, `fit` asks anew."""
    pool = prepare("goemotions", "development", (13,), data_dir=folder / "data").parts["pool"]
    plain = SetScoreClassifier(pool.labels, long_documents="truncate", calibration=KIND)
    (start,) = trials({"pool": score_dataset(pool, plain)}, [13])
    validation = pool.take([pool.ids.index(name) for name in start.validation.ids])
    for scorer in ("milp", "jsr"):
        fitted = changed(plain, scorer=scorer).fit(validation.texts, validation.gold)
        made = learned(changed(plain, scorer=scorer), start)
        assert made.fitted_.learned == fitted.fitted_.learned != {}
        np.testing.assert_array_equal(made.decision_function(pool.texts), fitted.decision_function(pool.texts))


def test_each_shard_has_a_memory_of_its_own_that_its_seeds_share(folder, run, monkeypatch):
    """A memory of other shards, or on disk, would spoil the times."""
    made, asked = [], []

    class Watched(MemoryStore):
        def __init__(self):
            super().__init__()
            made.append(self)

        def put(self, answers):
            asked.append(len(answers))
            super().put(answers)

    monkeypatch.setattr(scorer_shards, "MemoryStore", Watched)
    run("score", "--data-dir", "data", "--limit", "12", "--jobs", "1", "--save", "parts", "--shards", "2")
    assert len(made) == 2  # milp is the one scorer that learns
    assert asked == [18, 18]  # six documents and three labels, once for three seeds


def test_weights_without_the_recipe_are_an_error_before_anything_is_scored(folder, run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "recipes.floats", None)
    with pytest.raises(SystemExit):
        run("score", "--data-dir", "data", "--save", "parts", "--jobs", "1", "--weights", "w.safetensors")
    told = capsys.readouterr().err.partition("error: ")[2]
    assert told == (
        "--weights needs the package recipes of the repository, and there is no recipes.floats. Run this from a"
        " checkout with recipes/floats.py, or leave --weights out.\n"
    )
    assert not (folder / "parts").exists()


def test_what_the_recipe_itself_lacks_is_not_called_a_missing_recipe(monkeypatch, tmp_path):
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "__init__.py").touch()
    (tmp_path / "recipes" / "floats.py").write_text("import a_library_that_is_not_there\n")
    forget_recipes(monkeypatch)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'a_library_that_is_not_there'"):
        recipe()


def test_weights_are_read_by_the_recipe(monkeypatch, tmp_path):
    torch = pytest.importorskip("torch")
    forget_recipes(monkeypatch)
    module = ModuleType("recipes.floats")
    module.FloatBackbone = lambda weights, spec: (weights.name, spec.name)
    monkeypatch.setitem(sys.modules, "recipes.floats", module)
    monkeypatch.setitem(sys.modules, "recipes", ModuleType("recipes"))
    threads = torch.get_num_threads()
    assert full_precision(tmp_path / "w.safetensors") == ("w.safetensors", "setscore-mini")
    torch.set_num_threads(threads)


def forget_recipes(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "recipes"]:
        monkeypatch.delitem(sys.modules, name)
