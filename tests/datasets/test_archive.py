"""AAPD from its ZIP file, over HTTP from a server of the test's own."""

import functools
import http.server
import io
import threading
import zipfile
from dataclasses import replace

import pytest

from setscore.datasets import DATASETS, files, load_dataset
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


def packed(*names, blanks=0):
    codes = list(descriptions("aapd"))
    rows = [",".join(["abstract", *codes]), ",".join(["A proof."] + ["1"] + ["0"] * (len(codes) - 1))]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, "\n".join(rows) + "\n" + " " * blanks)
    return content.getvalue(), codes[0]


def encrypted(content):
    """The same with the bit set that says so, in the entries and in the directory."""
    data = bytearray(content)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(mark)
        while place >= 0:
            data[place + flags] |= 1
            place = data.find(mark, place + 1)
    return bytes(data)


def with_method(content, method):
    """The same with another method of compression."""
    data = bytearray(content)
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data[data.find(mark) + place] = method
    return bytes(data)


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
        (encrypted(packed(*FILES)[0]), r"AAPD\.zip needs a password for train\.csv, dev\.csv, test\.csv\. Get "),
        (with_method(packed(*FILES)[0], 99), "cannot be fetched: That compression method is not supported"),
        (
            packed(*FILES, blanks=3 * 2**20)[0],
            r"train\.csv of .*AAPD\.zip is larger than 2 MiB, the limit\.",
        ),
        (bytes(2**21 + 1), r"AAPD\.zip is larger than 2 MiB, the limit\. Get "),
    ],
    ids=["missing", "broken", "partial", "encrypted", "method", "bomb", "large"],
)
def test_what_went_wrong_and_what_to_do_is_told_and_nothing_half_is_kept(
    served, tmp_path, monkeypatch, content, message
):
    monkeypatch.setattr(files, "UNPACKED", 2 * 2**20)
    if content is not None:
        (served / "AAPD.zip").write_bytes(content)
    with pytest.raises(
        DataFileError, match=message + r".* Put the files into DATA/aapd/ and pass data_dir=DATA \(--data-dir DATA"
    ):
        load_dataset("aapd", "test")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
