"""Every format gives the same rows, one at a time; what is broken, hostile or ambiguous is one line."""

import gzip
import io
import json
import lzma
import sys
import tracemalloc
import zipfile
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setscore.datasets import Columns, count_documents, formats, json_array, read_documents, read_stream, workbook
from setscore.datasets.dataset import Ids
from setscore.datasets.workbook import OtherSheetsWarning
from setscore.errors import DataFileError, MissingExtraError
from setscore.records import Document
from setscore.storage import Limits

CELLS = [
    ["id", "text", "desk"],
    ["a", "Oil fell, again.", "north"],
    ["b", 'Öl "stieg".', ""],
    ["c", "Two\nlines.", "7"],
]
RECORDS = [dict(zip(CELLS[0], row, strict=True)) for row in CELLS[1:]]
CSV = 'id,text,desk\na,"Oil fell, again.",north\nb,"Öl ""stieg"".",\nc,"Two\nlines.",7\n'
TEXTS = {
    "a.csv": CSV,
    "a.tsv": CSV.replace('"Oil fell, again."', "Oil fell; again.").replace(",", "\t").replace(";", ","),
    "a.jsonl": "".join(json.dumps(record) + "\n" for record in RECORDS),
    "a.json": json.dumps(RECORDS, indent=1),
}
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def check(rows):
    assert [row.document for row in rows] == [Document(record["text"], record["id"]) for record in RECORDS]
    assert [dict(row.values) for row in rows] == RECORDS
    assert [row.number for row in rows] == [1, 2, 3]
    assert all(row.own_id for row in rows)


