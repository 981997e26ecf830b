"""A classifier in one file: what two files hold, and as careful a reader."""

import io
import zipfile

import numpy as np
import pytest
from fakes import FakeBackbone

from setscore import SetScoreClassifier
from setscore.errors import DataFileError, SetScoreError

LABELS = ["oil", "rain"]
TEXTS = [f"{word} {n}" for n in range(12) for word in ("oil", "rain", "snow")]
GOLD = [[word] if word in LABELS else [] for _ in range(12) for word in ("oil", "rain", "snow")]


@pytest.fixture(scope="module")
def fitted():
    return SetScoreClassifier(LABELS).fit(TEXTS, GOLD)


def test_one_file_holds_what_two_hold(fitted, tmp_path):
    fitted.save(tmp_path / "tickets.zip")
    fitted.save(tmp_path / "tickets.json")
    one, two = (SetScoreClassifier.load(tmp_path / name) for name in ("tickets.zip", "tickets.json"))
    np.testing.assert_array_equal(one.predict_proba(TEXTS), two.predict_proba(TEXTS))
    assert one.regime == fitted.regime
    with zipfile.ZipFile(tmp_path / "tickets.zip") as archive:
        assert {name.partition(".")[0] for name in archive.namelist()} == {"tickets"}  # unpacked, it is the two files


def packed(members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"no archive", "is damaged"),
        (packed({}), "must hold a .json file"),
        (packed({"a.json": "{}", "b.json": "{}"}), "must hold a .json file"),
        (packed({"a.json": "{}", "a.pickle": ""}), "must hold a .json file"),
        (packed({"../../a.json": "{}"}), "has the format None"),
        (packed({"a.json": " " * (300 * 2**20)}), "larger than 256 MiB"),
    ],
    ids=["no archive", "empty", "two", "other", "outside", "a bomb"],
)
def test_archives_that_are_none(tmp_path, data, told):
    (tmp_path / "c.zip").write_bytes(data)
    with pytest.raises(DataFileError, match=told) as error:
        SetScoreClassifier.load(tmp_path / "c.zip")
    assert "classifier.json" not in str(error.value)  # of the folder that it was unpacked in
    assert [file.name for file in tmp_path.iterdir()] == ["c.zip"]


def test_what_cannot_be_saved_leaves_nothing(tmp_path):
    with pytest.raises(SetScoreError, match="given by name"):
        SetScoreClassifier(LABELS, backbone=FakeBackbone()).save(tmp_path / "c.zip")
    assert not list(tmp_path.iterdir())
    with pytest.raises(DataFileError, match="cannot be read"):
        SetScoreClassifier.load(tmp_path / "nowhere.zip")
