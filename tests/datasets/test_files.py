import sys

import pytest

from setscore.datasets import files
from setscore.datasets.files import csv_rows, find, jsonl_rows, parquet_rows, plain_lines, read_bytes, require, shards
from setscore.errors import DataFileError, MissingExtraError
from setscore.storage import Limits

ENDINGS = ["", ".xz", ".gz"]
LONG = "".join(f"line {number} \u2028 {number * 7919 % 104729}\n" for number in range(20000))


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_are_found_and_read_plain_or_compressed(put, tmp_path, ending):
    path = put("a.txt", "\ufeffeins\r\nzwei \x85 drei\n\n \n", ending)
    assert find(tmp_path, "b.txt", "a.txt") == require(tmp_path, "a.txt") == path
    assert plain_lines(path) == ["eins", "zwei \x85 drei"]
    assert read_bytes(path).endswith(b"\n \n")


def test_the_plain_file_and_the_first_name_come_first(put, tmp_path):
    put("a.txt", "compressed", ".xz")
    put("b.txt", "other")
    plain = put("a.txt", "plain")
    assert find(tmp_path, "a.txt", "b.txt") == plain


def test_a_missing_file_says_what_was_looked_for_and_what_is_there(put, tmp_path):
    with pytest.raises(
        DataFileError, match=r"a.txt or b.txt \(plain, .xz or .gz\) was looked for in .*, but it is empty"
    ):
        require(tmp_path, "a.txt", "b.txt")
    for number in range(9):
        put(f"{number}.txt", "")
    with pytest.raises(DataFileError, match=r"but it holds 0.txt, .*, 7.txt, ….$"):
        require(tmp_path, "a.txt")
    with pytest.raises(DataFileError, match=r"absent does not exist; a.txt was looked for in it."):
        require(tmp_path / "absent", "a.txt")


@pytest.mark.parametrize("ending", [".xz", ".gz"])
def test_a_truncated_file_says_after_which_line(put, ending):
    path = put("a.txt", LONG, ending, cut=2000)
    with pytest.raises(
        DataFileError, match=r"a.txt\.\w+ is truncated or damaged after line \d+ \(.*\). Fetch it again."
    ):
        plain_lines(path)
    with pytest.raises(DataFileError, match="is truncated or damaged"):
        read_bytes(path)


@pytest.mark.parametrize("ending", [".xz", ".gz"])
def test_a_file_that_is_not_compressed_after_all_says_so(tmp_path, ending):
    path = tmp_path / f"a.txt{ending}"
    path.write_text("plain")
    with pytest.raises(DataFileError, match="is truncated or damaged after line 0"):
        plain_lines(path)


def test_what_is_not_utf_8_is_named_with_its_line(put):
    with pytest.raises(DataFileError, match=r"line 2 of .* is not UTF-8"):
        plain_lines(put("a.txt", b"good\nb\xfcd\n"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_mark_at_the_beginning_tells_the_encoding(put, encoding, ending):
    assert plain_lines(put("a.txt", "eins\r\nÖl \u2028 石\n".encode(encoding), ending)) == ["eins", "Öl \u2028 石"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "eins\nzwei\n".encode("utf-16-le"),
            "{} cannot be read: it looks like UTF-16 without a byte order mark; save it as UTF-8.",
        ),
        ("a\n".encode("utf-16") + b"\x00", "line 1 of {} is not UTF-16-LE: truncated data. Save it as UTF-8."),
        ("x" * 101 + "\n", "line 1 of {} is longer than 100 bytes."),
        ("x\n" + "x" * 101, "line 2 of {} is longer than 100 bytes."),
    ],
)
def test_lines_that_are_not_read(put, monkeypatch, content, message):
    monkeypatch.setattr(files, "ROW", Limits(size=100))
    path = put("a.txt", content)
    with pytest.raises(DataFileError) as error:
        plain_lines(path)
    assert str(error.value) == message.format(path)


