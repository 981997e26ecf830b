import json
from dataclasses import replace

import numpy as np
import pytest
from fakes import FakeBackbone

from setscore import SetScoreClassifier, __version__
from setscore.errors import DataFileError, LabelError, SetScoreError, TruncationWarning
from setscore.experiments import Scored, score_dataset, scored


def same(one, other):
    assert (one.name, one.split, one.labels, one.ids) == (other.name, other.split, other.labels, other.ids)
    assert (one.notes, one.config, one.groups) == (other.notes, other.config, other.groups)
    for key in ("log_odds", "gold", "truncated"):
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(scored, "BLOCK_QUESTIONS", 30)  # ten documents of three labels


def test_scores_are_those_of_the_classifier(dataset, classifier):
    found = score_dataset(dataset, classifier)
    expected = SetScoreClassifier(dataset.labels, backbone=FakeBackbone()).decision_function(dataset.texts)
    np.testing.assert_array_equal(found.log_odds, expected)
    np.testing.assert_array_equal(found.gold, dataset.gold)
    assert (found.ids, found.labels, len(found)) == (dataset.ids, dataset.labels.names, 60)
    assert found.config == {
        "backbone": "fake",
        "weights": None,
        "template": "Document:\n{document}\n\nQuestion: Does this document express {label}?\nAnswer:",
        "attention": "shared",
        "verbalizer": "yes/no",
        "long_documents": "truncate",
        "version": __version__,
        "fingerprint": dataset.fingerprint,
    }


@pytest.mark.usefixtures("small_blocks")
def test_blocks_do_not_matter(dataset):
    blocks = score_dataset(dataset, SetScoreClassifier(backbone=FakeBackbone()))
    whole = SetScoreClassifier(dataset.labels, backbone=FakeBackbone()).decision_function(dataset.texts)
    np.testing.assert_array_equal(blocks.log_odds, whole)


def test_what_is_saved_is_read_back(dataset, classifier, tmp_path):
    groups = tuple("even" if row % 2 == 0 else "odd" for row in range(len(dataset)))
    made = score_dataset(replace(dataset.noting("A note."), groups=groups), classifier)
    made.save(tmp_path / "a" / "b")
    same(Scored.load(tmp_path / "a" / "b"), made)
    made.take(np.arange(5)).save(tmp_path / "a" / "b")  # a second saving leaves nothing of the first
    assert len(Scored.load(tmp_path / "a" / "b")) == 5
    assert Scored.load(tmp_path / "a" / "b").groups == groups[:5]
    assert len(list((tmp_path / "a" / "b").iterdir())) == 2


def test_saved_scores_are_used_again_without_asking(dataset, backbone, classifier, tmp_path):
    told = []
    first = score_dataset(dataset, classifier, tmp_path / "scores")
    asked = backbone.queries
    again = score_dataset(dataset, classifier, tmp_path / "scores", lambda *what: told.append(what))
    assert asked == 180
    assert backbone.queries == asked
    assert told == [(60, 60, f"re-using the scores in {tmp_path / 'scores'}")]
    same(again, first)


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"template": "article-about"}, "template"),
        ({"long_documents": "chunk"}, "long_documents, overlap, pool"),
        ({"backbone": FakeBackbone("exact")}, "attention"),
    ],
)
def test_other_questions_are_asked_anew(dataset, classifier, tmp_path, change, differs):
    told = []
    score_dataset(dataset, classifier, tmp_path)
    other = SetScoreClassifier(**{"backbone": FakeBackbone()} | change)
    found = score_dataset(dataset, other, tmp_path, lambda *what: told.append(what))
    assert told[0] == (0, 60, f"scoring again: the scores in {tmp_path} have another {differs}")
    assert other.backbone.queries == 180
    same(Scored.load(tmp_path), found)


def test_other_documents_are_asked_anew(dataset, backbone, classifier, tmp_path):
    score_dataset(dataset, classifier, tmp_path)
    score_dataset(dataset.head(7), classifier, tmp_path)
    assert backbone.queries == 180 + 21
    assert len(Scored.load(tmp_path)) == 7


class Dying(FakeBackbone):
    """Is killed when it is asked for the third time."""

    def log_odds(self, queries):
        if self.calls == 2:
            raise KeyboardInterrupt
        return super().log_odds(queries)


