"""Finished tables in a store: read back whole, several methods side by side, found by experiment and method."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fakes import FakeBackbone

from setscore import SetScoreClassifier
from setscore.errors import DataFileError, SetScoreError
from setscore.experiments import Scored, prepare, prepare_file, saved, score_dataset
from setscore.experiments.report import score_parts
from setscore.experiments.saved import find_saved, keep, key_of, known, method_of, one_saved, open_folder, title_of
from setscore.store import Entry, MemoryStore, StoreWarning, open_store

PLACE = "goemotions-development"


def same(one, other):
    assert (one.name, one.split, one.labels, one.ids) == (other.name, other.split, other.labels, other.ids)
    assert (one.notes, one.config, one.groups, one.facts) == (other.notes, other.config, other.groups, other.facts)
    for key in ("log_odds", "gold", "truncated"):
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key))


def model(folder, **options):
    return SetScoreClassifier(**{"backbone": FakeBackbone(), "store": folder} | options)


def test_what_is_kept_is_read_back(dataset, classifier, tmp_path):
    groups = tuple("even" if row % 2 == 0 else "odd" for row in range(len(dataset)))
    made = score_dataset(replace(dataset.noting("A note."), groups=groups), classifier)
    made = replace(made, log_odds=np.where(made.log_odds < -3, -np.inf, made.log_odds), facts={"device": "cpu"})
    keep(open_store(tmp_path), "experiment", "pool", made)
    same(one_saved(tmp_path).parts()["pool"], made)


def test_a_finished_table_is_used_again_without_asking(ready, tmp_path):
    first, second, told = model(tmp_path), model(tmp_path), []
    made = score_parts(ready, first)
    again = score_parts(ready, second, progress=lambda *step: told.append(step))
    assert (first.backbone.queries, second.backbone.queries) == (180, 0)
    assert told == [(f"pool: re-using the scores in {tmp_path}", 60, 60)]
    same(again["pool"], made["pool"])


@pytest.mark.parametrize(
    "change",
    [
        {"template": "article-about"},
        {"long_documents": "chunk"},
        {"backbone": FakeBackbone("exact")},
        {"scorer": "unary"},
        {"shortlist": "bm25:2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_method_stands_beside_the_first_and_overwrites_nothing(ready, tmp_path, change):
    if "shortlist" in change:
        pytest.importorskip("bm25s")
    first = score_parts(ready, model(tmp_path))
    other = score_parts(ready, model(tmp_path, **change))
    one, two = find_saved(tmp_path)
    same(one.parts()["pool"], first["pool"])
    same(two.parts()["pool"], other["pool"])
    assert one.title != two.title or "exact" in two.config.values() or "chunk" in two.config.values()


def test_the_same_weights_under_another_name_are_the_same_table(ready, tmp_path):
    score_parts(ready, model(tmp_path))
    renamed = model(tmp_path)
    renamed.backbone.spec = replace(renamed.backbone.spec, name="other", temperature=0.5)
    found = score_parts(ready, renamed)
    assert renamed.backbone.queries == 0
    assert found["pool"].config["temperature"] == 0.5  # of the model at hand
    assert len(find_saved(tmp_path)) == 1


def test_other_documents_of_the_same_name_take_the_place_of_the_first(dataset, tmp_path):
    score_parts(prepare_file(dataset), model(tmp_path))
    score_parts(prepare_file(dataset.head(7)), model(tmp_path))
    assert len(one_saved(tmp_path).parts()["pool"]) == 7
    score_parts(prepare_file(dataset), model(tmp_path))
    assert len(one_saved(tmp_path).parts()["pool"]) == 60  # the newest run, though its table is the older one


def test_notes_and_groups_are_those_of_the_documents_at_hand(dataset, classifier):
    store = MemoryStore()
    made = score_dataset(dataset, classifier)
    keep(store, "e", "pool", made)
    other = replace(dataset.noting("New."), groups=("a",) * 60)
    found = known(store, other, made.config)
    assert (found.notes, found.groups) == (("New.",), ("a",) * 60)
    assert known(store, dataset, dict(made.config) | {"template": "other {label} {document}"}) is None


def scored_by(title, documents=60, labels=("joy", "anger", "fear")):
    random = np.random.default_rng(1)
    shape, ids = (documents, len(labels)), tuple(map(str, range(documents)))
    gold = random.normal(size=shape) > 0
    config = {"title": title, "fingerprint": "f"}
    return Scored("n", "", labels, ids, random.normal(size=shape), gold, np.zeros(documents, dtype=bool), config=config)


def test_places_name_experiments_and_methods(ready, tmp_path):
    score_parts(ready, model(tmp_path))
    score_parts(ready, model(tmp_path, template="comment-is"))
    score_parts(replace(ready, saved_as="other-development"), model(tmp_path))
    store = open_store(tmp_path)
    keep(store, PLACE, "pool", scored_by("cosine"))
    keep(store, PLACE, "pool-13", scored_by("baselines/linear"))
    assert [(one.experiment, one.title) for one in find_saved(tmp_path)] == [
        (PLACE, "fake"),
        (PLACE, "fake, comment-is"),
        ("other-development", "fake"),
    ]  # cosines and baselines are left out beside a model
    assert one_saved(tmp_path / "other-development").title == "fake"
    assert one_saved(tmp_path / PLACE / "cosine").title == "cosine"
    assert list(one_saved(tmp_path / PLACE / "baselines/linear").parts()) == ["pool-13"]
    second = find_saved(tmp_path / PLACE)[1]
    assert one_saved(tmp_path / PLACE / "fake, comment-is").method == second.method
    assert one_saved(tmp_path / PLACE / second.method[:6]).title == "fake, comment-is"
    assert one_saved(tmp_path, experiment=PLACE, but=second.method).title == "fake"
    for place in (tmp_path / PLACE / "fake, comment-is", tmp_path / PLACE / second.method[:6]):
        with pytest.raises(SetScoreError, match="holds fake, comment-is, which is this run itself, and nothing to"):
            one_saved(place, experiment=PLACE, but=second.method)
    with pytest.raises(SetScoreError) as error:
        one_saved(tmp_path / PLACE)
    first = find_saved(tmp_path / PLACE)[0]
    assert str(error.value) == (
        f"{tmp_path / PLACE} holds 2 methods; name one of them: {tmp_path}/{PLACE}/fake (or {first.method[:6]});"
        f" {tmp_path}/{PLACE}/fake, comment-is (or {second.method[:6]})."
    )
    with pytest.raises(DataFileError) as error:
        one_saved(tmp_path / "other-development", experiment=PLACE)
    assert str(error.value) == (
        f"{tmp_path / 'other-development'} holds no scores of {PLACE}, but of other-development; `setscore evaluate"
        f" --save {tmp_path}` makes them."
    )


def test_titles_say_what_is_unlike_the_defaults(dataset):
    def title(**options):
        return title_of(score_dataset(dataset, SetScoreClassifier(backbone=FakeBackbone(), **options)).config)

    assert title() == "fake"
    assert title(template="comment-is", long_documents="chunk") == "fake, comment-is, chunk"
    assert title(template="Is it {label}?").startswith("fake, 'Document:\\n{document}")
    assert title(scorer="unary") == "fake, unary"


def test_the_version_and_the_documents_change_the_key_and_not_the_method(dataset, classifier):
    config = score_dataset(dataset, classifier).config
    for change in ({"version": "0"}, {"fingerprint": "0"}):
        assert key_of(config | change) != key_of(config)
        assert method_of(config | change) == method_of(config)
    for change in ({"template": "0"}, {"identity": "0"}, {"attention": "exact"}):
        assert method_of(config | change) != method_of(config)


@pytest.mark.parametrize("place", ["nothing", "nothing/goemotions-development"])
def test_where_there_is_nothing_it_says_how_to_make_it(tmp_path, place):
    with pytest.raises(DataFileError) as error:
        find_saved(tmp_path / place)
    assert str(error.value) == (
        f"{tmp_path / place} holds no scores. Make them with `setscore evaluate NAME --save {tmp_path / place}`."
    )
    assert list(tmp_path.iterdir()) == []  # looking makes nothing


def test_a_name_that_is_not_there_is_answered_with_those_that_are(ready, tmp_path):
    score_parts(ready, model(tmp_path))
    with pytest.raises(DataFileError) as error:
        find_saved(tmp_path / PLACE / "cosine")
    assert str(error.value) == (
        f"{tmp_path}/{PLACE}/cosine holds no scores. It has {tmp_path}/{PLACE}/fake. Make them with `setscore evaluate"
        f" NAME --save {tmp_path}`."
    )


@pytest.mark.parametrize("below", ["", "pool", "goemotions-development/pool", "e/baselines/linear/pool-13"])
def test_scores_of_version_0_1_are_refused(tmp_path, below):
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    (tmp_path / below / "scores.json").write_text(json.dumps({"format": "setscore.scored/1"}))
    for look in (open_folder, find_saved):
        with pytest.raises(DataFileError) as error:
            look(tmp_path)
        assert str(error.value) == (
            f"{tmp_path} holds scores of SetScore 0.1, which this version does not read. Score again into a new folder."
        )
    assert open_folder(None) is None


def test_a_damaged_table_is_put_aside_with_its_store(ready, tmp_path):
    score_parts(ready, model(tmp_path))
    store = open_store(tmp_path)
    key = one_saved(tmp_path).keys["pool"]
    store._file._connection.execute("UPDATE tables SET data = substr(data, 1, 500)")
    with pytest.warns(StoreWarning, match="damaged-1 now, and a new one is begun"):
        assert store.table(key) is None


def test_a_table_that_cannot_be_read_says_so(tmp_path):
    open_store(tmp_path).put_table(Entry("e", "m", "pool", "ab" * 16, {"config": {}}), b"no arrays")
    with pytest.raises(
        DataFileError, match=rf"^the scores {'ab' * 16} are damaged: .* Score again into another folder\.$"
    ):
        one_saved(tmp_path).parts()


def test_pickles_are_refused(dataset, classifier):
    import io

    store, buffer = MemoryStore(), io.BytesIO()
    np.savez(buffer, log_odds=np.array([{}]), gold=1, truncated=1, words=np.frombuffer(b"{}", dtype=np.uint8))
    made = score_dataset(dataset, classifier)
    keep(store, "e", "pool", made)
    store._tables[key_of(made.config)] = ({}, buffer.getvalue())
    with pytest.raises(DataFileError, match="are damaged"):
        known(store, dataset, made.config)


def test_rows_of_anything_are_stored_document_by_document(dataset, tmp_path):
    asked = []

    def score(texts):
        asked.extend(texts)
        return np.array([[len(text), 1.0, 2.0] for text in texts])

    store = open_store(tmp_path)
    first = saved.score_rows(store, {"title": "x"}, dataset.head(20), score, 8)
    whole = saved.score_rows(store, {"title": "x"}, dataset, score, 8)
    np.testing.assert_array_equal(whole[:20], first)
    assert sorted(asked) == sorted(dataset.texts)
    saved.score_rows(store, {"title": "y"}, dataset.head(2), score, 8)
    saved.score_rows(
        store, {"title": "x"}, dataset.head(2).with_labels(dict.fromkeys(dataset.labels.names, "other")), score
    )
    assert len(asked) == 64


def test_the_paper_has_parts_of_its_own(data, tmp_path):
    from made_up import write_goemotions

    write_goemotions(data, 250)
    write_goemotions(data, 30, "test")
    ready = prepare("goemotions", "paper", [13, 17], data_dir=data)
    score_parts(ready, model(tmp_path))
    assert sorted(one_saved(tmp_path).parts()) == ["test", "validation-13", "validation-17"]
