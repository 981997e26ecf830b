"""Our own board: its numbers are those that were committed, and what was committed still fits the package."""

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("pyarrow")

from made_up import write_goemotions

from benchmarks.pages import board
from setscore.experiments.runs.config import load_config


@pytest.mark.parametrize("path", sorted(board.CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_config_is_whole(path):
    config = load_config(path).resolved()
    assert config.method.backbone.removeprefix("setscore-") == path.stem.rpartition("-")[2]
    assert config.dataset.slices == "development"


def test_nothing_is_stale():
    assert board.results()
    assert board.stale() == []


def test_a_changed_result_is_seen(monkeypatch):
    found = board.results()
    monkeypatch.setattr(board, "results", lambda: [{**found[0], "key": "another"}, *found[1:]])
    assert any("the config, or a default of this package, has changed" in text for text in board.stale())
    monkeypatch.setattr(board, "results", lambda: [{**found[0], "identity": "another"}, *found[1:]])
    assert any("has other weights now" in text for text in board.stale())
    monkeypatch.setattr(board, "results", lambda: found[1:])
    missing = f"{found[0]['config']}: there is no result."
    assert board.stale() == [missing, "board.md was not made from these results."]


def test_results_are_remade_from_runs(tmp_path, monkeypatch):
    """The own set, from config to page, by the page's command; its numbers are the committed ones."""
    before = {one["config"]: one for one in board.results()}
    monkeypatch.setattr(board, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(board, "PAGE", tmp_path / "board.md")
    command = ["--only", "everyday-mini", "--out", str(tmp_path / "board")]
    board.main(command)
    (made,) = board.results()
    assert made["mean"]["micro_f1"] == pytest.approx(before["everyday-mini"]["mean"]["micro_f1"], abs=0.03)
    assert {key: made[key] for key in ("key", "identity")} == {
        key: before["everyday-mini"][key] for key in ("key", "identity")
    }
    assert "25 + 25" in board.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(board, "make_run", None)  # fails whoever runs what has a fresh result
    board.main(command)
    assert board.results() == [made]


def test_a_dataset_has_a_limit_and_the_table_says_it(tmp_path, monkeypatch):
    write_goemotions(tmp_path / "data", 40)
    monkeypatch.setattr(board, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(board, "PAGE", tmp_path / "board.md")
    place = ["--data-dir", str(tmp_path / "data"), "--only", "goemotions-mini", "--out", str(tmp_path / "board")]
    board.main([*place, "--limit", "12"])
    (made,) = board.results()
    assert (made["limit"], made["label_text"], made["documents"]["13"]) == (12, "description", [6, 6])
    page = board.PAGE.read_text(encoding="utf-8")
    assert "board.py --data-dir DATA --limit 12\n" in page
    assert "| goemotions | setscore-mini | setscore | description | learned | 6 + 6 |" in page
    board.main([*place, "--limit", "16"])  # another limit is another result
    assert [one["limit"] for one in board.results()] == [16]
