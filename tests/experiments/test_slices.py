import pytest
from fakes import FakeBackbone
from made_up import write_goemotions

from setscore import SetScoreClassifier
from setscore.datasets import load_files
from setscore.errors import DataFileError, SetScoreError
from setscore.experiments import PAPER_SETS, prepare, prepare_own, trials
from setscore.experiments.report import score_parts
from setscore.experiments.slices import load_parts, saved_experiments


def test_development_scores_one_pool(data):
    ready = prepare("goemotions", "development", [13, 17], data_dir=data)
    assert (ready.name, ready.folder, list(ready.parts)) == ("goemotions", "goemotions-development", ["pool"])
    assert len(ready.parts["pool"]) == 60


def test_the_paper_has_a_validation_slice_per_seed_and_the_test_split(tmp_path):
    write_goemotions(tmp_path, 250)
    write_goemotions(tmp_path, 30, "test")
    ready = prepare("goemotions", "paper", [13, 17], data_dir=tmp_path)
    assert {part: len(dataset) for part, dataset in ready.parts.items()} == {
        "validation-13": 200,
        "test": 30,
        "validation-17": 200,
    }
    assert ready.parts["validation-13"].ids != ready.parts["validation-17"].ids
    assert ready.parts["test"].notes == ("The paper's slice has 1500 documents; only 30 are there.",)
    backbone = FakeBackbone()
    scored = score_parts(ready, SetScoreClassifier(backbone=backbone), save=tmp_path / "scores")
    assert backbone.queries == (200 + 200 + 30) * 3
    drawn = trials(load_parts(tmp_path / "scores" / "goemotions-paper"), [17])
    assert drawn[0].validation.ids == ready.parts["validation-17"].ids
    assert drawn[0].test.ids == scored["test"].ids
    with pytest.raises(SetScoreError, match=r"there are no scores of validation-23; there are validation-13, test, "):
        trials(scored, [13, 23])


def test_a_quick_look_has_a_folder_of_its_own(data, tmp_path):
    ready = prepare("goemotions", "development", [13], data_dir=data, limit=10)
    assert (ready.folder, len(ready.parts["pool"])) == ("goemotions-development-10", 10)
    write_goemotions(data, 250)
    write_goemotions(data, 30, "test")
    ready = prepare("goemotions", "paper", [13], data_dir=data, limit=10)
    assert {part: len(dataset) for part, dataset in ready.parts.items()} == {"validation-13": 10, "test": 10}


def test_own_documents_are_a_pool(tmp_path):
    (tmp_path / "own.csv").write_text("text,labels\na joy,joy\nb,\n")
    (tmp_path / "labels.txt").write_text("joy\nanger\n")
    ready = prepare_own(load_files(tmp_path / "own.csv", tmp_path / "labels.txt"))
    assert (ready.name, ready.folder, len(ready.parts["pool"])) == ("own.csv", "own.csv-development", 2)


def test_saved_experiments_are_found(data, classifier, tmp_path):
    ready = prepare("goemotions", "development", [13], data_dir=data)
    score_parts(ready, classifier, save=tmp_path / "scores")
    place = tmp_path / "scores" / "goemotions-development"
    assert saved_experiments(tmp_path / "scores") == saved_experiments(place) == [place]
    assert saved_experiments(place / "pool") == [place / "pool"]
    assert load_parts(place)["pool"].ids == load_parts(place / "pool")["pool"].ids == ready.parts["pool"].ids
    with pytest.raises(DataFileError, match=r"nothing holds no scores. Make them with `setscore evaluate NAME --save"):
        saved_experiments(tmp_path / "nothing")


def test_mistakes_and_the_papers_sets(data):
    with pytest.raises(
        SetScoreError, match=r"unknown slices 'papr'. Did you mean 'paper'\? Known: development, paper."
    ):
        prepare("goemotions", "papr", [13], data_dir=data)
    assert PAPER_SETS == ("goemotions", "reuters", "eurlex", "ecthr-b", "jigsaw", "aapd")