@pytest.mark.usefixtures("small_blocks")
def test_a_run_that_was_killed_goes_on_where_it_stopped(dataset, backbone, classifier, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        score_dataset(dataset, SetScoreClassifier(backbone=Dying()), tmp_path)
    with pytest.raises(DataFileError, match=r"holds scores of 20 of 60 documents: the run was stopped. Run it again"):
        Scored.load(tmp_path)
    told = []
    resumed = score_dataset(dataset, classifier, tmp_path, lambda *what: told.append(what))
    assert backbone.queries == 40 * 3
    assert told[0] == (20, 60, f"going on with the scores in {tmp_path}, 20 were done")
    assert [done for done, _, _ in told] == [20, 30, 40, 50, 60]
    same(resumed, score_dataset(dataset, SetScoreClassifier(backbone=FakeBackbone())))
    same(Scored.load(tmp_path), resumed)


def test_a_kill_between_the_two_files_leaves_the_old_scores(dataset, classifier, tmp_path, monkeypatch):
    made = score_dataset(dataset, classifier)
    made.save(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(scored, "write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        made.take(np.arange(5)).save(tmp_path)
    same(Scored.load(tmp_path), made)


def test_truncated_documents_are_counted(dataset):
    classifier = SetScoreClassifier(backbone=FakeBackbone(context=75))
    long = dataset.take([0, 1])
    long = type(long)(long.name, long.split, ("word " * 100, long.texts[1]), long.ids, long.labels, long.gold)
    with pytest.warns(TruncationWarning, match="1 of 2 documents was truncated"):
        found = score_dataset(long, SetScoreClassifier(backbone=classifier.backbone, overlap=1))
    assert found.truncated.tolist() == [True, False]


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: (f / "scores.json").unlink(), "scores.json cannot be read: No such file or directory"),
        (lambda f: (f / "scores.json").write_text("{"), "scores.json cannot be read as JSON"),
        (lambda f: (f / "scores.json").write_text('{"format": "x"}'), "has the format 'x'; this version of SetScore"),
        (lambda f: arrays(f).unlink(), "cannot be read: No such file or directory. Delete its folder to score again."),
        (lambda f: arrays(f).write_bytes(b"PK"), "is damaged: its SHA-256 is not the recorded one. Delete its folder"),
        (lambda f: edit(f, "labels", ["joy"]), "scores.json is damaged: SetScoreError: 60 documents and 1 label have"),
        (lambda f: edit(f, "ids", ["a"]), "scores.json is damaged: SetScoreError: 1 document and 3 labels have"),
        (lambda f: edit(f, "config", None), "scores.json is damaged: TypeError"),
    ],
)
def test_broken_files_say_what_is_wrong(dataset, classifier, tmp_path, break_it, message):
    score_dataset(dataset, classifier, tmp_path)
    break_it(tmp_path)
    with pytest.raises(DataFileError) as error:
        Scored.load(tmp_path)
    assert message in str(error.value)


def arrays(folder):
    return next(folder.glob("*.npz"))


def edit(folder, key, value):
    content = json.loads((folder / "scores.json").read_text())
    (folder / "scores.json").write_text(json.dumps(content | {key: value}))


def test_pickles_are_refused(dataset, classifier, tmp_path):
    score_dataset(dataset, classifier, tmp_path)
    path = arrays(tmp_path)
    np.savez(path, log_odds=np.array([{}]), gold=1, truncated=1, done=1)
    edit(tmp_path, "sha256", scored.hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(DataFileError, match="is damaged: Object arrays cannot be loaded"):
        Scored.load(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(dataset, classifier, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFileError, match=r"scores cannot be written into .*file"):
        score_dataset(dataset, classifier).save(tmp_path / "file")


def test_mistakes_are_named(dataset, backbone):
    with pytest.raises(LabelError, match="the classifier has other labels than the dataset"):
        score_dataset(dataset, SetScoreClassifier(["joy"], backbone=backbone))
    with pytest.raises(SetScoreError, match="goemotions validation has no documents to score"):
        score_dataset(dataset.take([]), SetScoreClassifier(backbone=backbone))
    with pytest.raises(SetScoreError, match="there is something else among them"):
        Scored("n", "", ("a",), ("1",), np.array([[np.nan]]), np.array([[True]]), np.array([False]))
