"""Document files: every layout gives the same rows, and a row that cannot be used stops no other.

Not called test_documents.py: pytest imports by base name here, and tests/test_documents.py has it.
"""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setscore.datasets import Columns, InputRow, read_documents, read_stream, text_rows
from setscore.errors import DataFileError
from setscore.records import Document

# What surrogateescape makes of the byte 0xff.
SURROGATE = "is not UTF-8 text (byte 0xFF at character {}); save the source as UTF-8"


@pytest.fixture
def rows(tmp_path):
    def read(name: str, content: str | bytes, columns: Columns = Columns()) -> list[InputRow]:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(read_documents(path, columns))

    return read


def good(*documents: Document) -> list[InputRow]:
    return [InputRow(number, document.id, document, None) for number, document in enumerate(documents, start=1)]


@pytest.mark.parametrize(
    ("name", "content", "documents"),
    [
        ("a.txt", "one\ntwo, 2\n", [("1", "one"), ("2", "two, 2")]),
        ("a.txt", "one\r\ntwo, 2", [("1", "one"), ("2", "two, 2")]),
        ("A.TXT", "one\n", [("1", "one")]),
        ("a.txt", b"\xef\xbb\xbfone\n", [("1", "one")]),
        ("a.txt", "with\u2028separator\x0c\n", [("1", "with\u2028separator\x0c")]),
        ("a.txt", "", []),
        ("a.txt", "one\n\n \n", [("1", "one")]),
        ("a.csv", "id;text\na;one, two\n", [("a", "one, two")]),
        ("a.csv", "id\ttext\na\tone; two\n", [("a", "one; two")]),
        ("a.csv", "text\none\ntwo\n", [("1", "one"), ("2", "two")]),
        ("a.csv", 'id,text\na,"one, ""1""\nmore"\nb,two\n', [("a", 'one, "1"\nmore'), ("b", "two")]),
        ("a.csv", b"\xef\xbb\xbftext,id\r\none,a\r\n\r\ntwo,\r\n", [("a", "one"), ("row 2", "two")]),
        ("a.csv", "id,text,\na,one,\n", [("a", "one")]),
        ("a.csv", "text,other\none\n", [("1", "one")]),
        ("a.csv", "text\n", []),
        ("a.jsonl", '{"text": "one"}\n"two"\n', [("1", "one"), ("2", "two")]),
        (
            "a.jsonl",
            '{"text": "one", "id": "a", "more": [1]}\n{"text": "two", "id": 7}\n',
            [("a", "one"), ("7", "two")],
        ),
        ("a.jsonl", '{"text": "one", "id": null}\n{"text": "two", "id": " "}\n', [("1", "one"), ("2", "two")]),
        ("a.jsonl", '{"text": "one", "id": 0}\n', [("0", "one")]),
        ("a.jsonl", b'\xef\xbb\xbf{"text": "one"}\r\n', [("1", "one")]),
        ("a.jsonl", '{"text": "a\\nb \\u00e9 \\ud83d\\ude00"}', [("1", "a\nb é 😀")]),
    ],
)
def test_every_layout(rows, name, content, documents):
    assert rows(name, content) == good(*(Document(text, name) for name, text in documents))


def test_blank_lines_of_jsonl_are_no_rows_but_are_counted():
    # Row numbers are what an editor shows, so that a reported row can be found.
    assert [row.number for row in read_stream(io.StringIO('\n"one"\n\n\n"two"\n'), ".jsonl")] == [2, 5]


def test_columns_by_other_names(rows):
    columns = Columns(text="body", id="key", candidates="ask")
    expected = good(Document("one", "a", ("oil", "sports")))
    assert rows("a.csv", 'key,body,ask,text\na,one,"oil,sports",x\n', columns) == expected
    assert rows("a.jsonl", '{"key": "a", "body": "one", "ask": ["oil", "sports"], "text": 1}\n', columns) == expected


