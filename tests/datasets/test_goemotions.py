import pytest

from setscore.datasets import load_dataset
from setscore.errors import DataFileError, LabelError

TSV = "I love it!\t18\tabc\nThanks, I guess?\t15,7\tdef\nIt is a table.\t27\tghi\n"


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
@pytest.mark.parametrize(("split", "file"), [("train", "train.tsv"), ("validation", "dev.tsv"), ("test", "test.tsv")])
def test_official_files_are_read(put, tmp_path, ending, split, file):
    put(f"goemotions/{file}", TSV, ending)
    dataset = load_dataset("goemotions", split, tmp_path)
    assert dataset.ids == ("abc", "def", "ghi")
    assert dataset.texts[1] == "Thanks, I guess?"
    assert gold(dataset) == [{"love"}, {"gratitude", "curiosity"}, {"neutral"}]
    assert (dataset.name, dataset.split, len(dataset.labels)) == ("goemotions", split, 28)
    assert (dataset.labels.names[0], dataset.labels.names[-1]) == ("admiration", "neutral")
    assert dataset.cardinality == 4 / 3
    assert dataset.notes == ()


@pytest.mark.parametrize("file", ["labels.txt", "emotions.txt"])
def test_the_list_of_labels_in_the_folder_counts(put, tmp_path, file):
    put(f"goemotions/{file}", "joy\nanger\nhunger")
    put("goemotions/dev.tsv", "Fine.\t0,2\tabc\n")
    dataset = load_dataset("goemotions", "validation", tmp_path)
    assert gold(dataset) == [{"joy", "hunger"}]
    assert [label.description for label in dataset.labels.labels] == ["joy or happiness", "anger or rage", None]


def test_parquet_files_of_the_hub_are_read(put_parquet, tmp_path):
    columns = {"text": ["I love it!", "Hm."], "labels": [[18, 0], [27]], "id": ["abc", "def"]}
    put_parquet("goemotions/test-00000-of-00001.parquet", columns)
    dataset = load_dataset("goemotions", "test", tmp_path)
    assert dataset.ids == ("abc", "def")
    assert gold(dataset) == [{"love", "admiration"}, {"neutral"}]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", DataFileError, r"dev.tsv holds no documents. It is empty or broken; fetch it again."),
        (
            "Fine.\t1\tabc\nCut off\t2",
            DataFileError,
            "line 2 of .*dev.tsv has 2 cells, not the 3 of text, labels and id",
        ),
        ("Fine.\tjoy\tabc\n", DataFileError, "line 1 of .* has the labels 'joy'; they are numbers"),
        ("Fine.\t\tabc\n", DataFileError, "line 1 of .* has the labels ''"),
        ("Fine.\t1,28\ta\nFine.\t28\tb\n", LabelError, r"dev.tsv: 2 gold labels are not .* 'number 28' \(2 times\)"),
    ],
)
def test_broken_files_say_where(put, tmp_path, content, error, message):
    put("goemotions/dev.tsv", content)
    with pytest.raises(error, match=message):
        load_dataset("goemotions", "validation", tmp_path)


def test_parquet_of_another_kind_says_where(put_parquet, tmp_path):
    put_parquet("goemotions/test-00000-of-00001.parquet", {"text": ["a"], "labels": ["joy"], "id": ["b"]})
    with pytest.raises(DataFileError, match=r"row 1 of .* has str in the field 'labels': 'joy'"):
        load_dataset("goemotions", "test", tmp_path)


def gold(dataset):
    return [{dataset.labels.names[i] for i in row.nonzero()[0]} for row in dataset.gold]
