"""Files of wordings: what is read, and what a broken one is told."""

import json

import pytest

from setscore.datasets.wordings import read_wordings
from setscore.errors import SetScoreError
from setscore.records import LabelSet

LABELS = LabelSet.of({"refund": "a request to get money back", "praise": None})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("w.yaml", "refund:\n- money back\n- 'no'\npraise: [thanks]\n"),
        ("w.YML", "praise: [thanks]\nrefund: [money back, 'no']\n"),
        ("w.json", json.dumps({"refund": ["money back", "no"], "praise": ["thanks"]})),
    ],
)
def test_wordings_are_lists_by_label(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_wordings(tmp_path / name, LABELS) == {"refund": ("money back", "no"), "praise": ("thanks",)}


DASHES = "Write each after a dash, in quotes where YAML reads something else than a text."
COLON = "Write the name and a colon, and below it each wording after a dash."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("w.txt", "refund\n", "a file of wordings ends in .yaml, .yml, .json; got w.txt."),
        ("none.yaml", None, "the file of wordings none.yaml cannot be read: No such file or directory."),
        ("w.json", "{", "the file of wordings w.json is broken: Expecting property name enclosed in double quotes"),
        ("w.yaml", "", f"w.yaml: wordings are lists of texts by the name of a label, got None. {COLON}"),
        (
            "w.yaml",
            "- refund\n",
            f"w.yaml: wordings are lists of texts by the name of a label, got ['refund']. {COLON}",
        ),
        ("w.yaml", "refnd: [x]\n", "w.yaml: unknown label 'refnd'. Did you mean 'refund'? Known: praise, refund."),
        ("w.yaml", "no: [x]\n", "w.yaml: the label False was read as bool, not text. Put it in quotes."),
        ("w.yaml", "refund: x\n", f"w.yaml: the wordings of 'refund' are a list of texts, got 'x'. {DASHES}"),
        ("w.yaml", "refund: []\n", f"w.yaml: the wordings of 'refund' are a list of texts, got []. {DASHES}"),
        ("w.yaml", "refund: [no]\n", f"w.yaml: the wordings of 'refund' are a list of texts, got [False]. {DASHES}"),
        ("w.yaml", "refund: ['']\n", f"w.yaml: the wordings of 'refund' are a list of texts, got ['']. {DASHES}"),
    ],
)
def test_a_broken_file_says_what_to_do(tmp_path, monkeypatch, name, content, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SetScoreError) as caught:
        read_wordings(name, LABELS)
    assert str(caught.value).startswith(message)
