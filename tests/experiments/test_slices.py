import pytest
from made_up import write_goemotions

from setscore.datasets import load_files
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS, prepare, prepare_file, trials
from setscore.experiments.evaluation import split
from setscore.experiments.report import score_parts


def test_development_scores_one_pool(data):
    ready = prepare("goemotions", "development", [13, 17], data_dir=data)
    assert (ready.name, ready.saved_as, list(ready.parts)) == ("goemotions", "goemotions-development", ["pool"])
    assert len(ready.parts["pool"]) == 60


def test_the_paper_has_a_validation_slice_per_seed_and_the_test_split(tmp_path, classifier):
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
    scored = score_parts(ready, classifier)
    assert classifier.backbone.queries == (200 + 200 + 30) * 3
    drawn = trials(scored, [17])
    assert drawn[0].validation.ids == ready.parts["validation-17"].ids
    assert split(ready, 17) == (ready.parts["validation-17"], ready.parts["test"])
    assert drawn[0].test.ids == scored["test"].ids
    with pytest.raises(SetScoreError, match=r"there are no scores of validation-23; there are validation-13, test, "):
        trials(scored, [13, 23])


def test_a_quick_look_has_a_name_of_its_own(data):
    ready = prepare("goemotions", "development", [13], data_dir=data, limit=10)
    assert (ready.saved_as, len(ready.parts["pool"])) == ("goemotions-development-10", 10)
    write_goemotions(data, 250)
    write_goemotions(data, 30, "test")
    ready = prepare("goemotions", "paper", [13], data_dir=data, limit=10)
    assert {part: len(dataset) for part, dataset in ready.parts.items()} == {"validation-13": 10, "test": 10}


def test_own_documents_are_a_pool(tmp_path):
    (tmp_path / "own.csv").write_text("text,labels\na joy,joy\nb,\n")
    (tmp_path / "labels.txt").write_text("joy\nanger\n")
    ready = prepare_file(load_files(tmp_path / "own.csv", tmp_path / "labels.txt"))
    assert (ready.name, ready.saved_as, len(ready.parts["pool"])) == ("own.csv", "own.csv-development", 2)


def test_documents_are_split_as_their_scores_are(ready, scored):
    for trial in trials(scored, [13, 17]):
        validation, test = split(ready, trial.seed)
        assert (validation.ids, test.ids) == (trial.validation.ids, trial.test.ids)
    one = prepare_file(ready.parts["pool"].head(1))
    with pytest.raises(SetScoreError, match="goemotions has 1 document; at least 2 are needed, to fit on some of them"):
        split(one, 13)


def test_mistakes_and_the_papers_sets(data):
    with pytest.raises(
        SetScoreError, match=r"unknown slices 'papr'. Did you mean 'paper'\? Known: development, paper."
    ):
        prepare("goemotions", "papr", [13], data_dir=data)
    assert PAPER_SETS == ("goemotions", "reuters", "eurlex", "ecthr-b", "jigsaw", "aapd")
