"""Label files: every layout gives the same inventory, and every broken file says what is wrong with it."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from setscore.datasets import labels as labels_module
from setscore.datasets import read_labels
from setscore.datasets.yaml_values import parse_yaml
from setscore.errors import DataFileError, LabelError
from setscore.records import LabelSet
from setscore.storage import Limits

NAMES = LabelSet.of(["crude oil", "sports"])
NOT_TEXT = " not text. Put it in quotes, or leave it empty for none."
DESCRIBED = LabelSet.of({"crude oil": "oil, gas and fuel", "sports": None})


@pytest.fixture
def write(tmp_path):
    def write_file(name: str, content: str | bytes):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("a.txt", "crude oil\nsports\n", NAMES),
        ("a.txt", "\n  crude oil \r\n\r\n sports", NAMES),
        ("A.TXT", "crude oil\nsports\n", NAMES),
        ("a.txt", b"\xef\xbb\xbfcrude oil\nsports\n", NAMES),
        ("a.txt", "oil, gas\n", LabelSet.of(["oil, gas"])),
        ("a.csv", "crude oil\nsports\n", NAMES),
        ("a.csv", "name\ncrude oil\nsports\n", NAMES),
        ("a.csv", "Name , Description\ncrude oil,\nsports\n\n", NAMES),
        ("a.csv", 'name,description\ncrude oil,"oil, gas and fuel"\nsports,\n', DESCRIBED),
        ("a.csv", 'description,name\n"oil, gas and fuel",crude oil\n,sports\n', DESCRIBED),
        ("a.csv", b'\xef\xbb\xbfname,description\r\ncrude oil,"oil, gas and fuel"\r\nsports,\r\n', DESCRIBED),
        ("a.csv", 'name,description,\ncrude oil,"oil, gas and fuel",\nsports,,\n', DESCRIBED),
        ("a.csv", 'name,description\noil,"crude\nand ""gas"""\n', LabelSet.of({"oil": 'crude\nand "gas"'})),
        ("a.csv", '"oil, gas"\n', LabelSet.of(["oil, gas"])),
        ("a.yaml", "- crude oil\n- sports\n", NAMES),
        ("a.yml", "- crude oil\n- sports\n", NAMES),
        ("a.yaml", "crude oil: oil, gas and fuel\nsports:\n", DESCRIBED),
        ("a.yaml", 'crude oil: oil, gas and fuel\nsports: ""\n', DESCRIBED),
        ("a.yaml", '- name: crude oil\n  description: "oil, gas and fuel"\n- name: sports\n', DESCRIBED),
        ("a.yaml", "- name: crude oil\n  description: oil, gas and fuel\n- sports\n", DESCRIBED),
        ("a.yaml", b"\xef\xbb\xbf- crude oil\n- sports\n", NAMES),
        ("a.yaml", '- "no"\n- "1"\n', LabelSet.of(["no", "1"])),
        ("a.json", '["crude oil", "sports"]', NAMES),
        ("a.json", '{"crude oil": "oil, gas and fuel", "sports": null}', DESCRIBED),
        ("a.json", '[{"name": "crude oil", "description": "oil, gas and fuel"}, {"name": "sports"}]', DESCRIBED),
        ("a.json", b'\xef\xbb\xbf["crude oil", "sports"]', NAMES),
        ("a.json", '["Öl", "日本"]'.encode(), LabelSet.of(["Öl", "日本"])),
    ],
)
def test_every_layout(write, name, content, labels):
    assert read_labels(write(name, content)) == labels


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.md", "oil\n", "a label file ends in .txt, .csv, .yaml, .yml, .json; got '.md'."),
        ("labels", "oil\n", "a label file ends in .txt, .csv, .yaml, .yml, .json; got 'no ending'."),
        ("a.yaml", "oil: [unclosed\n", "is broken: while parsing a flow sequence"),
        ("a.yaml", "- oil\nsports: x\n", "is broken: while parsing a block collection"),
        ("a.yaml", "- !!python/name:os.system\n", "is broken: could not determine a constructor"),
        ("a.yaml", "", "the file is empty. Labels are a list, or a mapping of names to descriptions."),
        ("a.yaml", "oil\n", "labels are a list or a mapping, got str. Write a dash"),
        ("a.yaml", "oil: a request: crude\n", "at line 1, column 15. Put a text that holds a colon in quotes"),
        (
            "a.txt",
            "oil: crude oil\nsports: games\n",
            "every line is like 'oil: crude oil', and a .txt file holds names",
        ),
        ("a.json", '{"format": "setscore.classifier/2"}', "this is a saved classifier, which has labels of its own"),
        ("a.json", '["oil",', "is broken: Expecting value: line 1 column 8 (char 7)"),
        ("a.json", "[" * 100_000, "is broken: it is nested more than 64 levels deep"),
        ("a.json", "7", "labels are a list or a mapping, got int."),
        ("a.csv", 'name,description\noil,"crude\nsports,ball\n', "is broken: unexpected end of data"),
        # Parsers keep the last of equal keys and say nothing; a description would be lost.
        ("a.yaml", "oil: a\nsports: b\noil: c\n", "is broken: 'oil' appears twice in one mapping. Remove one of them."),
        ("a.json", '{"oil": "a", "oil": "c"}', "is broken: 'oil' appears twice in one mapping. Remove one of them."),
        ("a.csv", "name,Name\noil,gas\n", "the header has the column 'name' twice. Remove one of them."),
        (
            "a.json",
            '{"oil": {"par\\ud800ent": "x"}}',
            "is broken: the key 'par\\ud800ent' holds a lone surrogate (U+D800)",
        ),
        ("a.yaml", "[" * 100_000, "is broken: it is nested more than 64 levels deep"),
        ("a.yaml", "a: &a [*a]\n", "is broken: the alias 'a' refers to itself"),
        ("a.yaml", "- !!bool maybe\n", "is broken: a value is not what its tag says (KeyError: 'maybe')"),
        ("a.yaml", "- !!timestamp noon\n", "is broken: a value is not what its tag says (AttributeError:"),
        ("a.yaml", "- \x00\n", "is broken: unacceptable character #x0000: special characters are not allowed in "),
        ("a.csv", 'name\n"oil"x\n', "is broken: ',' expected after '\"'"),
        ("a.csv", "label,text\noil,crude\n", "several columns needs a header with 'name'; got ['label', 'text']."),
        ("a.csv", "oil,sports,music\n", "several columns needs a header with 'name'; got ['oil', 'sports', 'music']."),
        (
            "a.csv",
            "name,description\noil,crude, refined\n",
            "['oil', 'crude', ' refined'] has more cells than the head",
        ),
        ("a.txt", b"oil\n\xff\n", "is broken: 'utf-8' codec can't decode byte 0xff in position 4"),
        (
            "a.yaml",
            "- name: oil\n  descripton: crude\n",
            "a label has a 'name' and perhaps a 'description' and a 'parent', got {'descripton': 'crude', 'name",
        ),
        (
            "a.json",
            '[{"description": "crude"}]',
            "a label has a 'name' and perhaps a 'description' and a 'parent', got {'descript",
        ),
    ],
)
def test_broken_files(write, name, content, message):
    path = write(name, content)
    with pytest.raises(DataFileError) as error:
        read_labels(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert len(str(error.value)) < 500
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        # YAML 1.1 reads these as booleans and numbers; "no" is a fine label, so guessing would be wrong either way.
        ("a.yaml", "- oil\n- no\n", "the label False was read as bool, not text. Put it in quotes."),
        ("a.yaml", "- on\n", "the label True was read as bool, not text. Put it in quotes."),
        ("a.yaml", "- 1\n", "the label 1 was read as int, not text. Put it in quotes."),
        ("a.yaml", "- 2020-01-31\n", "the label datetime.date(2020, 1, 31) was read as date, not text."),
        ("a.yaml", "no: the answer no\n", "the label False was read as bool, not text. Put it in quotes."),
        ("a.yaml", "- name: 7\n", "the label 7 was read as int, not text. Put it in quotes."),
        ("a.yaml", "- [oil, sports]\n", "the label ['oil', 'sports'] was read as list, not text."),
        ("a.yaml", "oil: no\n", "the description of label 'oil' was read as bool (False)," + NOT_TEXT),
        ("a.yaml", "oil:\n  description: off\n", "the description of label 'oil' was read as bool (False)," + NOT_TEXT),
        ("a.yaml", "- name: oil\n  description: 0\n", "the description of label 'oil' was read as int (0)," + NOT_TEXT),
        ("a.yaml", "- name: oil\n  parent: no\n", "the parent of label 'oil' was read as bool (False)," + NOT_TEXT),
        ("a.yaml", "oil:\n  parent: on\n", "the parent of label 'oil' was read as bool (True)," + NOT_TEXT),
        ("a.yaml", "oil:\n  parent: 7\n", "the parent of label 'oil' was read as int (7)," + NOT_TEXT),
        ("a.yaml", "oil:\n  parent: 0\n", "the parent of label 'oil' was read as int (0)," + NOT_TEXT),
        ("a.yaml", "oil:\n  parent: [gas]\n", "the parent of label 'oil' was read as list (['gas'])," + NOT_TEXT),
        ("a.json", '{"oil": {"parent": {}}}', "the parent of label 'oil' was read as dict ({})," + NOT_TEXT),
        ("a.json", '{"oil": [[[["a"]]]]}', "the description of label 'oil' was read as list ([[[...]]])," + NOT_TEXT),
        ("a.json", "[1, 2]", "the label 1 was read as int, not text. Put it in quotes."),
        ("a.json", '["oil", null]', "the name of label 1 is None, not a text. Labels count from 0."),
        ("a.json", '["oil", " "]', "the name of label 1 is empty or blank. Labels count from 0."),
        ("a.json", '["\\ud800"]', "the name of label 0 holds a lone surrogate (U+D800) at character 0"),
        ("a.csv", "name,description\n,crude\n", "the name of label 0 is empty or blank."),
        ("a.csv", "description,name\ncrude\n", "the name of label 0 is empty or blank."),
        (
            "a.txt",
            "oil\nsports\noil\n",
            "label 'oil' is listed twice, at 0 and 2. Remove one of them. Labels count from 0.",
        ),
        (
            "a.csv",
            "name\noil\nsports\noil\n",
            "label 'oil' is listed twice, at 0 and 2. Remove one of them. Labels count from 0.",
        ),
        (
            "a.yaml",
            "- oil\n- oil\n",
            "label 'oil' is listed twice, at 0 and 1. Remove one of them. Labels count from 0.",
        ),
        ("a.txt", " \n\n", "there are no labels. Give at least one"),
        ("a.csv", "", "there are no labels. Give at least one"),
        ("a.csv", "name,description\n", "there are no labels. Give at least one"),
        ("a.yaml", "[]", "there are no labels. Give at least one"),
        ("a.json", "{}", "there are no labels. Give at least one"),
    ],
)
def test_labels_refused_say_the_file(write, name, content, message):
    path = write(name, content)
    with pytest.raises(LabelError) as error:
        read_labels(path)
    assert str(error.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    "first",
    [
        "a0: &a0 [" + ",".join(["lol"] * 9) + "]",
        "a0: &a0 {lol: lol}",
    ],
)
def test_aliases_that_multiply_are_refused_at_once(write, first):
    # Some 400 bytes that stand for 9^9 values: walking through them or printing them would never end.
    content = "\n".join([first, *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))])
    path = write("a.yaml", content)
    with pytest.raises(DataFileError) as error:
        read_labels(path)
    assert str(error.value) == (
        f"the label file {path} is broken: it holds more than 1,000,000 values, aliases written out"
    )
    merges = "\n".join(["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40))])
    with pytest.raises(DataFileError, match="is broken: it holds more than 1,000,000 values, aliases written out"):
        read_labels(write("b.yaml", merges))


def test_a_chain_of_aliases_is_as_deep_as_it_is_written_out(write):
    content = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 100))])
    with pytest.raises(DataFileError, match="is broken: it is nested more than 64 levels deep"):
        read_labels(write("a.yaml", content))


