import json

import pytest

from setscore.datasets import load_dataset
from setscore.errors import DataFileError, LabelError

ROWS = [
    {"id": "001-1", "text": "The applicant was held.", "violated": ["5"], "alleged": ["5", "P1-1"]},
    {"id": "001-2", "text": ["1. A house.", "2. It was taken."], "violated": [], "alleged": ["6"]},
]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def gold(dataset):
    return [{dataset.labels.names[i] for i in row.nonzero()[0]} for row in dataset.gold]


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
@pytest.mark.parametrize(("split", "file"), [("train", "train"), ("validation", "dev"), ("test", "test")])
def test_task_a_reads_violated_task_b_alleged_articles(put, tmp_path, ending, split, file):
    put(f"ecthr/{file}.jsonl", lines(ROWS), ending)
    a, b = load_dataset("ecthr", split, tmp_path), load_dataset("ecthr-b", split, tmp_path)
    assert (a.name, b.name) == ("ecthr", "ecthr-b")
    assert gold(a) == [{"5"}, set()]
    assert gold(b) == [{"5", "P1-1"}, {"6"}]
    assert a.ids == b.ids == ("001-1", "001-2")
    assert a.texts[1] == "1. A house.\n2. It was taken."
    assert a.labels.names == ("2", "3", "5", "6", "8", "9", "10", "11", "14", "P1-1")


def test_parquet_files_of_lexglue_are_read_from_the_folder_of_the_task(put_parquet, tmp_path):
    text = [["1. A house.", "2. It was taken."], ["1. Nothing."]]
    put_parquet("ecthr/ecthr_a/test-00000-of-00001.parquet", {"text": text, "labels": [[9], []]})
    put_parquet("ecthr/ecthr_b/test-00000-of-00001.parquet", {"text": text, "labels": [[9, 0], [3]]})
    a, b = load_dataset("ecthr", "test", tmp_path), load_dataset("ecthr-b", "test", tmp_path)
    assert gold(a) == [{"P1-1"}, set()]
    assert gold(b) == [{"P1-1", "2"}, {"6"}]
    assert a.texts[0] == "1. A house.\n2. It was taken."
    assert a.ids == ("test-1", "test-2")


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([], DataFileError, "holds no documents"),
        (
            [ROWS[0] | {"violated": ["13", "13", "34"]}],
            LabelError,
            r"3 gold labels are not .*'13' \(2 times, did you mean '3'\?\), '34'",
        ),
        ([{"text": "a"}], DataFileError, r"line 1 of .* has no field 'violated'; it has \['text'\]"),
        ([ROWS[0] | {"violated": "5"}], DataFileError, "line 1 of .* has str in the field 'violated'"),
        ([ROWS[0] | {"text": None}], DataFileError, "line 1 of .* has NoneType in the field 'text'"),
    ],
)
def test_broken_files_say_where(put, tmp_path, rows, error, message):
    put("ecthr/test.jsonl", lines(rows))
    with pytest.raises(error, match=message):
        load_dataset("ecthr", "test", tmp_path)