@pytest.mark.parametrize(
    ("name", "content", "candidates"),
    [
        ("a.csv", 'text,candidates\none,"oil, sports,"\n', ("oil", "sports")),
        ("a.csv", "text,candidates\none,\n", None),
        ("a.csv", "text,candidates\none\n", None),
        ("a.jsonl", '{"text": "one", "candidates": ["oil", "a, b"]}', ("oil", "a, b")),
        ("a.jsonl", '{"text": "one", "candidates": "oil, sports"}', ("oil", "sports")),
        ("a.jsonl", '{"text": "one", "candidates": null}', None),
    ],
)
def test_candidates(rows, name, content, candidates):
    assert rows(name, content) == good(Document("one", "1", candidates))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", b"\n", "is empty or blank"),
        ("a.txt", b" \t\n", "is empty or blank"),
        ("a.txt", b"a\xff\n", SURROGATE.format(1)),
        ("a.csv", b"x,,\n", "is empty or blank"),
        (
            "a.csv",
            b"x\n",
            "has 1 cell in place of the header's 3, and none in the column 'text'; is it cut off, or is another sign"
            " between its cells?",
        ),
        ("a.csv", b"x;bad\n", "has 1 cell in place of the header's 3, and none in the column 'text'; is it cut off, "),
        ("a.csv", b"x,bad,,more\n", "has more cells than the header's 3; put a text that contains commas in quotes"),
        ("a.csv", b"x,\xffbad,\n", SURROGATE.format(0)),
        ("a.csv", b"\xff,bad,\n", "has an id that " + SURROGATE.format(0)),
        ("a.csv", b'x,bad," , "\n', "has an empty list of candidates"),
        ("a.jsonl", b"{broken\n", "is not valid JSON (Expecting property name"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "is not valid JSON (it is nested more than 64 levels deep)"),
        (
            "a.jsonl",
            b'{"text": "bad", "text": "x"}\n',
            "is not valid JSON ('text' appears twice in one mapping. Remove one ",
        ),
        ("a.jsonl", b'{"text": "bad", "\\ud800": 1}\n', "is not valid JSON (the key '\\ud800' holds a lone surrogate "),
        ("a.jsonl", b'{"text": "bad", "\xff": 1}\n', "is not valid JSON (the key '\\udcff' " + SURROGATE.format(0)),
        ("a.jsonl", b'{"text": [[[["x"]]]]}\n', "is [[[...]]] of type list, not a text"),
        ("a.jsonl", b'{"id": "x", "txt": "bad"}\n', "has no field 'text'; it has id, txt"),
        ("a.jsonl", b"{}\n", "has no field 'text'; it has none"),
        ("a.jsonl", b"[1]\n", "is [1], neither an object nor a text"),
        ("a.jsonl", b"null\n", "is None, neither an object nor a text"),
        ("a.jsonl", b'{"text": null}\n', "is None, not a text"),
        ("a.jsonl", b'{"text": " "}\n', "is empty or blank"),
        ("a.jsonl", b'""\n', "is empty or blank"),
        ("a.jsonl", b'{"text": 7}\n', "is 7 of type int, not a text"),
        ("a.jsonl", b'{"text": "\xff"}\n', SURROGATE.format(0)),
        ("a.jsonl", b'{"text": "\\udcff"}\n', SURROGATE.format(0)),
        ("a.jsonl", b'{"text": "bad", "id": "\\udcff"}\n', "has an id that " + SURROGATE.format(0)),
        ("a.jsonl", b'{"text": "bad", "candidates": []}\n', "has an empty list of candidates"),
        (
            "a.jsonl",
            b'{"text": "bad", "candidates": [1]}\n',
            "has candidates [1], which are not a list of label names",
        ),
        ("a.jsonl", b'{"text": "bad", "candidates": 7}\n', "has candidates 7, which are not a list of label names"),
    ],
)
def test_a_bad_row_stops_no_other(rows, name, content, problem):
    before, after = {
        "a.txt": (b"before\n", b"after\n"),
        "a.csv": (b"id,text,candidates\n1,before,\n", b"3,after,\n"),
        "a.jsonl": (b'{"text": "before", "id": 1}\n', b'{"text": "after", "id": 3}\n'),
    }[name]
    first, bad, last = rows(name, before + content + after)
    assert (first.document, last.document) == (Document("before", "1"), Document("after", "3"))
    assert (bad.number, bad.document) == (2, None)
    assert bad.problem.startswith(problem)
    assert bad.id.isprintable()  # it is written into the output, so it must be something that can be


