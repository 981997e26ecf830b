"""Files with values: what they say is data, so it has limits, and every message is one short line."""

import json

import pytest

from setscore.errors import DataFileError
from setscore.storage import (
    Limits,
    decoded,
    encoding_of,
    listed,
    load_json,
    near_file,
    one_line,
    parse_json,
    read_json,
    reading_json,
    write_json,
)

FORM = "test/1"
SMALL = Limits(size=100, nodes=10, depth=3)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[" * 100_000, "it is nested more than 64 levels deep"),
        (b"[" * 65 + b"]" * 65, "it is nested more than 64 levels deep"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "it is nested more than 64 levels deep"),
        (b'{"format": "test/1", "a": 1, "a": 2}', "'a' appears twice in one mapping. Remove one of them."),
        (b'{"b": [{"": 1, "": 2}]}', "'' appears twice in one mapping. Remove one of them."),
        (
            b'{"\\ud800": 1}',
            "the key '\\ud800' holds a lone surrogate (U+D800) at character 0, which is no valid text;"
            " decode the source with errors='replace'",
        ),
        (b"\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b'{"a": ', "Expecting value: line 1 column 7 (char 6)"),
        ('{"a": 1}'.encode("utf-16-le"), "it looks like UTF-16 without a byte order mark; save it as UTF-8"),
        (b"7" * 5000, "Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits; use"),
    ],
    ids=["open", "lists", "objects", "repeated", "repeated inside", "surrogate", "bytes", "cut", "utf-16", "digits"],
)
def test_a_file_that_cannot_be_read_as_json_is_one_line(tmp_path, content, problem):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    for read in (load_json, lambda path: read_json(path, FORM)):
        with pytest.raises(DataFileError) as error:
            read(path)
        assert str(error.value).startswith(f"{path} cannot be read as JSON: {problem}")
        assert len(str(error.value)) < 500
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[[[]]]", None),
        ("[[[[]]]]", "it is nested more than 3 levels deep"),
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9, 0]", None),
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]", "it holds more than 10 values"),
        ('"' + "x" * 98 + '"', None),
        ('"' + "x" * 99 + '"', "it is larger than 100 bytes, the limit"),
    ],
)
def test_limits_are_exact(tmp_path, content, problem):
    path = tmp_path / "a.json"
    path.write_text(content)
    if problem is None:
        assert load_json(path, SMALL) == json.loads(content)
        return
    with pytest.raises(DataFileError) as error:
        load_json(path, SMALL)
    assert str(error.value) == f"{path} cannot be read as JSON: {problem}"


def test_a_long_format_is_quoted_briefly(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"format": ["x" * 1000] * 1000}))
    with pytest.raises(DataFileError) as error:
        read_json(path, FORM)
    assert str(error.value).startswith(f"{path} has the format ['xxxx")
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda saved: saved["none"], "KeyError: 'none'"),
        (lambda saved: saved["list"].items(), "AttributeError: 'list' object has no attribute 'items'"),
        (lambda saved: saved["list"][3], "IndexError: list index out of range"),
        (lambda saved: int(saved["huge"]), "OverflowError: cannot convert float infinity to integer"),
        (lambda saved: {}["x" * 5000], "KeyError: 'xxx"),
    ],
    ids=["key", "type", "place", "number", "long"],
)
def test_whatever_is_missing_is_the_file_s_mistake(tmp_path, take, message):
    path = tmp_path / "a.json"
    write_json(path, FORM, {"list": [], "huge": float("inf")})
    with pytest.raises(DataFileError) as error, reading_json(path, FORM) as saved:
        take(saved)
    assert str(error.value).startswith(f"{path} is damaged: {message}")
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marks_tell_the_encoding(encoding):
    assert decoded("Öl 石油 😀".encode(encoding)) == "Öl 石油 😀"


@pytest.mark.parametrize("data", [b"", b"a", b"a\0b and more text", b"\0\0\0\0"])
def test_a_nul_here_and_there_is_no_utf_16(data):
    assert encoding_of(data) == "utf-8"


def test_equal_keys_in_different_objects_are_fine():
    assert parse_json('[{"a": 1}, {"a": {"a": 2}}]') == [{"a": 1}, {"a": {"a": 2}}]


def test_what_a_message_lists_or_passes_on():
    assert len(listed("x" * 1000 for _ in range(10**9))) < 1000
    assert listed(["a", 7]) == "'a', 7"
    assert one_line(ValueError("a\n  b\n")) == "a b"
    assert len(one_line(ValueError("x" * 10_000))) == 301


@pytest.mark.parametrize(
    ("asked", "question"),
    [
        ("post.csv", " Did you mean '{}/posts.csv'?"),
        ("posts.cvs", " Did you mean '{}/posts.csv'?"),
        ("posts.csv", ""),  # it is there
        ("folder.cs", ""),  # a folder is no file
        ("something else", ""),
        ("nowhere/post.csv", ""),
    ],
)
def test_a_file_that_is_not_there_may_have_a_neighbour(tmp_path, asked, question):
    (tmp_path / "posts.csv").write_text("")
    (tmp_path / "folder.csv").mkdir()
    assert near_file(tmp_path / asked) == question.replace("{}", str(tmp_path))
