"""Our own board: its numbers are those that were committed, and what was committed still fits the package."""

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("pyarrow")

from commands import invoke

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
    assert board.stale() == ["board.md was not made from these results."]


def test_results_are_remade_from_runs(tmp_path, monkeypatch):
    """The own set, from config to page, as the page's commands say; its numbers are the committed ones."""
    before = {one["config"]: one for one in board.results()}
    code, _, told = invoke("run", board.CONFIGS / "everyday-mini.toml", "--out", tmp_path / "board")
    assert code == 0, told
    monkeypatch.setattr(board, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(board, "PAGE", tmp_path / "board.md")
    board.main([str(tmp_path / "board")])
    (made,) = board.results()
    assert made["mean"]["micro_f1"] == pytest.approx(before["everyday-mini"]["mean"]["micro_f1"], abs=0.03)
    assert {key: made[key] for key in ("key", "identity")} == {
        key: before["everyday-mini"][key] for key in ("key", "identity")
    }