def need_parquet(name):
    """Without the extra `hub` a Parquet file is refused before anything else is seen of it."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("name", TEXTS)
def test_texts_in_every_wrapping(tmp_path, name, packed, encoding):
    path = tmp_path / f"{name}{packed}"
    path.write_bytes(PACK[packed](TEXTS[name].encode(encoding)))
    check(list(read_documents(path)))
    assert count_documents(path) == (None if packed else 3)


def test_lines_in_utf_16(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one\r\nÖl\n".encode("utf-16"))
    assert [row.document for row in read_documents(path)] == [Document("one", "1"), Document("Öl", "2")]


def test_parquet(put_parquet):
    columns = {name: [record[name] for record in RECORDS] for name in CELLS[0]}
    path = put_parquet("a.parquet", columns)
    check(list(read_documents(path)))
    assert count_documents(path) == 3
    odd = {"text": ["one", None], "when": [date(2020, 1, 31), None], "raw": [b"\xff", b"a"], "n": [[1], []]}
    first, second = read_documents(put_parquet("b.parquet", odd))
    assert first.values == {"text": "one", "when": "2020-01-31", "raw": "\ufffd", "n": [1]}
    assert (second.problem, second.values["when"]) == ("is None, not a text", None)


def test_excel(put_workbook):
    path = put_workbook("a.xlsx", [*CELLS[:2], [None, None, None], *CELLS[2:]])
    check(list(read_documents(path)))
    assert count_documents(path) == 3


def test_excel_cells_are_texts(put_workbook):
    cells = [["id", "text", None, "when", "sure"], [7, 404, "x", datetime(2020, 1, 31), True], [None, "b", None, None]]
    first, second = read_documents(put_workbook("a.xlsx", cells))
    assert first.document == Document("404", "7")
    assert first.values == {
        "id": "7",
        "text": "404",
        "column 3": "x",
        "when": "2020-01-31T00:00:00",
        "sure": "TRUE",
    }
    assert (second.id, second.own_id, second.values["sure"]) == ("row 2", False, "")


def test_other_sheets_are_told(put_workbook):
    path = put_workbook("a.xlsx", CELLS, empty=[], second=[["text"], ["lost"]])
    with pytest.warns(OtherSheetsWarning) as told:
        check(list(read_documents(path)))
    assert [str(warning.message) for warning in told] == [
        "a.xlsx has 1 more sheet, such as 'second'; only the first, 'first', is read."
    ]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([], "the first sheet of {} is empty: its first row names the columns."),
        (
            [["body"], ["x"]],
            "{}: the sheet has no column 'text'; it has ['body']. Name the column with",
        ),
        ([["text", "text"], ["x", "y"]], "{}: the sheet has the column 'text' twice. Rename one of them."),
    ],
)
def test_sheets_refused(put_workbook, cells, message):
    path = put_workbook("a.xlsx", cells)
    with pytest.raises(DataFileError) as error:
        list(read_documents(path))
    assert str(error.value).startswith(message.format(path))


def test_a_cell_beyond_the_header_is_a_problem_of_its_row(put_workbook):
    first, second = read_documents(put_workbook("a.xlsx", [["text"], ["x", "y"], ["z"]]))
    assert (first.problem, second.problem) == ("has more cells than the header's 1", None)


def test_broken_excel_files_are_one_line(tmp_path, put_workbook, monkeypatch):
    whole = put_workbook("a.xlsx", CELLS).read_bytes()
    path = tmp_path / "b.xlsx"
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    for content in (b"", b"no zip", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", whole[:-30], empty.getvalue()):
        path.write_bytes(content)
        with pytest.raises(DataFileError) as error:
            list(read_documents(path))
        assert str(error.value).startswith(f"{path} cannot be read as an Excel file (")
        assert str(error.value).endswith("). Save it as .xlsx, without a password.")
        assert count_documents(path) is None
    path.write_bytes(whole)
    monkeypatch.setattr(workbook, "UNPACKED", 1000)
    with pytest.raises(DataFileError) as error:
        list(read_documents(path))
    assert str(error.value) == f"{path} is larger than 1,000 bytes unpacked. Save it as CSV."


def test_a_sheet_ends_where_excel_does(put_workbook, monkeypatch):
    monkeypatch.setattr(workbook, "MOST_ROWS", 2)
    path = put_workbook("a.xlsx", CELLS)
    with pytest.raises(DataFileError) as error:
        list(read_documents(path))
    assert str(error.value) == f"{path} has more rows than the 2 of an Excel sheet."


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [
        ("a.xlsx", "openpyxl", "the Excel file a.xlsx needs the extra 'excel': pip install 'dllm-setscore[excel]', in"),
        ("a.parquet", "pyarrow.parquet", "the Parquet file a.parquet needs the extra 'hub': pip install"),
    ],
)
def test_a_missing_extra_is_named(tmp_path, monkeypatch, name, module, message):
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as error:
        list(read_documents(tmp_path / name))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.xlsx", "none.json.gz"])
def test_a_missing_file_is_the_same_line_for_all(tmp_path, name):
    need_parquet(name)
    with pytest.raises(DataFileError) as error:
        list(read_documents(tmp_path / name))
    assert str(error.value) == f"the file {tmp_path / name} cannot be read: No such file or directory."
    assert count_documents(tmp_path / name) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "", "{}: a JSON file of documents is a list, but it is empty. One object a line is .jsonl."),
        ("a.json", ' {"a": 1}', "{}: a JSON file of documents is a list, but it begins with '{'. One object a line"),
        ("a.json", "[", "{}: the JSON is broken after row 0: Expecting value"),
        ("a.json", '["a"', "{}: the JSON is broken after row 1: the list is cut off"),
        ("a.json", '["a" "b"]', "{}: the JSON is broken after row 1: expected ',' or ']', got '\"'"),
        ("a.json", '["a",]', "{}: the JSON is broken after row 1: Expecting value"),
        ("a.json", '["a", {"text": "b]', "{}: the JSON is broken after row 1: Unterminated string starting at"),
        ("a.json", '["a"] x', "{}: the JSON is broken after row 1: the list has ended, but 'x' follows"),
        ("a.json", '["a", ' + "[" * 100_000, "{}: the JSON is broken after row 1: it is nested more than 64 levels"),
        ("a.tsv", 'text\n"one" two\n', "{}: the TSV is broken after row 0: a cell that begins with a quotation mark"),
        ("a.tsv", "body\tid\none\t1\n", "{}: the TSV header has no column 'text'; it has ['body', 'id']. Name the"),
        ("a.csv.gz", b"no gzip", "{} is truncated or damaged (Not a gzipped file (b'no')). Fetch it again."),
        ("a.txt.gz", gzip.compress(b"one\n" * 999, mtime=0)[:-9], "{} is truncated or damaged (Compressed file ended"),
        ("a.txt", "one".encode("utf-16") + b"\x00", "{} is not UTF-16-LE: truncated data. Save it as UTF-8."),
        ("a.txt", "one\ntwo".encode("utf-16-be"), "{} cannot be read: it looks like UTF-16 without a byte order mark"),
        ("a.parquet", b"PAR1", "{} cannot be read as Parquet, perhaps it is cut off: "),
        ("a.parquet.gz", b"", "a file of documents ends in .txt, .csv, .tsv, .jsonl, .json, .parquet, .xlsx; got 'a"),
    ],
)  # fmt: skip
def test_files_refused(tmp_path, name, content, message):
    need_parquet(name)
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataFileError) as error:
        list(read_documents(path))
    assert str(error.value).startswith(message.replace("{}", str(path)))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert count_documents(path) is None


def test_rows_of_a_json_list_fail_alone():
    content = '["a", 7, null, {"text": "b", "text": "c"}, {"x": 1}, ' + "[" * 70 + "]" * 70 + ', {"text": "d"}]'
    rows = list(read_stream(io.StringIO(content), ".json"))
    assert [row.problem for row in rows] == [
        None,
        "is 7, neither an object nor a text",
        "is None, neither an object nor a text",
        "is not valid JSON ('text' appears twice in one mapping. Remove one of them.)",
        "has no field 'text'; it has x",
        "is not valid JSON (it is nested more than 64 levels deep)",
        None,
    ]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc é", max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(values, max_size=5), st.integers(1, 7), st.sampled_from([None, 1]))
def test_a_list_is_read_whole_wherever_its_blocks_end(monkeypatch_block, expected, block, indent):
    monkeypatch_block(block)
    assert list(json_array.json_array(io.StringIO(json.dumps(expected, indent=indent)))) == expected


@pytest.fixture(scope="module")
def monkeypatch_block():
    with pytest.MonkeyPatch.context() as patch:
        yield lambda block: patch.setattr(json_array, "BLOCK", block)


LINE = "crude oil " * 100


@pytest.mark.parametrize(
    ("suffix", "content", "rows"),
    [
        (".txt", f"{LINE}\n" * 20_000, 20_000),
        (".csv", "text\n" + f"{LINE}\n" * 20_000, 20_000),
        (".tsv", "text\tid\n" + f"{LINE}\t\n" * 20_000, 20_000),
        (".jsonl", f'{{"text": "{LINE}"}}\n' * 20_000, 20_000),
        (".json", "[" + f'{{"text": "{LINE}"}},' * 20_000 + '"end"]', 20_001),
        (".txt", "one\n" + "\n" * 100_000 + "two\n", 100_002),
    ],
    ids=["txt", "csv", "tsv", "jsonl", "json", "blank lines"],
)
def test_no_format_holds_the_file(tmp_path, suffix, content, rows):
    path = tmp_path / f"a{suffix}.gz"
    path.write_bytes(gzip.compress(content.encode(), 1, mtime=0))
    read = read_documents(path)
    next(read)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read) == rows - 1
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20  # of 20 MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("suffix", "content", "problems"),
    [
        (".txt", "x" * 101 + "\nafter\n" + "y" * 500, [formats.LONG, None, formats.LONG]),
        (".txt", "x" * 100 + "\n" + "x" * 99 + "\r\nafter", [None, None, None]),
        (".jsonl", '{"text": "' + "x" * 200 + '"}\n"after"\n', [formats.LONG, None]),
    ],
)
def test_a_row_that_is_too_long_fails_alone(monkeypatch, suffix, content, problems):
    monkeypatch.setattr(formats, "ROW", Limits(size=100))
    assert [row.problem for row in read_stream(io.StringIO(content, newline=""), suffix)] == problems
    assert formats.LONG == "is longer than 64 MiB, the limit for one row"


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        (".csv", "text\n" + "x" * 101 + "\n", "the CSV is broken after row 0: a line is longer than 100 bytes"),
        (".csv", "x" * 101, "the CSV is broken after row 0: a line is longer than 100 bytes"),
        (".csv", 'text\n"' + "x\n" * 101 + '"\n', "the CSV is broken after row 0: field larger than field limit (100)"),
        (".json", '[1, {"a": "' + "x" * 200, "the JSON is broken after row 1: the next row is longer than 100 bytes"),
        (".json", '["a", [' + "1," * 60 + "1]]", "the JSON is broken after row 1: it holds more than 50 values"),
    ],
)  # fmt: skip
def test_what_is_too_long_for_a_table_ends_it(monkeypatch, suffix, content, message):
    for module in (formats, json_array):
        monkeypatch.setattr(module, "ROW", Limits(size=100, nodes=50))
    monkeypatch.setattr(json_array, "BLOCK", 8)
    with pytest.raises(DataFileError) as error:
        list(read_stream(io.StringIO(content), suffix))
    assert str(error.value) == message


LOOKS_LIKE_JSON = (
    "the input looks like JSON. Say how it is laid out: --input-format jsonl (an object a line) or json (one list), or"
    " txt to take each line as it is."
)


@pytest.mark.parametrize(
    "content",
    [
        '{"text": "one"}\n',
        '\n [{"text": "one"}]',
        '["one", "two"]',
        "[\n",
        "{\n",
        '{ "id" : 1,\n',
        '[\n {"text": "a"}]\n',
    ],
)
def test_json_that_is_piped_in_is_not_taken_for_text(content):
    with pytest.raises(DataFileError) as error:
        list(read_stream(io.StringIO(content)))
    assert str(error.value) == LOOKS_LIKE_JSON
    assert next(read_stream(io.StringIO(content), ".txt")).number == 1


@pytest.mark.parametrize(
    "line", ["[INFO] started", "{name}, hello", "[1] See above.", "(a)", "a {", "[sic]", "{}", "[]"]
)
def test_a_bracket_alone_is_no_json(line):
    assert [row.document.text for row in read_stream(io.StringIO(f"{line}\nmore\n"))] == [line, "more"]


def test_later_lines_may_be_json():
    assert len(list(read_stream(io.StringIO('Log:\n{"text": "one"}\n')))) == 2


@pytest.mark.parametrize("suffix", [None, ".txt", ".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_that_is_piped_in_says_what_to_do(suffix, encoding):
    stream = io.TextIOWrapper(io.BytesIO("text\none\n".encode(encoding)), "utf-8-sig", "surrogateescape")
    with pytest.raises(DataFileError) as error:
        list(read_stream(stream, suffix))
    assert str(error.value) == ("the input is UTF-16. Convert it first, for example with `iconv -f UTF-16 -t UTF-8`.")


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx", ".docx"])
def test_what_is_no_text_cannot_be_piped_in(suffix):
    with pytest.raises(DataFileError) as error:
        list(read_stream(io.StringIO("x"), suffix))
    assert str(error.value) == (
        f"a stream of documents is one of .txt, .csv, .tsv, .jsonl, .json; got {suffix!r}. Give a file instead."
    )


@pytest.mark.parametrize(
    ("suffix", "content", "names"),
    [
        (".csv", "id,text\n2,a\n,b\n3,c\n ,d\n", [("2", True), ("row 2", False), ("3", True), ("row 4", False)]),
        (".csv", "text\na\nb\n", [("1", False), ("2", False)]),
        (".jsonl", '"a"\n{"text": "b", "id": "1"}\n"c"\n', [("1", False), ("1 (row 2)", True), ("row 3", False)]),
        (".jsonl", '{"text": "b", "id": 7}\n{"text": "a"}\n"c"', [("7", True), ("row 2", False), ("row 3", False)]),
        (".json", '["a", {"text": "b", "id": 01}]'.replace("01", '"01"'), [("1", False), ("01", True)]),
        (".jsonl", '"a"\n{"text": "b", "id": "' + "9" * 5000 + '"}', [("1", False), ("9" * 5000, True)]),
        (".txt", "a\nb", [("1", False), ("2", False)]),
    ],
)
def test_a_number_that_stands_in_is_no_other_row_s_id(suffix, content, names):
    rows = list(read_stream(io.StringIO(content), suffix))
    assert [(row.id, row.own_id) for row in rows] == names
    assert len({row.id for row in rows}) == len(rows)


def test_a_nan_is_no_id():
    assert Ids("id", ["id"]).name(3, float("nan")) == ("row 3", False)


def test_values_can_be_written_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,note,\none,b\xfcd,\ntwo\nthree,,x\n")
    first, second, third = read_documents(path)
    assert first.values == {"text": "one", "note": "b\ufffdd", "column 3": ""}
    assert second.values == {"text": "two", "note": None, "column 3": None}
    assert third.values["column 3"] == "x"
    (bad,) = read_stream(io.StringIO('{"text": "", "note": ["\\udcff"], "id": "x"}'), ".jsonl")
    assert (bad.problem, bad.values["note"], bad.own_id) == ("is empty or blank", ["\ufffd"], True)


def test_large_files_are_not_counted(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n\n")
    assert count_documents(path) == 2
    monkeypatch.setattr("setscore.datasets.documents.COUNTED", 5)
    assert count_documents(path) is None


def test_lines_have_no_columns_to_miss(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    assert [row.id for row in read_documents(path, Columns(id="key"))] == ["1"]
