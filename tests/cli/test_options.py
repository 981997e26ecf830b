"""Options that several commands share: the inventory on the command line, and the method."""

import pytest

from setscore.cli.options import Model
from setscore.datasets import parse_labels
from setscore.errors import DataFileError, LabelError, SetScoreError
from setscore.records import Label, LabelSet


@pytest.mark.parametrize(
    ("text", "names"),
    [("oil", ("oil",)), ("oil,sports", ("oil", "sports")), (" crude oil , v2.0 music ", ("crude oil", "v2.0 music"))],
)
def test_names_on_the_command_line(text, names):
    assert parse_labels(text) == LabelSet(tuple(Label(name) for name in names))


def test_a_name_longer_than_a_file_may_have_is_a_label():
    assert parse_labels("a" * 300).names == ("a" * 300,)


def test_a_file_on_the_command_line(tmp_path):
    (tmp_path / "a.txt").write_text("crude oil\nsports\n")
    assert parse_labels(str(tmp_path / "a.txt")).names == ("crude oil", "sports")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("oil,,sports", LabelError, "the name of label 1 is empty or blank. Labels count from 0."),
        ("oil,sports,", LabelError, "the name of label 2 is empty or blank. Labels count from 0."),
        ("", LabelError, "there are no labels. Give at least one, for example labels=['oil', 'sports']."),
        ("lab.ymal", LabelError, "'lab.ymal' looks like a file; a label file ends in .txt, .csv, .yaml, .yml, .json."),
        ("oil,oil", LabelError, "label 'oil' is listed twice, at 0 and 1. Remove one of them. Labels count from 0."),
        ("missing.yaml", DataFileError, "the label file missing.yaml cannot be read: No such file or directory."),
    ],
)
def test_command_line_labels_refused(text, error, message):
    with pytest.raises(error) as caught:
        parse_labels(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scorer": "per_labl"}, "unknown scorer 'per_labl'. Did you mean 'per_label'?"),
        (
            {"scorer": "per_label,unary"},
            "one scorer is needed here, got 'per_label,unary'; setscore compare ",
        ),
        ({"template": "expres"}, "unknown template 'expres'. Did you mean 'express'?"),
        ({"verbalizer": "yes"}, "unknown verbalizer 'yes'."),
        ({"attention": "share"}, "unknown attention mode of setscore-small 'share'. Did you mean 'shared'?"),
        ({"backbone": "setscore-mimi"}, "unknown backbone 'setscore-mimi'. Did you mean 'setscore-mini'?"),
        ({"long_documents": "chunks"}, "unknown long_documents mode 'chunks'. Did you mean 'chunk'?"),
        ({"pool": "maximum"}, "unknown pool 'maximum'."),
        ({"shortlist": "0"}, "an empty shortlist asks nothing: k is a whole number from 1, got 0."),
        ({"blend": "owncosine"}, "unknown blend 'owncosine'. Did you mean 'own-cosine'?"),
        ({"competition": 1.5}, "competition lies between 0 (independent) and 1 (one label), got 1.5."),
        ({"competition": float("nan")}, "competition lies between 0 (independent) and 1 (one label), got nan."),
    ],
)
def test_the_classifier_refuses_what_it_cannot_use_before_anything_is_read(options, message):
    with pytest.raises(SetScoreError) as caught:
        Model(**options).classifier("oil")
    assert str(caught.value).startswith(message)


def test_of_several_scorers_each_is_checked():
    assert Model(scorer="per_label, unary").classifier(several=True).scorer == "per_label, unary"
    with pytest.raises(SetScoreError, match="unknown scorer 'unari'"):
        Model(scorer="per_label,unari").classifier(several=True)


def test_options_reach_the_classifier():
    made = Model(template="article-about", competition=0.0, pool="max").classifier("oil", threshold=0.3)
    assert (made.template, made.competition, made.pool, made.threshold) == ("article-about", 0.0, "max", 0.3)
