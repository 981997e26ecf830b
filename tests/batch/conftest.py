import pytest
from batches import rows, write_csv

from setscore.backbones import BACKBONES
from setscore.backbones.host import THREADS


@pytest.fixture(scope="module", autouse=True)
def fake():
    """The backbone `fake`, for as long as these tests need it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, "fake", "fake_module")
        yield


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """Workers that a test runs in its own process set their number of threads; the tests after it have their own."""
    monkeypatch.setenv(THREADS, "")


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "in.csv", rows(300))
