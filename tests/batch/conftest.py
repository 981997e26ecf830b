import pytest
from batches import rows, write_csv


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "in.csv", rows(300))
