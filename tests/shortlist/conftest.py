import pytest
from fakes import FakeBackbone


@pytest.fixture
def backbone():
    return FakeBackbone()
