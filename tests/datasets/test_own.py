import json

import pytest

from setscore.datasets import load_files, read_labels
from setscore.datasets.own import has_gold
from setscore.errors import DataFileError, LabelError, SetScoreError
from setscore.records import LabelSet

ROWS = [
    {"id": "a", "text": "Crude prices fell, again.", "labels": ["oil", "trade"]},
    {"id": "", "text": "Nothing happened.", "labels": []},
]
CSV = 'id,text,labels\na,"Crude prices fell, again.",oil|trade\n,Nothing happened.,\n'


@pytest.fixture
def labels(put):
    return put("labels.yaml", "oil: crude oil\ntrade:\nsports:\n")


def check(dataset):
    assert dataset.texts == ("Crude prices fell, again.", "Nothing happened.")
    assert dataset.ids == ("a", "row 2")
    assert dataset.notes == ("1 row has no id; it is named by number, as 'row 2'.",)
    assert dataset.gold.tolist() == [[True, True, False], [False, False, False]]
    assert dataset.labels.labels[0].description == "crude oil"


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
def test_csv_and_jsonl(put, labels, ending):
    check(load_files(put("own.csv", CSV, ending), labels, separator="|"))
    check(load_files(put("own.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS), ending), labels))


def test_csv_with_semicolons(put, labels):
    check(load_files(put("own.csv", CSV.replace(",", ";").replace("fell;", "fell,")), labels, separator="|"))


def test_parquet_with_lists_and_with_texts(put_parquet, labels):
    texts = [row["text"] for row in ROWS]
    lists = {"id": ["a", None], "text": texts, "labels": [row["labels"] for row in ROWS]}
    check(load_files(put_parquet("lists.parquet", lists), labels))
    check(load_files(put_parquet("texts.parquet", lists | {"labels": ["oil, trade", ""]}), labels))


def test_tsv_json_and_excel(put, put_workbook, labels):
    check(
        load_files(
            put("own.tsv", "id\ttext\tlabels\na\tCrude prices fell, again.\toil|trade\n\tNothing happened.\t\n"), labels
        )
    )
    check(load_files(put("own.json", json.dumps(ROWS), ".gz"), labels))
    cells = [["id", "text", "labels"], ["a", ROWS[0]["text"], "oil|trade"], [None, ROWS[1]["text"], ""]]
    check(load_files(put_workbook("own.xlsx", cells), labels))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("own.tsv", "text\ttags\na\toil\n", "{} has no column labels; its first row has ['text', 'tags']. Name yours"),
        (
            "own.csv",
            "text,oil\na,1\n",
            "{} has no column labels; its first line has ['text', 'oil']. A column for each",
        ),
        ("own.tsv", "text\tlabels\na\toil\tx\n", "row 1 of {} has more cells than the header's 2; put a text that"),
        ("own.json", '{"text": "a"}', "{}: a JSON file of documents is a list, but it begins with '{{'. One object a"),
        ("own.json", "[7]", "row 1 of {} is 7, neither an object nor a text."),
        ("own.json", '["a"]', "1 row cannot be used: row 1 of {} has no field text, labels; it has none."),
    ],
)
def test_other_formats_that_are_broken(put, labels, name, content, message):
    path = put(name, content)
    with pytest.raises(DataFileError) as error:
        load_files(path, labels)
    assert str(error.value).startswith(message.format(path))


def test_other_columns_and_a_name(put, labels):
    path = put("own.csv", "number,body,topics\n7,Oil again.,oil;trade\n")
    dataset = load_files(
        path,
        labels,
        text_column="body",
        labels_column="topics",
        id_column="number",
        separator=";",
        name="mine",
        split="dev",
    )
    assert (dataset.name, dataset.split, dataset.ids) == ("mine", "dev", ("7",))
    assert dataset.cardinality == 2
    assert load_files(path, labels, text_column="body", labels_column="topics", separator=";").name == "own.csv"


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", DataFileError, "own.jsonl holds no documents"),
        (
            '{"text": "a", "labels": ["oil", "gas"]}',
            LabelError,
            r"own.jsonl: 1 gold label is not .*'gas' \(1 time\)",
        ),
        ('{"text": "a"}', DataFileError, "1 row cannot be used: line 1 of .* has no field labels"),
        ('{"text": "a", "labels": null}', DataFileError, "has the labels None, which are neither a list of names nor"),
        ('{"text": "a", "labels": [1]}', DataFileError, r"has the labels \[1\], which"),
        (
            '{"text": " ", "labels": []}\n' * 7,
            DataFileError,
            r"holds no documents\. 7 of 7 rows cannot be used and were left out: .*; and 2 more\.",
        ),
    ],
)
def test_every_row_must_be_usable(put, labels, content, error, message):
    with pytest.raises(error, match=message):
        load_files(put("own.jsonl", content), labels)


