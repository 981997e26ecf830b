"""AAPD from its ZIP file, over HTTP from a server of the test's own."""

import functools
import http.server
import io
import threading
import zipfile
from dataclasses import replace

import pytest

from setscore.datasets import DATASETS, load_dataset
from setscore.datasets.source import Archive, descriptions
from setscore.errors import DataFileError

FILES = ("train.csv", "dev.csv", "test.csv")


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder behind a local address, from which AAPD is fetched into an empty cache."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    archive = Archive(f"http://127.0.0.1:{server.server_port}/AAPD.zip", FILES)
    monkeypatch.setitem(DATASETS, "aapd", replace(DATASETS["aapd"], homes=(archive,)))
    monkeypatch.setenv("SETSCORE_CACHE", str(tmp_path / "cache"))
    yield folder
    server.shutdown()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def packed(*names):
    codes = list(descriptions("aapd"))
    rows = [",".join(["abstract", *codes]), ",".join(["A proof."] + ["1"] + ["0"] * (len(codes) - 1))]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, "\n".join(rows) + "\n")
    return content.getvalue(), codes[0]


def test_it_is_fetched_once_and_then_read_from_the_cache(served, tmp_path):
    content, code = packed(*(f"AAPD/{name}" for name in FILES), "../evil.txt")
    (served / "AAPD.zip").write_bytes(content)
    dataset = load_dataset("aapd", "test")
    assert [dataset.labels.names[n] for n in dataset.gold[0].nonzero()[0]] == [code]
    (served / "AAPD.zip").unlink()
    assert load_dataset("aapd", "validation").texts == ("A proof.",)
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()) == sorted(FILES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be fetched: HTTP Error 404"),
        (b"PK but no archive", "cannot be fetched: File is not a zip file"),
        (packed("AAPD/train.csv")[0], "has no dev.csv, test.csv; it holds train.csv"),
    ],
    ids=["missing", "broken", "partial"],
)
def test_what_went_wrong_and_what_to_do_is_told_and_nothing_half_is_kept(served, tmp_path, content, message):
    if content is not None:
        (served / "AAPD.zip").write_bytes(content)
    with pytest.raises(
        DataFileError, match=message + r".* Put the files into DATA/aapd/ and pass data_dir=DATA \(--data-dir DATA"
    ):
        load_dataset("aapd", "test")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
