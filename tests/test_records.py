"""Values at the border: what is taken as labels, gold labels and documents, and how each refusal reads."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from setscore.errors import DocumentError, LabelError, LabelWarning, SetScoreError
from setscore.records import Document, Label, LabelSet, as_documents, is_indicator, names_in

LABELS = LabelSet.of(["oil", "sports", "music"])
GOLD = np.array([[1, 0, 1], [0, 0, 0]], dtype=bool)


@pytest.mark.parametrize(
    ("source", "names", "texts"),
    [
        (["oil", "sports"], ("oil", "sports"), ["oil", "sports"]),
        (("sports", "oil"), ("sports", "oil"), ["sports", "oil"]),
        (
            {"oil": "crude oil", "sports": None, "music": ""},
            ("oil", "sports", "music"),
            ["oil (crude oil)", "sports", "music"],
        ),
        ([Label("oil", "crude oil"), "sports"], ("oil", "sports"), ["oil (crude oil)", "sports"]),
        (LabelSet.of(["oil"]), ("oil",), ["oil"]),
        (np.array(["oil", "sports"]), ("oil", "sports"), ["oil", "sports"]),
        (pd.Series(["oil", "sports"]), ("oil", "sports"), ["oil", "sports"]),
        ((name for name in ["oil", "sports"]), ("oil", "sports"), ["oil", "sports"]),
    ],
)
def test_labels_from(source, names, texts):
    labels = LabelSet.of(source)
    assert labels.names == names
    assert list(labels.texts) == texts
    assert len(labels) == len(names)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "no labels were given. Give a list of names, a dict {name: description} or Label objects."),
        ([], "there are no labels. Give at least one, for example labels=['oil', 'sports']."),
        ({}, "there are no labels. Give at least one, for example labels=['oil', 'sports']."),
        ("oil", "labels must be a list, got the one string 'oil'. Write labels=['oil']."),
        (
            "Labels.YAML",
            "labels must be a list, got the one string 'Labels.YAML'. Write labels=read_labels('Labels.YAML').",
        ),
        (["oil", "sports", "oil"], "label 'oil' is listed twice, at 0 and 2. Remove one of them. Labels count from 0."),
        (["oil", " oil "], "label ' oil ' is listed twice, at 0 and 1. Remove one of them. Labels count from 0."),
        (["oil", ""], "the name of label 1 is empty or blank. Labels count from 0."),
        ([" \t\n"], "the name of label 0 is empty or blank. Labels count from 0."),
        (["oil", None], "the name of label 1 is None, not a text. Labels count from 0."),
        ([7], "the name of label 0 is 7 of type int, not a text. Labels count from 0."),
        ([b"oil"], "the name of label 0 is b'oil' of type bytes, not a text. Labels count from 0."),
        ([("oil", "crude")], "the name of label 0 is ('oil', 'crude') of type tuple, not a text."),
        ({"oil": " "}, "the description of label 0 is empty or blank. Labels count from 0."),
        ({"oil": 7}, "the description of label 0 is 7 of type int, not a text. Labels count from 0."),
        ({"oil": False}, "the description of label 0 is False of type bool, not a text. Labels count from 0."),
        (["oil\ud83d"], "the name of label 0 holds a lone surrogate (U+D83D) at character 3, which is no valid text"),
        ({"oil": "\udcff"}, "the description of label 0 is not UTF-8 text (byte 0xFF at character 0)"),
    ],
)
def test_labels_refused(source, message):
    with pytest.raises(LabelError) as error:
        LabelSet.of(source)
    assert str(error.value).startswith(message)


def test_indicator_takes_sets_of_names_in_any_order():
    matrix = LABELS.indicator([{"music", "oil"}, [], ("sports", "sports")])
    assert matrix.tolist() == [[True, False, True], [False, False, False], [False, True, False]]


def test_indicator_counts_every_unknown_name():
    with pytest.raises(LabelError) as error:
        LABELS.indicator([["oil", "sport"], ["opera"], ["sport"]])
    assert str(error.value) == (
        "3 gold labels are not in the inventory: 'sport' (2 times, did you mean 'sports'?), 'opera' (1 time)."
        " Known: music, oil, sports."
    )


def test_indicator_names_what_the_sets_are():
    with pytest.raises(LabelError, match=r"^1 candidate is not in the inventory: 'opera' \(1 time\)\. Known: music"):
        LABELS.indicator([["opera"]], what="candidate")


def test_indicator_shows_five_unknown_names_of_many():
    with pytest.raises(LabelError) as error:
        LABELS.indicator([[f"new {number}" for number in range(9)]])
    assert str(error.value).startswith("9 gold labels are not in the inventory: 'new 0' (1 time), ")
    assert "'new 4'" in str(error.value)
    assert "'new 5'" not in str(error.value)


@pytest.mark.parametrize(
    "y",
    [
        GOLD,
        GOLD.astype(int),
        GOLD.astype(float),
        GOLD.astype(int).tolist(),
        GOLD.tolist(),
        scipy.sparse.csr_matrix(GOLD.astype(int)),
        scipy.sparse.coo_array(GOLD),
        pd.DataFrame(GOLD.astype(int), columns=LABELS.names),
        [["oil", "music"], []],
        [{"music", "oil"}, set()],
        (("oil", "music"), ()),
        pd.Series([["oil", "music"], []]),
        np.array([{"oil", "music"}, set()], dtype=object),
    ],
    ids=lambda y: (
        f"{type(y).__name__}-{type(y[0]).__name__ if isinstance(y, list | tuple) else getattr(y, 'dtype', '')}"
    ),
)
def test_gold_from(y):
    gold = LABELS.gold(y, 2)
    assert gold.dtype == np.bool_
    assert gold.tolist() == GOLD.tolist()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (GOLD[:, :2], "gold labels have the shape (2, 2), "),
        (GOLD[:1], "gold labels have the shape (1, 3), "),
        (np.array([1, 0]), "gold labels have the shape (2,), "),
        ([["oil"]], "gold labels have the shape (1, 3), "),
        ([["oil"]] * 3, "gold labels have the shape (3, 3), "),
        ([[1, 0, 1], [1, 0]], "an indicator matrix has 3 columns in every row; these rows differ."),
        (np.array([[2, 0, 0], [0, 0, 0]]), "an indicator matrix of gold labels holds only 0 and 1."),
        ([[0.5, 0, 1], [0, 0, 0]], "an indicator matrix of gold labels holds only 0 and 1."),
        ([[float("nan"), 0, 1], [0, 0, 0]], "an indicator matrix of gold labels holds only 0 and 1."),
        (["oil", "sports"], "gold labels of document 0 must be a list of names, got the string 'oil'."),
        ([["oil"], "sports"], "gold labels of document 1 must be a list of names, got the string 'sports'."),
        ([["oil"], None], "gold labels of document 1 must be a list of names, got None."),
        ([1, 0], "gold labels of document 0 must be a list of names, got 1."),
        ([["oil"], [1]], "gold labels of document 1 must be names, got 1."),
        ([["oil"], [None]], "gold labels of document 1 must be names, got None."),
    ],
)
def test_gold_refused(y, message):
    with pytest.raises(LabelError) as error:
        LABELS.gold(y, 2)
    assert str(error.value).startswith(message)


def test_a_wrong_shape_says_what_was_expected():
    with pytest.raises(LabelError, match=r"the shape \(2, 2\), .*there are 2 documents and 3 labels\.$"):
        LABELS.gold(GOLD[:, :2], 2)


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, unique=True).flatmap(
        lambda names: st.tuples(st.just(names), st.lists(st.sets(st.sampled_from(names)), min_size=1, max_size=5))
    )
)
def test_names_and_their_indicator_are_the_same_gold(case):
    names, sets = case
    labels = LabelSet.of(names)
    matrix = labels.gold(sets, len(sets))
    assert [{names[i] for i in np.flatnonzero(row)} for row in matrix] == sets
    assert (labels.gold(matrix.astype(int), len(sets)) == matrix).all()


def test_names_in_gold_labels_are_sorted_and_unique():
    assert names_in([["sports", "oil"], [], {"oil"}]) == ["oil", "sports"]
    with pytest.raises(
        LabelError, match=r"^an indicator matrix names no labels\. Pass labels=\.\.\. to the classifier"
    ):
        names_in(GOLD)


@pytest.mark.parametrize(("y", "matrix"), [([], False), ([[], []], False), ([[], [0]], True), ([["oil"]], False)])
def test_is_indicator_looks_past_empty_rows(y, matrix):
    assert is_indicator(y) is matrix


@pytest.mark.parametrize(
    "documents",
    [
        ["one", "two"],
        ("one", "two"),
        np.array(["one", "two"]),
        np.array(["one", "two"], dtype=object),
        pd.Series(["one", "two"], index=[7, 3]),
        [Document("one", id="a"), "two"],
        (text for text in ["one", "two"]),
    ],
    ids=lambda documents: type(documents).__name__,
)
def test_texts_from(documents):
    texts = [document.text for document in as_documents(documents)]
    assert texts == ["one", "two"]
    assert {type(text) for text in texts} == {str}  # numpy's own string type is not what tokenizers take


def test_no_documents_and_tables_are_named():
    with pytest.raises(SetScoreError, match="there are no documents"):
        as_documents([])
    with pytest.raises(SetScoreError, match=r"pass the column with the texts, one of \['body'\]"):
        as_documents(pd.DataFrame({"body": ["one"]}))


@pytest.mark.parametrize("documents", ["one text", b"bytes"])
def test_a_single_string_is_not_read_as_a_list_of_letters(documents):
    with pytest.raises(DocumentError, match=r"a single string was given where a list .* is expected; write \[text\]"):
        as_documents(documents)


def test_every_unusable_row_is_named_in_one_error():
    rows = ["fine", None, "", " \n", 7, "a\ud800", float("nan"), Document("", id="x"), "fine"]
    with pytest.raises(DocumentError) as error:
        as_documents(rows)
    assert error.value.problems == {
        1: "is None, not a text",
        2: "is empty or blank",
        3: "is empty or blank",
        4: "is 7 of type int, not a text",
        5: "holds a lone surrogate (U+D800) at character 1, which is no valid text;"
        " decode the source with errors='replace'",
        6: "is nan of type float, not a text",
        7: "is empty or blank",
    }
    message = str(error.value)
    assert message.startswith(
        "7 of 9 documents cannot be scored: document 1: is None, not a text; document 2: is empty"
    )
    assert message.endswith("; and 2 more. Rows count from 0.")


def test_missing_values_of_pandas_are_named():
    with pytest.raises(DocumentError) as error:
        as_documents(pd.Series(["fine", None, "fine"]))
    assert list(error.value.problems) == [1]


@given(st.lists(st.none() | st.integers() | st.text(max_size=3), min_size=1, max_size=20))
def test_texts_are_returned_whole_or_each_problem_is_named(rows):
    # st.text makes no surrogates, so a row is usable exactly if it is a string with something in it.
    bad = [row for row, text in enumerate(rows) if not (isinstance(text, str) and text.strip())]
    if not bad:
        assert [document.text for document in as_documents(rows)] == rows
        return
    with pytest.raises(DocumentError) as error:
        as_documents(rows)
    assert list(error.value.problems) == bad


def test_a_data_frame_of_gold_labels_goes_by_the_names_of_its_columns():
    frame = pd.DataFrame({"music": [1, 0], "oil": [1, 0], "sports": [0, 0]})
    np.testing.assert_array_equal(LABELS.gold(frame, 2), GOLD)


def test_labels_that_are_nearly_one_are_kept_with_a_warning():
    with pytest.warns(LabelWarning, match="'home  repairs' and 'Home repairs' differ only in capitals or spaces"):
        assert len(LabelSet.of(["home  repairs", "pets", "Home repairs"])) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelSet.of(["home repairs", "homerepairs"])


def test_labels_are_asked_by_name_and_description_or_by_one_of_them():
    labels = LabelSet.of({"refund": "a request to get money back", "praise": None})
    assert labels.texts == ("refund (a request to get money back)", "praise")
    assert labels.asked_by("description").texts == ("a request to get money back", "praise")
    assert labels.asked_by("name").texts == ("refund", "praise")
    assert labels.asked_by(None) is labels
    assert (labels.asked_as, labels.asked_by("name").asked_as, LABELS.asked_as) == ("both", "name", "name")
    with pytest.raises(LabelError, match=r"unknown label text 'names'\. Did you mean 'name'"):
        labels.asked_by("names")
