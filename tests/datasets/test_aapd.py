import json
import re

import pytest

from setscore.datasets import load_dataset
from setscore.datasets.source import descriptions
from setscore.errors import DataFileError, LabelError


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
@pytest.mark.parametrize(("split", "part"), [("train", "train"), ("validation", "val"), ("test", "test")])
def test_official_pairs_are_read(put, tmp_path, ending, split, part):
    put(f"aapd/text_{part}", "an abstract\nanother one\n", ending)
    put(f"aapd/label_{part}", "cs.IT math.IT\nquant-ph", ending)
    dataset = load_dataset("aapd", split, tmp_path)
    assert dataset.ids == (f"{part}-1", f"{part}-2")
    assert dataset.texts == ("an abstract", "another one")
    names = [{dataset.labels.names[i] for i in row.nonzero()[0]} for row in dataset.gold]
    assert names == [{"cs.IT", "math.IT"}, {"quant-ph"}]
    assert len(dataset.labels) == 54


def test_other_abstracts_stand_in_for_the_training_texts_and_say_so(put, tmp_path):
    rows = [{"id": "0001.00001", "title": "T", "text": "an abstract", "labels": ["cs.DL"]}]
    put("aapd/arxiv_train_substitute.jsonl", "".join(json.dumps(row) + "\n" for row in rows), ".xz")
    put("aapd/label_train", "cs.IT math.IT\n")
    dataset = load_dataset("aapd", "train", tmp_path)
    assert dataset.ids == ("0001.00001",)
    assert dataset.notes == (
        "arxiv_train_substitute.jsonl stands in for text_train: other abstracts with the same codes.",
    )
    put("aapd/text_train", "the official abstract\n")
    assert load_dataset("aapd", "train", tmp_path).texts == ("the official abstract",)


CODES = list(descriptions("aapd"))


def table(*rows: dict[str, str], codes=CODES) -> str:
    lines = [[row.get(code, "0") for code in codes] for row in rows]
    body = "".join(f'"An abstract, number {number}",{",".join(cells)}\n' for number, cells in enumerate(lines, start=1))
    return f"abstract,{','.join(codes)}\n{body}"


@pytest.mark.parametrize("codes", [CODES, [code.lower() for code in CODES]])
def test_a_table_of_zeros_and_ones_is_read(put, tmp_path, codes):
    put("aapd/dev.csv", table({codes[3]: "1", codes[0]: "1"}, {codes[53]: "1"}, codes=codes), ".xz")
    dataset = load_dataset("aapd", "validation", tmp_path)
    assert (dataset.ids, dataset.texts[0]) == (("val-1", "val-2"), "An abstract, number 1")
    assert [row.nonzero()[0].tolist() for row in dataset.gold] == [[0, 3], [53]]
    put("aapd/text_val", "the official abstract\n")
    put("aapd/label_val", "cs.IT\n")
    assert load_dataset("aapd", "validation", tmp_path).texts == ("the official abstract",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (table({CODES[1]: "yes"}), rf"line 2 of .*test.csv has {re.escape(CODES[1])}='yes'; a code is 0 or 1."),
        (table({}, codes=CODES[1:]), rf"must have abstract and the 54 codes as columns; not so \['{CODES[0]}'\]"),
        (table({}, codes=[*CODES, "cs.XX"]), r"not so \['cs.XX'\]"),
        ("text\na\n", r"test.csv has no column abstract; its first line has \['text'\]"),
    ],
)
def test_a_broken_table_says_where(put, tmp_path, content, message):
    put("aapd/test.csv", content)
    with pytest.raises(DataFileError, match=message):
        load_dataset("aapd", "test", tmp_path)


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        (("a\nb\n", "cs.IT\n"), DataFileError, "has 2 lines, .*label_test 1; .* After line 1 one of them is cut off"),
        (("a\nb\n", "\ncs.IT\n"), DataFileError, "line 1 of .*label_test has no code"),
        (("", ""), DataFileError, "text_test holds no documents"),
        (
            ("a\nb\n", "cs.XX cs.IT\ncs.XX\n"),
            LabelError,
            r"text_test: 2 gold labels are not .* 'cs.XX' \(2 times, did you mean .*\)",
        ),
    ],
)
def test_broken_files_say_where(put, tmp_path, pair, error, message):
    for name, content in zip(("text_test", "label_test"), pair, strict=True):
        put(f"aapd/{name}", content)
    with pytest.raises(error, match=message):
        load_dataset("aapd", "test", tmp_path)


def test_half_a_pair_says_which_file_is_missing(put, tmp_path):
    put("aapd/text_test", "a\n")
    with pytest.raises(DataFileError, match=r"aapd test: label_test .* was looked for in .* but it holds text_test"):
        load_dataset("aapd", "test", tmp_path)
