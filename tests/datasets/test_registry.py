import re
import sys
from pathlib import Path

import pytest

from setscore.datasets import DATASETS, card, development_slices, load_dataset, paper_slices, registry
from setscore.datasets.source import SPLITS, descriptions
from setscore.errors import DataFileError, MissingExtraError

TEST_SIZES = {"goemotions": 1500, "reuters": 1000, "eurlex": 800, "ecthr": 1000, "jigsaw": 1500, "aapd": 1000}


class FakeHub:
    """Stands in for huggingface_hub: serves the repositories below a folder, and keeps what it was asked."""

    def __init__(self, root: Path, error: Exception | None = None) -> None:
        self.root, self.error, self.asked = root, error, []

    def snapshot_download(self, repo_id, *, repo_type, revision, allow_patterns):
        self.asked.append((repo_id, repo_type, revision, allow_patterns))
        if self.error:
            raise self.error
        return str(self.root / repo_id)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    fake = FakeHub(tmp_path / "hub")
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return fake


def test_every_dataset_of_the_paper_is_there():
    assert {name: DATASETS[name].test_size for name in TEST_SIZES} == TEST_SIZES
    for name, source in DATASETS.items():
        assert source.name == name
        assert set(source.sizes) <= set(SPLITS)
        assert source.validation in source.sizes


def test_unknown_names_and_splits_are_answered_with_the_nearest(tmp_path):
    with pytest.raises(DataFileError, match=r"unknown dataset 'go_emotions'. Did you mean 'goemotions'?"):
        load_dataset("go_emotions", "test")
    with pytest.raises(DataFileError, match=r"unknown split of aapd 'tests'. Did you mean 'test'?"):
        load_dataset("aapd", "tests", tmp_path)


def test_a_missing_folder_says_what_to_put_where(tmp_path):
    message = (
        r"aapd test: the folder .*aapd does not exist; text_test was looked for in it. Get text_train, .*DATA/aapd/"
    )
    with pytest.raises(DataFileError, match=message):
        load_dataset("aapd", "test", tmp_path)


def test_the_hub_is_asked_for_the_files_of_one_split_only(hub, put_parquet):
    put_parquet("google-research-datasets/go_emotions/simplified/test-00000-of-00001.parquet",
                {"text": ["Hm."], "labels": [[27]], "id": ["a"]}, hub.root)  # fmt: skip
    dataset = load_dataset("goemotions", "test")
    assert hub.asked == [
        ("google-research-datasets/go_emotions", "dataset", "main", ["simplified/test-*.parquet"]),
    ]
    assert (dataset.ids, dataset.cardinality) == (("a",), 1)


def test_both_tasks_of_ecthr_come_from_their_own_folders(hub, put_parquet):
    for task, labels in (("ecthr_a", []), ("ecthr_b", [1, 2])):
        columns = {"text": [["1. A fact."]], "labels": [labels or [0]]}
        put_parquet(f"coastalcph/lex_glue/{task}/validation-00000-of-00001.parquet", columns, hub.root)
    assert load_dataset("ecthr", "validation").cardinality == 1
    assert load_dataset("ecthr-b", "validation").cardinality == 2


def test_jigsaw_comes_as_csv(hub, put):
    head = "id,comment_text,toxic,severe_toxic,obscene,threat,insult,identity_hate\n"
    rows = "".join(f"id{i},Comment {i},1,0,0,0,0,0\n" for i in range(20))
    put("hub/thesofakillers/jigsaw-toxic-comment-classification-challenge/train.csv", head + rows)
    assert len(load_dataset("jigsaw", "test")) == 2


@pytest.mark.parametrize("error", [OSError("no route\nto host"), ValueError("offline mode"), RuntimeError("")])
def test_an_unreachable_hub_says_what_to_put_where(hub, error):
    hub.error = error
    message = (
        r"eurlex/test-\*.parquet of coastalcph/lex_glue cannot be fetched: (no route|offline mode|RuntimeError)\."
        r" Get the Parquet files .* Put the files into DATA/eurlex/ and pass data_dir=DATA."
    )
    with pytest.raises(DataFileError, match=message):
        load_dataset("eurlex", "test")


