"""The counts of real development data, where a checkout has it beside it."""

from pathlib import Path

import pytest

from setscore.datasets import development_slices, load_dataset
from setscore.datasets.files import find, plain_lines

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the development data is not here")


@pytest.mark.parametrize(
    ("name", "split", "documents", "labels", "cardinality"),
    [
        ("goemotions", "train", 43410, 28, 1.18),
        ("goemotions", "validation", 5426, 28, 1.18),
        ("reuters", "train", 7024, 20, 1.15),
        ("aapd", "train", 8000, 54, 2.58),  # other abstracts stand in for the official ones
        ("aapd", "validation", 1000, 54, 2.40),
        ("jigsaw", "train", 20000, 6, 0.50),  # richer in toxic comments
        ("jigsaw", "validation", 1000, 6, 0.21),
        ("eurlex", "validation", 541, 100, 5.47),
        ("ecthr", "validation", 811, 10, 1.07),
        ("ecthr-b", "validation", 811, 10, 1.50),
    ],
)
def test_counts(name, split, documents, labels, cardinality):
    dataset = load_dataset(name, split, DATA)
    assert (len(dataset), len(dataset.labels)) == (documents, labels)
    assert dataset.cardinality == pytest.approx(cardinality, abs=0.01)
    assert all(label.description for label in dataset.labels.labels)
    assert not any("usable text" in note for note in dataset.notes)


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        *(("goemotions", 5226), ("reuters", 6824), ("aapd", 800), ("jigsaw", 800)),
        *(("eurlex", 341), ("ecthr", 611), ("ecthr-b", 611)),
    ],
)
def test_development_slices(name, rest):
    validation, development = development_slices(name, 13, DATA)
    assert (len(validation), len(development)) == (200, rest)


def test_topics_are_in_the_order_of_their_frequency():
    counts = load_dataset("reuters", "train", DATA).gold.sum(axis=0)
    assert counts.tolist() == sorted(counts.tolist(), reverse=True)


def test_the_official_training_labels_of_aapd():
    lines = plain_lines(find(DATA / "aapd", "label_train"))
    assert len(lines) == 53840
    codes = {code for line in lines for code in line.split()}
    assert codes == set(load_dataset("aapd", "validation", DATA).labels.names)
    assert len(codes) == 54