def test_an_alias_that_saves_writing_is_fine(write):
    content = "- name: oil\n  description: &d fuel\n- name: gas\n  description: *d\n"
    assert read_labels(write("a.yaml", content)) == LabelSet.of({"oil": "fuel", "gas": "fuel"})


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.csv", "a.txt"])
def test_a_file_that_is_too_large_is_not_read(write, monkeypatch, name):
    small = Limits(size=100)
    monkeypatch.setattr(labels_module, "ROW", small)
    monkeypatch.setattr(labels_module, "YAML", small)
    path = write(name, "x" * 101)
    with pytest.raises(DataFileError) as error:
        read_labels(path)
    assert str(error.value) == f"the label file {path} is broken: it is larger than 100 bytes, the limit"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "Öl\nsports\n"),
        ("a.csv", "name\nÖl\nsports\n"),
        ("a.yaml", "- Öl\n- sports\n"),
        ("a.json", '["Öl", "sports"]'),
    ],
)
def test_what_windows_saves_is_read(write, encoding, name, content):
    assert read_labels(write(name, content.encode(encoding))).names == ("Öl", "sports")


def test_utf_16_without_a_mark_says_what_to_do(write):
    path = write("a.txt", "oil\nsports\n".encode("utf-16-le"))
    with pytest.raises(DataFileError) as error:
        read_labels(path)
    assert str(error.value) == (
        f"the label file {path} is broken: it looks like UTF-16 without a byte order mark; save it as UTF-8"
    )


