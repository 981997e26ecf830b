import numpy as np
import pytest

from setscore.datasets import load_dataset
from setscore.datasets.jigsaw import split_rows
from setscore.errors import DataFileError

HEAD = "id,comment_text,toxic,severe_toxic,obscene,threat,insult,identity_hate\n"


def rows(n: int) -> str:
    return HEAD + "".join(f'id{i},"A ""comment"",\nnumber {i}",{i % 2},0,0,0,{i % 3 // 2},0\n' for i in range(n))


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
def test_the_labelled_rows_are_split_80_10_10_with_a_published_seed(put, tmp_path, ending):
    put("jigsaw/train.csv", rows(25), ending)
    parts = {split: load_dataset("jigsaw", split, tmp_path) for split in ("train", "validation", "test")}
    assert {split: len(part) for split, part in parts.items()} == {"train": 20, "validation": 2, "test": 3}
    ids = [name for part in parts.values() for name in part.ids]
    assert sorted(ids) == sorted(f"id{i}" for i in range(25))
    assert parts["test"].ids == ("id9", "id19", "id24")
    assert parts["test"].texts[0] == 'A "comment",\nnumber 9'
    assert parts["test"].gold.tolist()[0] == [True, False, False, False, False, False]
    assert parts["test"].notes == ("3 of the 25 rows of train.csv: own 80/10/10 split with seed 13.",)


def test_the_split_of_the_whole_challenge_has_the_sizes_of_the_card():
    parts = split_rows(159571)
    assert {split: len(rows) for split, rows in parts.items()} == {"train": 127656, "validation": 15957, "test": 15958}
    assert all((np.diff(rows) > 0).all() for rows in parts.values())


def test_extracts_stand_in_for_train_and_validation_and_say_so(put, tmp_path):
    put("jigsaw/natural_1000.csv", rows(4), ".xz")
    put("jigsaw/train_enriched.csv", rows(6))
    validation, train = load_dataset("jigsaw", "validation", tmp_path), load_dataset("jigsaw", "train", tmp_path)
    assert (len(validation), len(train)) == (4, 6)
    assert validation.notes[0].startswith("natural_1000.csv stands in for the validation part of train.csv")
    assert train.notes[0].startswith("train_enriched.csv stands in for the train part of train.csv")
    with pytest.raises(DataFileError, match=r"jigsaw test: train.csv .* was looked for in"):
        load_dataset("jigsaw", "test", tmp_path)
    put("jigsaw/train.csv", rows(25))
    assert len(load_dataset("jigsaw", "validation", tmp_path)) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD + "a,Text,0,0,0,0,-1,2\n", "line 2 of .* has insult='-1', identity_hate='2'; a label is 0 or 1."),
        (HEAD, "train.csv holds no documents"),
        ("id,comment_text\na,b\n", "has no column toxic, severe_toxic"),
        (rows(10)[:-30], "is broken at line|has fewer cells"),
    ],
)
def test_broken_files_say_where(put, tmp_path, content, message):
    put("jigsaw/train.csv", content)
    with pytest.raises(DataFileError, match=message):
        load_dataset("jigsaw", "train", tmp_path)


def test_blank_comments_are_left_out_and_counted(put, tmp_path):
    put("jigsaw/natural_1000.csv", HEAD + 'a,Text,1,0,0,0,0,0\nb," ",0,0,0,0,0,0\n')
    dataset = load_dataset("jigsaw", "validation", tmp_path)
    assert dataset.ids == ("a",)
    assert dataset.notes[-1] == "1 of 2 documents has no usable text and was left out: b."
