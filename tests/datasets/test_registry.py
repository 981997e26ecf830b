import io
import re
import shutil
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from commands import invoke

from setscore.datasets import DATASETS, card, development_slices, jigsaw, load_dataset, paper_slices, registry, reuters
from setscore.datasets.files import MissingFilesError
from setscore.datasets.source import descriptions
from setscore.errors import DataFileError, MissingExtraError
from setscore.experiments import prepare
from setscore.experiments.training import training_documents

LOCAL = Path(__file__).parents[2] / "data"  # where a contributor puts files; git ignores it
PACKAGED = Path(registry.__file__).parent / "descriptions"
WHOLE = {"eurlex": 127}  # descriptions of labels that the set leaves out too
TEST_SIZES = {"goemotions": 1500, "reuters": 1000, "eurlex": 800, "ecthr": 1000, "jigsaw": 1500, "aapd": 1000}


class FakeHub:
    """Stands in for huggingface_hub: serves the repositories below a folder, and keeps what it was asked."""

    def __init__(self, root: Path, error: Exception | None = None) -> None:
        self.root, self.error, self.asked = root, error, []

    def snapshot_download(self, repo_id, *, repo_type, revision, allow_patterns):
        self.asked.append((repo_id, repo_type, revision, allow_patterns))
        if self.error:
            raise self.error
        folder = self.root / (repo_id if revision == "main" else f"{repo_id}@{revision.rpartition('/')[2]}")
        if revision != "main" and not folder.exists():
            raise OSError(f"404 Client Error: no revision {revision}\nof {repo_id}")
        return str(folder)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    fake = FakeHub(tmp_path / "hub")
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return fake


def test_every_dataset_of_the_paper_is_there():
    assert {name: DATASETS[name].test_size for name in TEST_SIZES} == TEST_SIZES
    for name, source in DATASETS.items():
        assert source.name == name
        assert set(source.sizes) <= {"train", "validation", "test"}
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


JIGSAW = "thesofakillers/jigsaw-toxic-comment-classification-challenge"
KINDS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")


@pytest.fixture
def jigsaw_rows(hub, put, put_parquet, monkeypatch):
    """Twenty comments as CSV in the main branch, and as two Parquet files in the converted one."""
    columns = {"id": [f"id{i}" for i in range(20)], "comment_text": [f"Comment {i}" for i in range(20)]}
    columns |= {kind: [int(i % 6 == number) for i in range(20)] for number, kind in enumerate(KINDS)}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    put(f"hub/{JIGSAW}/train.csv", "\n".join(lines))
    for part, rows in enumerate((slice(0, 15), slice(15, 20))):
        name = f"{JIGSAW}@parquet/default/train/{part:04}.parquet"
        put_parquet(name, {key: values[rows] for key, values in columns.items()}, hub.root)
    monkeypatch.setattr(jigsaw, "ROWS", 20)


@pytest.mark.usefixtures("jigsaw_rows")
def test_jigsaw_comes_as_parquet_and_else_as_csv(hub):
    converted = load_dataset("jigsaw", "test")
    assert hub.asked == [(JIGSAW, "dataset", "refs/convert/parquet", ["default/train/*.parquet"])]
    shutil.rmtree(hub.root / f"{JIGSAW}@parquet")
    plain = load_dataset("jigsaw", "test")
    assert hub.asked[-1] == (JIGSAW, "dataset", "main", ["train.csv"])
    assert converted.fingerprint == plain.fingerprint
    assert len(converted) == 2
    assert plain.notes == (
        *converted.notes,
        f"default/train/*.parquet of {JIGSAW} (refs/convert/parquet) cannot be fetched: 404 Client Error: no revision"
        f" refs/convert/parquet. train.csv of {JIGSAW} was read instead.",
    )


@pytest.mark.usefixtures("jigsaw_rows")
@pytest.mark.parametrize(
    ("lost", "message"), [(0, "holds 0001.parquet; the parts count up"), (1, "train holds 15 rows, train.csv has 20.")]
)
def test_a_missing_part_of_a_conversion_is_told(hub, lost, message):
    (hub.root / f"{JIGSAW}@parquet/default/train/{lost:04}.parquet").unlink()
    assert message in load_dataset("jigsaw", "test").notes[-1]