def test_repeated_ids_are_kept_apart_and_noted(put, labels):
    rows = "id,text,labels\na,One.,oil\nb,Two.,\na,Three.,trade\na,Four.,\n,Five.,\n"
    dataset = load_files(put("own.csv", rows), labels)
    assert dataset.ids == ("a", "b", "a (row 3)", "a (row 4)", "row 5")
    assert dataset.notes == (
        "1 row has no id; it is named by number, as 'row 5'.",
        "2 rows repeat an id, the first is 'a' in row 3; all rows are kept.",
    )


def test_a_number_that_stands_in_is_no_other_row_s_id(put, labels):
    rows = put("own.csv", "id,text,labels\n2,One.,oil\n,Two.,\n3,Three.,\n,Four.,\n")
    dataset = load_files(rows, labels)
    assert dataset.ids == ("2", "row 2", "3", "row 4")
    assert dataset.notes == ("2 rows have no id; they are named by number, as 'row 2'.",)
    late = put("own.jsonl", '{"text": "One.", "labels": []}\n{"text": "Two.", "labels": [], "id": 1}\n')
    assert load_files(late, labels).ids == ("1", "1 (row 2)")
    none = put("own.csv", "text,labels\nOne.,oil\nTwo.,\n")
    assert (load_files(none, labels).ids, load_files(none, labels).notes) == (("1", "2"), ())


def test_a_missing_column_says_how_to_name_it(put, labels):
    with pytest.raises(
        DataFileError, match=r"no column labels; its first line has \['text', 'tags'\]\. Name yours with --te"
    ):
        load_files(put("own.csv", "text,tags\na,oil\n"), labels)


@pytest.mark.parametrize("option", ["id_column", "group_column"])
def test_a_column_that_is_named_must_be_there(put, put_parquet, labels, option):
    with pytest.raises(
        DataFileError, match=r"own.csv has no column key; its first line has \['id', 'text', 'labels'\]"
    ):
        load_files(put("own.csv", CSV), labels, **{option: "key"})
    with pytest.raises(DataFileError, match=r"1 row cannot be used: .* has no field key; it has text, labels\."):
        load_files(put("own.jsonl", '{"text": "a", "labels": []}'), labels, **{option: "key"})
    path = put_parquet("own.parquet", {"text": ["a"], "labels": [["oil"]]})
    with pytest.raises(DataFileError, match=r"own.parquet has no column key; it has \['text', 'labels'\]"):
        load_files(path, labels, **{option: "key"})


def test_groups_travel_with_the_documents(put, put_parquet, labels):
    csv = put("own.csv", "text,labels,region\nOne.,oil, north \nTwo.,,\nThree.,trade,south\n")
    rows = [("One.", "oil", "north"), ("Two.", "", None), ("Three.", "trade", "south")]
    lines = (json.dumps(dict(zip(("text", "labels", "region"), row, strict=True))) + "\n" for row in rows)
    texts, names, regions = map(list, zip(*rows, strict=True))
    parquet = put_parquet("own.parquet", {"text": texts, "labels": names, "region": regions})
    for path in (csv, put("own.jsonl", "".join(lines)), parquet):
        dataset = load_files(path, labels, group_column="region")
        assert dataset.groups == ("north", "(blank)", "south")
        assert dataset.take([2, 0]).groups == ("south", "north")
        assert dataset.fingerprint == load_files(path, labels).fingerprint  # saved scores can be used again
    numbers = put_parquet("numbers.parquet", {"text": ["a"], "labels": [["oil"]], "year": [1987]})
    assert load_files(numbers, labels, group_column="year").groups == ("1987",)
    assert load_files(csv, labels).groups == load_files(csv, labels).take([0]).groups == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own.txt", "a file of labelled documents ends in .csv, .tsv, .jsonl, .json, .parquet, .xlsx; got 'own.txt'."),
        ("own.parquet.gz", "got 'own.parquet.gz'"),
        ("own.csv", "own.csv does not exist"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, labels, name, message):
    with pytest.raises(DataFileError, match=message):
        load_files(tmp_path / name, labels)


def test_another_separator_is_suspected(put, labels):
    with pytest.raises(LabelError, match=r"not in the inventory: .* Is ';' the sign between labels\? .*--separator"):
        load_files(put("own.csv", CSV.replace("|", ";")), labels)
    with pytest.raises(LabelError, match=r"Is '\|' the sign between labels\?"):
        load_files(put("own.csv", CSV), labels, separator=",")


def test_bars_are_understood_as_classify_writes_them(put, labels):
    check(load_files(put("own.csv", CSV), labels))
    check(load_files(put("own.csv", CSV.replace("oil|trade", '"trade, oil"')), labels))
    mixed = put("own.csv", 'text,labels\nOne.,oil|sports\nTwo.,"oil,trade"\nThree.,trade\n')
    assert load_files(mixed, labels).gold.sum(axis=1).tolist() == [2, 2, 1]


def test_a_name_with_a_comma_or_a_bar_is_a_label(put):
    commas = put("commas.txt", "oil, gas\nsports\n")
    rows = put("own.csv", 'text,labels\nOne.,"oil, gas"\nTwo.,"oil, gas|sports"\n')
    assert load_files(rows, commas).gold.tolist() == [[True, False], [True, True]]
    bars = put("bars.txt", "a|b\nc\n")
    rows = put("own.csv", 'text,labels\nOne.,a|b\nTwo.,"a|b,c"\n')
    assert load_files(rows, bars).gold.tolist() == [[True, False], [True, True]]