@given(st.text(st.sampled_from("ab:-?&*<>[]{},|#!%'\"\n 0.\\~"), max_size=40))
def test_any_yaml_is_a_value_or_one_line(text):
    problem = ""
    try:
        parse_yaml(text)
    except ValueError as error:
        problem = str(error)
    assert len(problem) < 400
    assert "\n" not in problem


def test_missing_file(tmp_path):
    with pytest.raises(DataFileError) as error:
        read_labels(tmp_path / "none.txt")
    assert str(error.value) == f"the label file {tmp_path / 'none.txt'} cannot be read: No such file or directory."


def test_a_folder_is_no_file(tmp_path):
    folder = tmp_path / "labels.txt"
    folder.mkdir()
    with pytest.raises(DataFileError, match=r"labels\.txt cannot be read: Is a directory\.$"):
        read_labels(folder)


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
inventories = st.lists(names, min_size=1, max_size=6, unique=True)


@given(inventories.flatmap(lambda keys: st.fixed_dictionaries({key: st.none() | names for key in keys})))
def test_what_json_and_yaml_write_is_read_back(tmp_path_factory, labels):
    folder = tmp_path_factory.mktemp("labels")
    (folder / "a.json").write_text(json.dumps(labels), encoding="utf-8")
    (folder / "a.yaml").write_text(yaml.safe_dump(labels, sort_keys=False, allow_unicode=True), encoding="utf-8")
    assert read_labels(folder / "a.json") == LabelSet.of(labels)
    assert read_labels(folder / "a.yaml") == LabelSet.of(labels)