def test_all_homes_that_failed_are_named(hub):
    with pytest.raises(DataFileError) as error:
        load_dataset("jigsaw", "train")
    assert str(error.value).startswith(
        f"default/train/*.parquet of {JIGSAW} (refs/convert/parquet) cannot be fetched: "
    )
    assert f" train.csv of {JIGSAW} is neither there nor in the cache. Get train.csv from kaggle.com" in str(
        error.value
    )


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({}, None),
        ({"topics": None}, "has no column topics; it has ['title', 'body']."),
        ({"topics": ["earn", "acq", "tin"]}, "has str in the field 'topics': 'earn'."),
        ({"title": [1, 2, 3]}, "has int in the field 'title': 1."),
        (None, "test holds 3 stories; the test split of ModApte has 3299."),
    ],
)
def test_reuters_takes_the_mirror_only_if_it_is_what_it_should_be(hub, put_parquet, monkeypatch, columns, problem):
    stories = {"title": ["A &amp; B", None, "C"], "body": ["up 1\x03 pct\n", "Down.", None]}
    stories |= {"topics": [["earn", "jobs"], ["acq"], ["tin"]]} | (columns or {})
    name = "Tellurio/reuters-21578@parquet/default/test/0000.parquet"
    put_parquet(name, {key: values for key, values in stories.items() if values is not None}, hub.root)
    if columns is not None:
        monkeypatch.setitem(reuters.SIZES, "test", 3)
    sgml = '<REUTERS TOPICS="YES" LEWISSPLIT="TEST" NEWID="7"><TOPICS><D>earn</D></TOPICS><TITLE>T</TITLE></REUTERS>'
    archive(hub.root / "ucirvine/reuters21578/data/reuters21578.tar.gz", "reut2-000.sgm", sgml.encode())
    dataset = load_dataset("reuters", "test")
    if problem is None:
        assert dataset.texts == ("A & B\n\nup 1 pct", "Down.")
        assert dataset.ids == ("test-1", "test-2")
        assert dataset.gold[:, :2].tolist() == [[True, False], [False, True]]
        assert dataset.notes == (
            "1 of 3 stories have none of the 20 topics; left out.",
            "1 other topic of the kept stories was left out.",
        )
    else:
        assert dataset.ids == ("7",)
        assert f"{problem} data/reuters21578.tar.gz of ucirvine/reuters21578 was read instead." in dataset.notes[-1]


