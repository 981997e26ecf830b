"""Where weights come from, and which version they are."""

import hashlib
from types import SimpleNamespace

import pytest

from setscore.backbones.checkpoints import checksum, fetch, origin
from setscore.errors import BackboneError

COMMIT = "5769f04922" + "a" * 30


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A stand-in for huggingface_hub that notes which revision is asked for."""
    made = SimpleNamespace(asked=[], commits=[COMMIT, "5769f0492" + "b" * 31, "c" * 40])
    made.constants = SimpleNamespace(HF_HUB_CACHE=str(tmp_path))

    def snapshot_download(repository, *, revision, allow_patterns):
        made.asked.append(revision)
        return str(tmp_path / revision)

    made.snapshot_download = snapshot_download
    made.list_repo_commits = lambda _: [SimpleNamespace(commit_id=commit) for commit in made.commits]
    monkeypatch.setattr("setscore.backbones.checkpoints.importlib.import_module", lambda _: made)
    return made


@pytest.mark.parametrize("revision", ["main", "v1.0", "c" * 40])
def test_branches_tags_and_whole_commits_go_to_the_hub_as_they_are(hub, revision):
    hub.list_repo_commits = lambda _: pytest.fail("nothing has to be looked up")
    fetch("a/b", revision, ["*.json"])
    assert hub.asked == [revision]


def test_an_abbreviated_commit_is_looked_up(hub):
    fetch("a/b", "5769f04922", ["*.json"])
    assert hub.asked == [COMMIT]
    for short, count in (("5769f0492", 2), ("0000000", 0)):
        with pytest.raises(BackboneError, match=rf"{count} commits of a/b begin with {short}; give one in full"):
            fetch("a/b", short, ["*.json"])


def test_an_abbreviated_commit_in_the_cache_needs_no_hub(hub, tmp_path):
    (tmp_path / "models--a--b" / "snapshots" / COMMIT).mkdir(parents=True)
    hub.list_repo_commits = lambda _: pytest.fail("it is in the cache")
    fetch("a/b", "5769f04922", ["*.json"])
    assert hub.asked == [COMMIT]


def test_a_snapshot_is_named_by_its_commit(tmp_path):
    folder = tmp_path / COMMIT
    assert origin(folder, [], "a/b", "main") == f"main of a/b, commit {COMMIT}"
    assert origin(folder, [], "a/b", COMMIT) == f"{COMMIT} of a/b"


def test_a_local_folder_tells_its_commit_or_its_checksum(tmp_path):
    files = [tmp_path / name for name in ("model-2.safetensors", "model-1.safetensors")]
    for file in files:
        file.write_bytes(file.name.encode())
    one = hashlib.sha256(files[0].name.encode()).hexdigest()
    assert origin(tmp_path, files[:1], None, None) == f"local folder, 1 weight file with SHA-256 {one[:12]}..."
    assert origin(tmp_path, files, None, None) == f"local folder, 2 weight files with SHA-256 {checksum(files)[:12]}..."
    assert checksum(files) == checksum(files[::-1]) != checksum(files[:1])
    notes = tmp_path / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    (notes / "config.json.metadata").write_text(f"{COMMIT}\netag\n1.0\n")
    assert origin(tmp_path, files, None, None) == f"local folder, commit {COMMIT}"
    (notes / "model-1.safetensors.metadata").write_text(f"{'d' * 40}\netag\n1.0\n")
    assert "SHA-256" in origin(tmp_path, files, None, None)  # files of two versions have none in common