def test_an_inventory_at_hand_needs_no_file(put, labels):
    inventory = read_labels(labels)
    assert load_files(put("own.csv", CSV), inventory).labels == inventory


def test_an_empty_separator_is_refused(put, labels):
    with pytest.raises(SetScoreError, match="the separator of labels is empty"):
        load_files(put("own.csv", CSV), labels, separator="")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "labels\n", False),
        ("a.csv", "text,labels\nx,oil\n", True),
        ("a.csv", "text,topic\nx,oil\n", False),
        ("a.csv", "text,labels\n", True),  # no row: loading says so
        ("a.jsonl", '{"text": "x", "labels": []}\n', True),
        ("a.jsonl", '{"text": "x"}\n', False),
        ("a.parquet", "", True),  # loading tells
        ("a.tsv", "text\tlabels\nx\toil\n", True),
        ("a.tsv", "text\ttopic\nx\toil\n", False),
        ("a.json", '[{"text": "x"}]', False),
        ("a.json", '[{"text": "x", "labels": ""}]', True),
    ],
)
def test_a_file_tells_whether_it_has_gold_labels(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    assert has_gold(tmp_path / name) is expected


def test_rows_that_classify_could_not_read_are_left_out_and_counted(tmp_path):
    """A draft that was reviewed holds them: an error, no text, no labels. Any other row without a text is named."""
    path = tmp_path / "draft.csv"
    path.write_text("id,text,labels,error\n1,Rain all day.,weather,\n2,,,row 2 is empty or blank\n3,Sun.,,\n")
    dataset = load_files(path, LabelSet.of(["weather"]))
    assert dataset.ids == ("1", "3")
    assert dataset.notes == ("1 row with an error of `setscore classify` in place of a text left out.",)
    path.write_text("id,text,labels,error\n1,Rain all day.,weather,\n2,,,\n")
    dataset = load_files(path, LabelSet.of(["weather"]))
    assert dataset.ids == ("1",)
    assert dataset.notes == ("1 of 2 rows cannot be used and was left out: row 2 is empty or blank.",)


def test_gold_labels_outside_the_inventory_name_their_rows_and_can_be_ignored(put):
    path = put("own.csv", "text,labels\nOne.,oil\nTwo.,oil|gas\n,gas\nFour.,tea\n")
    labels = LabelSet.of(["oil"])
    message = r"2 gold labels are not .* See rows 2, 4\. Add what is missing .* \(--ignore-unknown\)\."
    with pytest.raises(LabelError, match=message):
        load_files(path, labels)
    dataset = load_files(path, labels, ignore_unknown=True)
    assert dataset.gold.tolist() == [[True], [True], [False]]
    assert dataset.notes == (
        "1 of 4 rows cannot be used and was left out: row 3 is empty or blank.",
        "2 gold labels outside the inventory left out: 'gas', 'tea', in rows 2, 4.",
    )
    suspected = put("own.csv", "text,labels\nOne.,oil;gas\n")
    assert load_files(suspected, labels, ignore_unknown=True).notes[0].endswith("as the separator (--separator).")


@pytest.mark.parametrize(("separator", "text"), [(None, "a|b|c"), ("|", "a|b"), (";", "d;e")])
def test_a_name_that_holds_the_sign_between_labels_is_told_with_a_remedy(put, separator, text):
    rows = put("own.csv", f"text,labels\nOne.,{text}\n")
    message = r"The label '(a\|b|d;e)' has '[|;]' in its name, so .* Rename it, give the labels as a list \(\.jsonl\)"
    with pytest.raises(LabelError, match=message):
        load_files(rows, LabelSet.of(["a|b", "c", "d;e"]), separator=separator)


def test_a_gold_label_that_differs_in_capitals_is_the_one_label_that_it_can_be(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,labels\nOne.,Praise|refund\nTwo.,PRAISE\nThree.,\n")
    dataset = load_files(path, LabelSet.of(["praise", "refund"]))
    assert dataset.gold.tolist() == [[True, True], [True, False], [False, False]]
    assert dataset.notes == (
        "2 gold labels differ from a label only in capitals and count as it: 'Praise' was read as 'praise'.",
    )


@pytest.mark.filterwarnings("ignore::setscore.errors.LabelWarning")  # the inventory has names that are alike
def test_a_gold_label_that_could_be_two_labels_is_an_error(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a", "labels": ["Praise", "PRAISE"]}\n')
    labels = LabelSet.of(["praise", "Praise"])
    with pytest.raises(
        LabelError, match="'PRAISE' differs from more than one label only in capitals, as from 'Praise'"
    ):
        load_files(path, labels)
    dataset = load_files(path, labels, ignore_unknown=True)
    assert dataset.gold.tolist() == [[False, True]]
