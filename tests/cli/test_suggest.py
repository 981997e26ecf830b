"""`setscore suggest`: which documents to label next, a file to fill in, and one clear line when nothing is left."""

import csv

import pytest
from commands import invoke

from setscore.cli.suggest import COLUMNS

ROWS = [
    ("The parcel never came.", "delivery"),
    ("You charged me twice.", "billing"),
    ("My package is late and the invoice is wrong.", "delivery|billing"),
    ("The courier lost my parcel.", "delivery"),
    ("The invoice shows a sum that I never agreed to.", "billing"),
    ("What are your opening hours?", ""),
    ("Where is my order?", "delivery"),
    ("Please refund the second charge.", "billing"),
    ("Good morning to you all.", ""),
    ("Do you ship to Norway?", "delivery"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled documents, and a classifier that was fitted on them."""
    made = tmp_path_factory.mktemp("suggest")
    with (made / "labelled.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "labels"), *ROWS])
    (made / "labels.yaml").write_text("billing: a wrong charge\ndelivery: a late or lost parcel\n", encoding="utf-8")
    command = ("calibrate", "--file", "labelled.csv", "--labels", "labels.yaml", "--out", "model.json")
    code, _, err = invoke(*command, folder=made)
    assert code == 0, err
    return made


def test_when_all_is_labelled_one_line_says_so(folder):
    (folder / "all.txt").write_text("".join(f"{text}\n" for text, _ in ROWS), encoding="utf-8")
    command = ("suggest", "--file", "all.txt", "--classifier", "model.json", "--output", "next.csv")
    code, out, _ = invoke(*command, folder=folder)
    assert code == 0
    assert out == "Nothing is left to label: all 10 documents are labelled already, or a copy of one that is.\n"
    assert not (folder / "next.csv").exists()


def test_rows_with_labels_are_not_suggested(folder):
    command = ("suggest", "--file", "labelled.csv", "--labels", "labels.yaml", "--output", "rest.csv")
    code, _, err = invoke(*command, folder=folder)
    assert code == 0
    assert "8 documents of 10 left out: labelled already, in the column 'labels'." in " ".join(err.split())
    with (folder / "rest.csv").open(encoding="utf-8", newline="") as file:
        assert {row["text"] for row in csv.DictReader(file)} == {text for text, labels in ROWS if not labels}
    (folder / "rest.csv").write_text("text,labels\nWhere is it?,delivery\n", encoding="utf-8")
    code, out, _ = invoke("suggest", "--file", "rest.csv", "--labels", "labels.yaml", folder=folder)
    assert (code, out) == (0, "Nothing is left to label: every row of rest.csv has labels.\n")
    (folder / "rest.csv").unlink()


def test_what_is_not_labelled_is_suggested_and_can_be_filled_in(folder):
    (folder / "new.txt").write_text(f"{ROWS[0][0]}\nThe van left a box at the wrong door.\n", encoding="utf-8")
    command = ("suggest", "--file", "new.txt", "--classifier", "model.json", "-n", "2", "--output", "next.csv")
    code, out, err = invoke(*command, folder=folder)
    assert code == 0
    assert "The van left a box" in out
    assert "1 document of 2: the others repeat these, or what is labelled already." in " ".join(err.split())
    with (folder / "next.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["text"], row["labels"]) == ("The van left a box at the wrong door.", "")
    (folder / "next.csv").unlink()


def test_who_calibrates_with_what_was_suggested_is_told_that_it_is_hard(folder):
    rows = [(number, text, labels, "", "1.0", "doubtful") for number, (text, labels) in enumerate(ROWS)]
    with (folder / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    told = (
        "`setscore suggest` picked these documents because they are hard, so this report's numbers are usually lower"
        " than on others. Measure with `setscore evaluate --classifier` on documents drawn at random."
    )
    for file, times in (("filled.csv", 1), ("labelled.csv", 0)):
        code, _, err = invoke("calibrate", "--file", file, "--labels", "labels.yaml", folder=folder)
        assert (code, err.count(told)) == (0, times)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--labels", "a,b"), "the documents to choose from are needed: --file FILE."),
        (("--file", "new.txt", "--output", "next.json"), "--output is a .csv file, got next.json."),
        (("--file", "nowhere.csv", "--labels", "a,b"), "nowhere.csv"),
    ],
)
def test_mistakes_are_told(folder, options, told):
    code, _, err = invoke("suggest", *options, folder=folder)
    assert (code, told in err) == (2, True), err


def test_labels_that_were_filled_in_are_not_written_over(tmp_path):
    (tmp_path / "texts.csv").write_text("text\nCrude prices fell.\nThe band played.\n")
    command = ["suggest", "--file", "texts.csv", "--labels", "oil,music", "--n", "5", "--output", "todo.csv"]
    code, _, err = invoke(*command, folder=tmp_path)
    assert code == 0
    assert "2 documents of 5: there are no more." in err
    assert invoke(*command, folder=tmp_path)[0] == 0, "an empty column may be written over"
    filled = "text,labels\nCrude prices fell.,oil\n"
    (tmp_path / "todo.csv").write_text(filled)
    code, _, err = invoke(*command, folder=tmp_path)
    assert code == 2
    assert "error: todo.csv has labels that were filled in; name another --output, or remove the file." in err
    assert (tmp_path / "todo.csv").read_text() == filled
