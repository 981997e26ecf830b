import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setscore import LabelSet
from setscore.datasets import Dataset
from setscore.datasets.dataset import Entry, assemble
from setscore.errors import DataFileError, DocumentError, LabelError, SetScoreError


def made(n: int, labels: int = 3, **changes: object) -> Dataset:
    gold = (np.arange(n * labels).reshape(n, labels) % 4) == 0
    values = {
        "name": "made",
        "split": "test",
        "texts": tuple(f"text {row}" for row in range(n)),
        "ids": tuple(f"id{row}" for row in range(n)),
        "labels": LabelSet.of([f"label{i}" for i in range(labels)]),
        "gold": gold,
    }
    return Dataset(**(values | changes))


@given(st.integers(0, 60), st.data(), st.integers(0, 2**40))
def test_a_draw_is_disjoint_covers_everything_keeps_the_order_and_repeats(n, data, seed):
    dataset = made(n)
    size = data.draw(st.integers(0, n))
    drawn, rest = dataset.draw(size, seed)
    assert (len(drawn), len(rest)) == (size, n - size)
    assert set(drawn.ids) | set(rest.ids) == set(dataset.ids)
    for part in (drawn, rest):
        rows = [dataset.ids.index(name) for name in part.ids]
        assert rows == sorted(rows)
        assert part.texts == tuple(dataset.texts[row] for row in rows)
        assert (part.gold == dataset.gold[rows]).all()
    again, _ = made(n).draw(size, seed)
    assert (again.ids, again.fingerprint) == (drawn.ids, drawn.fingerprint)


def test_a_draw_stays_the_same_from_version_to_version():
    drawn, rest = made(30).draw(5, 13)
    assert drawn.ids == ("id2", "id22", "id23", "id24", "id26")
    assert drawn.notes == ("5 of 30 documents, drawn with seed 13.",)
    assert rest.notes == ("The rest after 5 of 30 documents, drawn with seed 13.",)
    assert drawn.ids != made(30).draw(5, 17)[0].ids


def test_take_and_head_keep_rows_together():
    dataset = made(5)
    taken = dataset.take([3, 1])
    assert taken.ids == ("id3", "id1")
    assert taken.documents[0].text == "text 3"
    assert (taken.gold == dataset.gold[[3, 1]]).all()
    assert dataset.head(2).ids == ("id0", "id1")
    assert len(dataset.head(0)) == 0
    assert dataset.head(0).cardinality == 0


def test_cardinality_counts_gold_labels_per_document():
    assert made(2, gold=np.array([[1, 1, 0], [0, 0, 1]], dtype=bool)).cardinality == 1.5


def test_gold_is_read_only_and_not_the_callers_array():
    gold = np.zeros((2, 3), dtype=bool)
    dataset = made(2, gold=gold)
    gold[:] = True
    assert not dataset.gold.any()
    with pytest.raises(ValueError, match="read-only"):
        dataset.gold[0, 0] = True


def test_the_fingerprint_depends_on_everything_that_matters_and_on_nothing_else():
    dataset = made(3)
    others = [
        made(3, ids=("a", "b", "c")),
        made(3, texts=("a", "b", "c")),
        made(3, gold=~dataset.gold),
        dataset.with_labels(dict.fromkeys(dataset.labels.names, "described")),
        dataset.take([0, 2, 1]),
    ]
    assert len({dataset.fingerprint, *(other.fingerprint for other in others)}) == 6
    assert dataset.noting("a note").fingerprint == dataset.fingerprint
    assert made(3, name="other", split="train").fingerprint == dataset.fingerprint
    assert len(dataset.fingerprint) == 64
    assert set(dataset.fingerprint) <= set("0123456789abcdef")


def test_other_descriptions_need_the_same_names():
    dataset = made(2)
    assert dataset.with_labels(["label0", "label1", "label2"]).labels.labels[0].description is None
    with pytest.raises(LabelError, match="must have the same names"):
        dataset.with_labels(["label1", "label0", "other"])


def test_gold_labels_follow_their_names_into_another_order():
    dataset = made(4)
    turned = dataset.with_labels(["label2", "label0", "label1"])
    assert turned.labels.names == ("label2", "label0", "label1")
    assert turned.labels.sets(turned.gold) == dataset.labels.sets(dataset.gold)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ids": ("a",)}, SetScoreError, "made test has 2 texts, but 1 id."),
        ({"ids": ("a", "a")}, SetScoreError, "1 id of made test appears more than once, the first is 'a'."),
        ({"ids": ("a", " ")}, SetScoreError, "the id of document 1 of made test is empty or blank."),
        ({"texts": ("a", "")}, DocumentError, "document 1: is empty or blank"),
        ({"gold": np.zeros((2, 4), dtype=bool)}, LabelError, r"the shape \(2, 4\); there are 2 documents and 3 labels"),
        ({"gold": np.zeros((2, 3))}, LabelError, "a matrix of bool, got float64"),
    ],
)
def test_a_dataset_checks_itself(changes, error, message):
    with pytest.raises(error, match=message):
        made(2, **changes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.head(3), "made test has 2 documents; 3 of them were asked for."),
        (lambda d: d.head(-1), "2 documents; -1 of them"),
        (lambda d: d.draw(3, 13), "2 documents; 3 of them"),
        (lambda d: d.draw(1, -1), "a seed is a whole number from 0, got -1."),
        (lambda d: d.draw(1, "13"), "got '13'"),
        (lambda d: d.draw(True, 13), "True of them"),
        (lambda d: d.take([0, 2]), "has the rows 0 to 1; row 2 was asked for."),
        (lambda d: d.take([-1]), "row -1 was asked for"),
    ],
)
def test_what_is_not_there_cannot_be_taken(call, message):
    with pytest.raises(SetScoreError, match=message):
        call(made(2))


def test_documents_without_text_are_left_out_and_counted():
    entries = [Entry("a", "text", ("x",)), Entry("b", " \n", ("y",)), Entry("c", "", ())]
    dataset = assemble("made", "test", entries, LabelSet.of(["x", "y"]), origin="there", notes=["before"])
    assert dataset.ids == ("a",)
    assert dataset.notes == ("before", "2 of 3 documents have no usable text and were left out: b, c.")


def test_labels_outside_the_inventory_are_counted():
    entries = [Entry("a", "text", ("x", "z")), Entry("b", "text", ("z", "w"))]
    with pytest.raises(LabelError, match=r"^there: 3 gold labels are not .*'z' \(2 times\), 'w' \(1 time\)"):
        assemble("made", "test", entries, LabelSet.of(["x"]), origin="there")
    with pytest.raises(DataFileError, match="there holds no documents"):
        assemble("made", "test", [], LabelSet.of(["x"]), origin="there")
