import json

import pytest

from setscore.datasets import load_dataset
from setscore.datasets.eurlex import concepts, lexglue_labels
from setscore.errors import DataFileError, LabelError

ROWS = [
    {"id": "32025R0001", "text": "A regulation.", "labels": ["trade policy", "budget"], "descriptors": ["import"]},
    {"id": "32025R0002", "text": "A decision.", "labels": []},
]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
@pytest.mark.parametrize(("split", "file"), [("train", "train"), ("validation", "dev"), ("test", "test")])
def test_local_files_are_read_with_their_inventory(put, tmp_path, ending, split, file):
    put(f"eurlex/{file}.jsonl", lines(ROWS), ending)
    put("eurlex/labels.json", json.dumps(["budget", "trade policy", "my own"]))
    dataset = load_dataset("eurlex", split, tmp_path)
    assert dataset.ids == ("32025R0001", "32025R0002")
    assert dataset.labels.names == ("budget", "trade policy", "my own")
    assert dataset.gold.tolist() == [[True, True, False], [False, False, False]]
    assert dataset.labels.labels[2].description is None
    assert dataset.labels.texts[0] == "budgets and public expenditure"
    assert dataset.notes[0].startswith(f"{file}.jsonl{ending} is a local file")


def test_without_an_inventory_there_are_the_100_labels_of_lexglue_and_identifiers_are_understood(put, tmp_path):
    put("eurlex/test.jsonl", lines([{"text": "A regulation.", "labels": ["100191", 100253, "prices"]}]))
    dataset = load_dataset("eurlex", "test", tmp_path)
    assert dataset.labels == lexglue_labels()
    assert dataset.ids == ("test-1",)
    assert {dataset.labels.names[i] for i in dataset.gold[0].nonzero()[0]} == {
        "trade policy",
        "plant product",
        "prices",
    }


def test_identifiers_of_lexglue_have_their_names():
    assert len(concepts()) == 127
    assert len(lexglue_labels()) == 100
    assert concepts()["100163"] == "political framework"
    assert concepts()["100215"] == "health"
    assert concepts()["100289"] == "non-governmental organisations"
    # The example of LexGLUE's card, a refund on the export of rice, has the labels 4, 20, 21, 35 and 68.
    assert [lexglue_labels().names[i] for i in (4, 20, 21, 35, 68)] == [
        "cooperation policy",
        "trade policy",
        "tariff policy",
        "prices",
        "plant product",
    ]
    assert lexglue_labels().names[-1] == "United Nations"


def test_a_renamed_microthesaurus_keeps_its_description(put, tmp_path):
    put("eurlex/labels.json", '["international balance"]')
    put("eurlex/test.jsonl", lines([{"text": "A treaty.", "labels": ["international balance"]}]))
    assert load_dataset("eurlex", "test", tmp_path).labels.labels[0].description.startswith("international security")


def test_parquet_files_of_lexglue_are_read(put_parquet, tmp_path):
    put_parquet("eurlex/test-00000-of-00001.parquet", {"text": ["Rice.", "Oil."], "labels": [[68], [0, 99]]})
    dataset = load_dataset("eurlex", "test", tmp_path)
    assert dataset.ids == ("test-1", "test-2")
    assert dataset.gold.sum() == 3
    assert dataset.gold[0, 68]
    assert dataset.notes == ()


@pytest.mark.parametrize(
    ("content", "inventory", "message"),
    [
        ("", None, "test.jsonl holds no documents"),
        ('{"text": "a"}', None, "line 1 of .* has no field 'labels'"),
        ('{"text": 3, "labels": []}', None, "line 1 of .* has int in the field 'text': 3"),
        (lines(ROWS)[:-5], None, "line 2 of .* is not valid JSON"),
        (lines(ROWS), '["budget"]', r"test.jsonl: 1 gold label is not .* 'trade policy' \(1 time\)"),
        (lines(ROWS), '["budget"', "labels.json is not valid JSON"),
        (lines(ROWS), '{"budget": 1}', "labels.json must hold a list of label names"),
    ],
)
def test_broken_files_say_where(put, tmp_path, content, inventory, message):
    put("eurlex/test.jsonl", content)
    if inventory is not None:
        put("eurlex/labels.json", inventory)
    with pytest.raises((DataFileError, LabelError), match=message):
        load_dataset("eurlex", "test", tmp_path)
