"""A small dataset in an official format, and a backbone that counts what it is asked."""

import pytest
from fakes import FakeBackbone
from made_up import write_goemotions

from setscore import SetScoreClassifier
from setscore.datasets import load_dataset
from setscore.experiments import prepare, report

SEEDS = (13, 17)


@pytest.fixture
def data(tmp_path):
    return write_goemotions(tmp_path / "data")


@pytest.fixture
def dataset(data):
    return load_dataset("goemotions", "validation", data, descriptions=False)


@pytest.fixture
def backbone():
    return FakeBackbone()


@pytest.fixture
def classifier(backbone):
    return SetScoreClassifier(backbone=backbone)


@pytest.fixture
def ready(data):
    return prepare("goemotions", "development", SEEDS, data_dir=data)


@pytest.fixture
def scored(ready, classifier):
    return report.score_parts(ready, classifier)