def test_a_cache_without_the_files_says_so(hub):
    with pytest.raises(DataFileError, match="is neither there nor in the cache"):
        load_dataset("eurlex", "test")


def test_aapd_has_no_home_and_the_hub_needs_its_extra(hub, monkeypatch):
    with pytest.raises(DataFileError, match=r"AAPD has no home on the Hugging Face Hub. Get text_train"):
        load_dataset("aapd", "test")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"EURLEX from the Hugging Face Hub needs the extra 'hub'"):
        load_dataset("eurlex", "test")


def test_descriptions_can_be_left_out(put, tmp_path):
    put("aapd/text_test", "a\n")
    put("aapd/label_test", "cs.IT\n")
    described, named = (load_dataset("aapd", "test", tmp_path, descriptions=value) for value in (True, False))
    assert described.labels.names == named.labels.names
    assert {label.description for label in named.labels.labels} == {None}
    assert described.labels.labels[0].description == "computational linguistics and grammar"


@pytest.fixture
def many(put, tmp_path):
    for part, count in (("val", 250), ("test", 1010)):
        put(f"aapd/text_{part}", "".join(f"{part} abstract {i}\n" for i in range(count)), ".xz")
        put(f"aapd/label_{part}", "cs.IT\n" * count)
    return tmp_path


def test_the_slices_of_the_paper(many):
    validation, test = paper_slices("aapd", 13, many)
    assert (len(validation), validation.split) == (200, "validation")
    assert test.ids == tuple(f"test-{i}" for i in range(1, 1001))
    assert validation.ids == load_dataset("aapd", "validation", many).draw(200, 13)[0].ids
    assert validation.ids != paper_slices("aapd", 17, many)[0].ids


def test_a_short_test_split_is_taken_whole_and_noted(many, monkeypatch):
    (many / "aapd" / "text_test.xz").unlink()
    (many / "aapd" / "text_test").write_text("a\nb\n")
    (many / "aapd" / "label_test").write_text("cs.IT\ncs.CL\n")
    _, test = paper_slices("aapd", 13, many)
    assert len(test) == 2
    assert test.notes == ("The paper's slice has 1000 documents; only 2 are there.",)


def test_development_slices_read_no_test_document(many):
    for path in (many / "aapd").glob("*_test*"):
        path.unlink()
    validation, rest = development_slices("aapd", 13, many)
    assert (len(validation), len(rest)) == (200, 50)
    assert not set(validation.ids) & set(rest.ids)


def test_reuters_draws_its_validation_documents_from_the_training_split(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(registry, "load_dataset", lambda name, split, *_, **__: asked.append(split) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        development_slices("reuters", 13, tmp_path)
    assert asked == ["train"]


@pytest.mark.parametrize("name", ["goemotions", "reuters", "eurlex", "ecthr", "jigsaw", "aapd"])
def test_every_label_has_a_short_description_that_completes_the_question(name):
    texts = descriptions(name)
    assert len(texts) == (127 if name == "eurlex" else DATASETS[name].labels)
    assert len(set(texts.values())) == len(texts)
    for text in texts.values():
        assert 2 <= len(text.split()) <= 8, text
        assert not re.search(r"[.?!;]$|^not? ", text), text


@pytest.mark.parametrize("name", DATASETS)
def test_a_card_says_what_one_must_know(name, tmp_path):
    source = DATASETS[name]
    lines = card(source)
    assert lines[0] == f"## {source.title} (`{name}`)"
    text = "\n".join(lines)
    for part in (source.origin, source.licence, source.obtain, f"{source.test_size:,}", *source.differs):
        assert part in text
    assert all(line == "" or line.startswith(("## ", "- ")) for line in lines)


def test_a_card_shows_what_was_counted(many):
    lines = card(DATASETS["aapd"], *development_slices("aapd", 13, many))
    assert "| validation | 200 | 54 | 1.00 |" in lines
    assert lines[-1] == "- validation: The rest after 200 of 250 documents, drawn with seed 13."