@pytest.mark.parametrize("ending", [".xz", ".gz"])
def test_what_a_small_file_unpacks_to_is_bounded(put, monkeypatch, ending):
    monkeypatch.setattr(files, "UNPACKED", 2**20)
    monkeypatch.setattr(files, "WHOLE", Limits(size=2**20))
    path = put("a.txt", "\n" * (2**20 + 1), ending)
    with pytest.raises(DataFileError) as error:
        plain_lines(path)
    assert str(error.value) == f"{path} is larger than 1 MiB unpacked. Unpack it first."
    with pytest.raises(DataFileError) as error:
        read_bytes(path)
    assert str(error.value) == f"{path} cannot be read: it is larger than 1 MiB, the limit."
    assert len(plain_lines(put("b.txt", "x\n" * 2**20))) == 2**20  # its size can be seen before it is read


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": ', "line 2 of .* is not valid JSON, perhaps it is cut off"),
        ("\n[1]\n", "line 2 of .* is not a JSON object but list"),
        ("[" * 100000, "line 1 of .* is not valid JSON, perhaps it is cut off: it is nested more than 64 levels deep"),
        ('{"a": 1, "a": 2}', "line 1 of .* is not valid JSON, .*: 'a' appears twice in one mapping."),
        ('{"\\ud800": 1}', "line 1 of .* is not valid JSON, .*: the key .* holds a lone surrogate"),
    ],
)
def test_broken_jsonl_is_named_with_its_line(put, content, message):
    with pytest.raises(DataFileError, match=message):
        list(jsonl_rows(put("a.jsonl", content)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"has no column a, b; its first line has \[\]"),
        ("a,c\n1,2\n", r"has no column b; its first line has \['a', 'c'\]"),
        ("a,b\n1,2\n3\n", "the row that ends at line 3 of .* has fewer cells than the 2 of the header"),
        ("a,b\n1,2,3\n", "the row that ends at line 2 of .* has more cells than the 2"),
        ('a,b\n1,"2\n', "is broken at line 2, perhaps it is cut off"),
        ("a,b,a\n1,2,3\n", "a.csv has the column 'a' twice. Rename one of them."),
    ],
)
def test_broken_csv_is_named_with_its_line(put, content, message):
    with pytest.raises(DataFileError, match=message):
        list(csv_rows(put("a.csv", content), ("a", "b")))


def test_csv_cells_may_hold_line_breaks(put):
    rows = list(csv_rows(put("a.csv", 'a,b\r\n1,"two\nlines"\r\n3,4\r\n', ".xz"), ("b",)))
    assert [(number, row["b"]) for number, _, row in rows] == [(1, "two\nlines"), (2, "4")]
    assert rows[1][1].startswith("the row that ends at line 4 of ")


def test_parquet_rows_count_over_all_parts(put_parquet, tmp_path):
    put_parquet("test-00000-of-00002.parquet", {"a": [1, 2]})
    put_parquet("test-00001-of-00002.parquet", {"a": [3]})
    parts = shards(tmp_path, "test")
    assert [(number, row["a"]) for number, _, row in parquet_rows(parts, ["a"])] == [(1, 1), (2, 2), (3, 3)]
    assert list(parquet_rows(parts, ["a"]))[2][1] == f"row 1 of {parts[1]}"
    assert shards(tmp_path, "train") == []
    with pytest.raises(DataFileError, match=r"has no column b, c; it has \['a'\]"):
        list(parquet_rows(parts, ["a", "b", "c"]))


def test_a_missing_part_of_a_split_is_an_error(put_parquet, tmp_path):
    put_parquet("test-00000-of-00002.parquet", {"a": [1]})
    with pytest.raises(DataFileError, match=r"holds 1 Parquet files of test, of 00002. Add the others."):
        shards(tmp_path, "test")


def test_parts_of_the_converted_branch_count_up(put_parquet, tmp_path):
    for number in (0, 1):
        put_parquet(f"default/test/{number:04}.parquet", {"a": [number]})
    parts = shards(tmp_path / "default", "test")
    assert [path.name for path in parts] == ["0000.parquet", "0001.parquet"]
    assert shards(tmp_path / "default" / "test", "test") == parts
    parts[0].unlink()
    with pytest.raises(DataFileError, match=r"test holds 0001.parquet; the parts count up from 0000.parquet."):
        shards(tmp_path / "default", "test")


def test_truncated_parquet_says_so(put_parquet):
    path = put_parquet("a.parquet", {"a": ["text"] * 100})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFileError, match="cannot be read as Parquet, perhaps it is cut off"):
        list(parquet_rows([path], ["a"]))


def test_parquet_names_the_extra_it_needs(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"the Parquet file a.parquet needs the extra 'hub'"):
        list(parquet_rows([tmp_path / "a.parquet"], []))