def test_a_bad_row_keeps_its_id(rows):
    assert rows("a.jsonl", '{"text": "", "id": "ticket-9"}') == [InputRow(1, "ticket-9", None, "is empty or blank")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "body,id\none,1\n",
            "{}: the CSV header has no column 'text'; it has ['body', 'id']. Name the column with the texts (--text-column).",  # noqa: E501
        ),
        ("a.csv", "", "{}: the CSV is empty. Its first line must name the columns."),
        ("a.csv", "text,id,text\none,1,two\n", "{}: the CSV has the column 'text' twice. Rename one of them."),
        ("a.csv", 'text\none\n"two\nthree\n', "{}: the CSV is broken after row 1: unexpected end of data"),
        ("a.csv", 'text\n"one"x\n', "{}: the CSV is broken after row 0: ',' expected after '\"'"),
        ("a.csv", '"text\none\n', "{}: the CSV is broken after row 0: unexpected end of data"),
        ("a.docx", "[]", "a file of documents ends in .txt, .csv, .tsv, .jsonl, .json, .parquet, .xlsx; got 'a.docx'."),
        (
            "notes",
            "one\n",
            "a file of documents ends in .txt, .csv, .tsv, .jsonl, .json, .parquet, .xlsx; got 'notes'.",
        ),
    ],
)
def test_files_refused(rows, tmp_path, name, content, message):
    with pytest.raises(DataFileError) as error:
        rows(name, content)
    assert str(error.value) == message.replace("{}", str(tmp_path / name))


def test_missing_file(tmp_path):
    with pytest.raises(DataFileError) as error:
        list(read_documents(tmp_path / "none.csv"))
    assert str(error.value) == f"the file {tmp_path / 'none.csv'} cannot be read: No such file or directory."


def test_a_folder_is_no_file(tmp_path):
    folder = tmp_path / "folder.txt"
    folder.mkdir()
    with pytest.raises(DataFileError, match=r"folder\.txt cannot be read: Is a directory\.$"):
        list(read_documents(folder))


@pytest.mark.parametrize("name", ["inbox", "inbox/1042.eml", "inbox/1043.EML"])
def test_who_gives_a_folder_or_an_email_is_told_where_to_go(tmp_path, name):
    (tmp_path / "inbox").mkdir()
    with pytest.raises(DataFileError) as error:
        list(read_documents(tmp_path / name))
    _, told = str(error.value).split(f"; got {Path(name).name!r}. ")
    assert told == (
        "A folder of such files is read by `setscore batch`; how to make one file of e-mails (.eml) is shown in"
        ' docs/how-to/documents.md, "Classify e-mail threads".'
    )
    page = Path(__file__).parents[2] / "docs" / "how-to" / "documents.md"
    assert "\n## Classify e-mail threads\n" in page.read_text(encoding="utf-8")


def test_a_long_csv_field(rows):
    text = "crude oil, " * 20_000  # 220 kB; the csv module's own limit is 128 kB
    assert rows("a.csv", f'text\n"{text}"\nafter\n') == good(Document(text, "1"), Document("after", "2"))


def test_rows_of_a_stream_come_as_they_are_read():
    class Typed(io.TextIOBase):
        """A terminal at which one line was typed."""

        lines = iter(["one\n"])

        def readline(self, size=-1):
            return next(self.lines)  # asked for a second one, it ends the test with StopIteration

    assert next(read_stream(Typed())) == InputRow(1, "1", Document("one", "1"), None)


def test_texts_at_hand():
    assert list(text_rows(["one", None, "two"])) == [
        InputRow(1, "1", Document("one", "1"), None),
        InputRow(2, "2", None, "is None, not a text"),
        InputRow(3, "3", Document("two", "3"), None),
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), max_size=5))
def test_what_json_writes_is_read_back(texts):
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    assert [row.document.text for row in read_stream(io.StringIO(lines), ".jsonl")] == texts