def archive(path: Path, name: str, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as file:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        file.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("error", [OSError("no route\nto host"), ValueError("offline mode"), RuntimeError("")])
def test_an_unreachable_hub_says_what_to_put_where(hub, error):
    hub.error = error
    message = (
        r"eurlex/test-\*.parquet of coastalcph/lex_glue cannot be fetched: (no route|offline mode|RuntimeError)\."
        r" Get the Parquet files .* Put the files into DATA/eurlex/ and pass data_dir=DATA \(--data-dir DATA"
    )
    with pytest.raises(DataFileError, match=message):
        load_dataset("eurlex", "test")


def test_a_cache_without_the_files_says_so(hub):
    with pytest.raises(DataFileError, match="is neither there nor in the cache"):
        load_dataset("eurlex", "test")


def test_the_hub_needs_its_extra(hub, monkeypatch):
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


def described_in(name: str) -> str:
    """The file of an entry's descriptions: by its name, or by its folder where several entries share one."""
    return name if (PACKAGED / f"{name}.yaml").exists() else DATASETS[name].folder


def test_every_file_of_descriptions_belongs_to_an_entry():
    assert {path.stem for path in PACKAGED.iterdir()} == {described_in(name) for name in DATASETS}


@pytest.mark.parametrize("name", DATASETS)
def test_every_label_has_a_short_description_that_completes_the_question(name):
    texts = descriptions(described_in(name))
    assert len(texts) == WHOLE.get(name, DATASETS[name].labels)
    assert len(set(texts.values())) == len(texts)
    for text in texts.values():
        assert 2 <= len(text.split()) <= 8, text
        assert not re.search(r"[.?!;]$|^not? ", text), text


@pytest.mark.parametrize(
    ("name", "split"),
    [(name, split) for name, one in DATASETS.items() if (LOCAL / one.folder).is_dir() for split in one.sizes],
)
def test_an_entry_agrees_with_the_files_in_data(name, split):
    try:
        dataset = load_dataset(name, split, LOCAL)
    except MissingFilesError as error:
        pytest.skip(str(error))
    assert (dataset.name, dataset.split, len(dataset.labels)) == (name, split, DATASETS[name].labels)
    assert all(label.description for label in dataset.labels.labels)
    if not dataset.notes:  # whole, and nothing stands in for it
        assert len(dataset) == DATASETS[name].sizes[split]


@pytest.mark.parametrize("name", DATASETS)
def test_a_card_says_what_one_must_know(name, tmp_path):
    source = DATASETS[name]
    lines = card(source)
    assert lines[0] == f"## {source.title} (`{name}`)"
    text = "\n".join(lines)
    for part in (
        source.origin,
        source.licence,
        source.obtain,
        *([] if source.test_size is None else [f"{source.test_size:,}"]),
        *source.differs,
        *source.unchecked,
    ):
        assert part in text
    assert all(line == "" or line.startswith(("## ", "- ")) for line in lines)


@pytest.fixture
def homeless(monkeypatch):
    """GoEmotions under another name, as if nobody had put its files anywhere."""
    source = replace(
        DATASETS["goemotions"], name="homeless", folder="letters", obtain="dev.tsv from its author", homes=()
    )
    monkeypatch.setitem(DATASETS, "homeless", source)


@pytest.mark.usefixtures("homeless")
def test_a_source_may_have_no_home():
    code, out, err = invoke("datasets", "homeless")
    assert (code, err) == (0, "")
    assert "\n- Home: none, so the files are only got by hand\n- By hand: dev.tsv from its author\n" in out
    with pytest.raises(DataFileError) as error:
        load_dataset("homeless", "test")
    assert str(error.value) == (
        "homeless test: there is no home to fetch its files from. Get dev.tsv from its author. Put the files into"
        " DATA/letters/ and pass data_dir=DATA (--data-dir DATA on the command line)."
    )
    code, _, err = invoke("evaluate", "homeless")
    assert code == 2
    assert "error: homeless validation: there is no home to fetch its files from. Get dev.tsv" in err


@pytest.fixture
def ours(put, tmp_path, monkeypatch):
    """A set that is not the paper's, without a training split."""
    sizes = {"validation": 40, "test": 3}
    source = replace(DATASETS["goemotions"], name="ours", sizes=sizes, test_size=None, differs=(), unchecked=())
    monkeypatch.setitem(DATASETS, "ours", source)
    put("goemotions/dev.tsv", "".join(f"Text {i}.\t{i % 28}\tv{i}\n" for i in range(40)))
    put("goemotions/test.tsv", "".join(f"Test {i}.\t{i}\tt{i}\n" for i in range(3)))
    return tmp_path


@pytest.mark.usefixtures("ours")
def test_a_set_that_is_not_the_papers_does_not_claim_to_be():
    assert "paper" not in "\n".join(card(DATASETS["ours"]))
    code, out, _ = invoke("datasets")
    assert code == 0
    assert re.search(r"^ours +28 +- +40 +3 +- ", out, re.MULTILINE)


def test_the_whole_test_split_of_a_set_that_is_not_the_papers(ours, monkeypatch):
    monkeypatch.setattr(registry, "VALIDATION_SIZE", 10)
    validation, test = paper_slices("ours", 13, ours)
    assert (len(validation), len(test), test.notes) == (10, 3, ())


def test_too_few_validation_documents_say_what_to_do(ours):
    message = (
        r"^ours validation has 40 documents; 200 of them are drawn to fit on. With --slices development \(slices ="
        r' "development" below \[dataset\] in a config\) half of them are.$'
    )
    with pytest.raises(DataFileError, match=message):
        paper_slices("ours", 13, ours)


def test_a_set_without_a_training_split_says_what_baselines_can_learn_from(ours):
    ready = prepare("ours", "development", [13], data_dir=ours)
    message = r"^ours has no train split, only validation, test. With --train validation linear learns from the"
    with pytest.raises(DataFileError, match=message):
        training_documents("linear", ready, "split", data_dir=ours)
    assert training_documents("linear", ready, "either", data_dir=ours) is None


def test_a_card_shows_what_was_counted(many):
    lines = card(DATASETS["aapd"], *development_slices("aapd", 13, many))
    assert "| validation | 200 | 54 | 1.00 |" in lines
    assert lines[-1] == "- validation: The rest after 200 of 250 documents, drawn with seed 13."
