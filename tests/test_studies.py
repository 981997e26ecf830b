"""Studies of labelled documents, on made-up numbers in place of the development sets: what is drawn, measured, told."""

import json

import numpy as np
import pytest
from scipy.special import expit

from benchmarks import labelled as sets
from benchmarks.labelled import Labelled
from benchmarks.studies import few_documents, starts, suggest
from setscore import SetScoreClassifier, readout
from setscore.errors import SetScoreError
from setscore.records import LabelSet

N, M, D = 60, 3, 8
CHOICE, HELD = 20, 20


def unit(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def made(name="toy", n=N, *, minilm=True):
    """Documents whose labels follow a direction of their vectors; the log-odds know half of it."""
    random = np.random.default_rng(len(name))
    labels, vectors = unit(random.normal(size=(M, D))), unit(random.normal(size=(n, D)))
    truth = 8 * vectors @ labels.T - 1
    return Labelled(
        name,
        SetScoreClassifier(LabelSet.of([f"label {number}" for number in range(M)]), backbone="setscore-mini"),
        tuple(f"text {number}" for number in range(n)),
        log_odds=0.5 * truth + random.normal(size=truth.shape),
        gold=random.random(truth.shape) < expit(truth),
        vectors=vectors,
        labels=labels,
        minilm=unit(vectors + 0.1) if minilm else None,
    )


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Sets of sixty documents: twenty to choose by, twenty to measure on."""
    for name, value in (("CHOICE", CHOICE), ("HELD", HELD), ("LEAST_POOL", 30)):
        monkeypatch.setattr(sets, name, value)


@pytest.fixture
def toys(monkeypatch):
    asked = []

    def give(name, data_dir, folder, backbone, *, within=False):
        asked.append((name, backbone, within))
        return made(name, CHOICE if within else N, minilm="bare" not in name)

    for study in (few_documents, starts, suggest):
        monkeypatch.setattr(study, "labelled", give)
    return asked


def run(study, capsys, *given):
    study.main(["--data-dir", "data", "--save", "scores", *given])
    out, err = capsys.readouterr()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines()]
    return rows[:1] + rows[2:], err


def test_what_is_measured_on_is_never_drawn_nor_chosen_by():
    one = made()
    assert not set(one.held) & (set(one.pool) | set(one.choice))
    assert set(one.choice) <= set(one.pool)
    assert sorted([*one.held, *one.pool]) == list(range(N))
    assert not len(made(n=CHOICE).held)  # only the validation documents were wanted


def test_a_row_for_every_size_and_method(toys, capsys):
    rows, err = run(few_documents, capsys, "--sets", "toy", "other", "--sizes", "0", "12", "--draws", "1")
    assert rows[0] == ["documents", "method", "toy", "other", "mean"]
    ours = ["not fitting", "calibration", "linear", "mixture", "fit"]
    assert [tuple(row[:2]) for row in rows[1:]] == [
        ("0", "not fitting"), *(("12", name) for name in ours)
    ]  # fmt: skip
    for row in rows[1:]:
        micro = [float(cell.split(" / ")[0]) for cell in row[2:]]
        assert micro[2] == pytest.approx(np.mean(micro[:2]), abs=0.11)
    assert toys == [("toy", "setscore-small", False), ("other", "setscore-small", False)]
    lines = err.strip().splitlines()
    assert [line.split(":")[0] for line in lines] == ["12"]
    assert all("furthest below not fitting, calibration, linear: " in line for line in lines)


def test_named_methods_alone_and_their_draws_in_the_file(toys, capsys, tmp_path):
    path = tmp_path / "found.json"
    given = ("--sets", "toy", "--sizes", "12", "--methods", "fit", "calibration", "--json", str(path))
    rows, _ = run(few_documents, capsys, *given, "--draws", "3")
    assert [row[1] for row in rows[1:]] == ["calibration", "fit"]
    content = json.loads(path.read_text())
    assert (content["draws"], content["measured"]["backbone"]) == (3, "setscore-small")
    printed = [float(value) for value in rows[2][2].split(" / ")]
    assert content["found"]["12 fit"]["toy"][:2] == pytest.approx(printed, abs=0.05)


def test_setfit_is_measured_only_where_it_is_named(toys, capsys, monkeypatch):
    seen = []

    def instead(one, known, measured):
        seen.append(len(known))
        return few_documents.not_fitting(one, known, measured)

    monkeypatch.setitem(few_documents.METHODS, "setfit", instead)
    run(few_documents, capsys, "--sets", "toy", "--sizes", "5", "--draws", "1")
    assert not seen
    run(few_documents, capsys, "--sets", "toy", "--sizes", "5", "12", "--draws", "1", "--methods", "setfit")
    assert seen == [5, 12]


def test_a_draw_is_the_same_however_many_follow():
    found = []

    def spy(one, known, measured):
        found.append((known.tolist(), measured.tolist()))
        return few_documents.not_fitting(one, known, measured)

    one = made()
    few_documents.over_draws(spy, one, 10, 1)
    few_documents.over_draws(spy, one, 10, 3)
    assert found[0] == found[1]
    assert len({tuple(known) for known, _ in found[1:]}) == 3
    assert all(set(known) <= set(one.pool) and measured == one.held.tolist() for known, measured in found)


def test_within_stays_inside_the_validation_documents(toys, capsys):
    for study, given in ((few_documents, ("--sizes", "8", "--methods", "fit")), (suggest, ("--n", "6"))):
        run(study, capsys, "--sets", "toy", "--within", *given)
    assert [within for *_, within in toys] == [True, True]
    one, found = made(n=CHOICE), []

    def spy(one, known, measured):
        found.append(sorted([*known, *measured]))
        return few_documents.not_fitting(one, known, measured)

    few_documents.over_draws(spy, one, 8, 2, within=True)
    assert found == [list(range(CHOICE))] * 2  # what is not drawn is measured on


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--draws", "0"), "--draws is at least 1, got 0."),
        (("--sets", "bare"), "the linear head needs all-MiniLM: install the extra sbert, or name other --methods."),
        (("--methods", "svm"), "invalid choice: 'svm'"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(toys, capsys, given, told):
    with pytest.raises(SystemExit):
        few_documents.main(["--data-dir", "data", "--save", "scores", "--sizes", "5", "--sets", "toy", *given])
    assert told in capsys.readouterr().err


def test_without_the_encoder_other_methods_can_be_measured(toys, capsys):
    rows, _ = run(few_documents, capsys, "--sets", "bare", "--sizes", "5", "--methods", "fit", "--draws", "1")
    assert [row[1] for row in rows[1:]] == ["fit"]


def test_a_set_that_cannot_be_read_is_an_error(monkeypatch, capsys):
    def fail(*_, **__):
        raise SetScoreError("the file is not there.")

    for study in (few_documents, starts, suggest):
        monkeypatch.setattr(study, "labelled", fail)
        with pytest.raises(SystemExit):
            study.main(["--data-dir", "data", "--save", "scores", "--sets", "toy", "other", "third"])
        assert "error: the file is not there." in capsys.readouterr().err


def test_suggested_documents_are_candidates_and_none_comes_twice():
    one = made()
    for n in (6, 20):  # all chosen; a third of each round drawn at random
        known = suggest.suggested(one, one.pool, n)
        assert len(known) == len(set(known)) == n
        assert set(known) <= set(one.pool)
    assert not set(known) & set(one.held)


def test_suggestions_stand_beside_chance(toys, capsys, tmp_path):
    path = tmp_path / "found.json"
    rows, err = run(suggest, capsys, "--sets", "toy", "other", "--n", "12", "--json", str(path))
    assert rows[0] == ["set", "random", "suggest", "difference"]
    assert [row[0] for row in rows[1:]] == ["toy", "other"]
    found = json.loads(path.read_text())["found"]
    better = sum(chosen[0] > chance[0] for chance, chosen in found.values())
    assert err.strip().endswith(f"micro-F1 above random choice on {better} of 2 sets")


def test_answers_are_kept_and_validation_documents_apart(monkeypatch, tmp_path):
    """What the model is asked: the validation documents first, nothing twice; the same rows whichever way."""
    from made_up import write_goemotions

    data, asked = write_goemotions(tmp_path / "data", 24), []

    def ask(classifier, texts):
        asked.append(len(texts))
        values = np.array([[len(text), sum(map(ord, text))] for text in texts], dtype=float)
        return {"log_odds": np.tile(values[:, :1], len(classifier.labels)), "vectors": values, "labels": np.eye(2)}

    monkeypatch.setattr(sets, "_asked", ask)
    monkeypatch.setattr(sets, "_minilm", lambda path, texts: None)
    some = sets.labelled("goemotions", data, tmp_path / "scores", "setscore-mini", within=True)
    whole = sets.labelled("goemotions", data, tmp_path / "scores", "setscore-mini")
    sets.labelled("goemotions", data, tmp_path / "scores", "setscore-mini")
    assert asked == [CHOICE, 24 - CHOICE]
    assert whole.texts[:CHOICE] == some.texts
    assert len(set(whole.texts)) == len(whole.texts) == 24
    np.testing.assert_array_equal(whole.vectors[:CHOICE], some.vectors)
    np.testing.assert_array_equal(whole.vectors[:, 0], [len(text) for text in whole.texts])
    np.testing.assert_array_equal(whole.gold[:CHOICE], some.gold)
    assert whole.minilm is None


def test_a_set_takes_no_part_in_its_own_start(capsys, toys, monkeypatch):
    """Numbers are fitted on each set, their mean is printed, and each set starts from that of the others."""
    begun = []

    def spy(one, known, measured):
        begun.append((one.name, readout.BASES[1][0]))
        return few_documents.not_fitting(one, known, measured)

    monkeypatch.setitem(starts.METHODS, "fit", spy)
    rows, _ = run(starts, capsys, "--sets", "toy", "other", "third", "--sizes", "5", "--draws", "2")
    assert all(within for _, _, within in toys)
    own = {row[0]: np.array(row[1:], dtype=float) for row in rows[1:4]}
    np.testing.assert_allclose(np.array(rows[4][1:], dtype=float), np.mean(list(own.values()), axis=0), atol=0.02)
    assert [row[1] for row in rows if row[0] == "5"] == ["not fitting", "calibration", "fit"]
    assert [name for name, _ in begun] == ["toy", "toy", "other", "other", "third", "third"]
    for name, start in begun:
        others = np.mean([numbers for other, numbers in own.items() if other != name], axis=0)
        np.testing.assert_allclose(start, others, atol=0.02)
    assert readout.BASES[1][0] is readout.TYPICAL  # as before


def test_an_inventory_of_some_labels_is_drawn_anew(toys):
    drawn = [starts.of_some(made(), 2, np.random.default_rng(seed)) for seed in range(20)]
    assert {one.gold.shape for one in drawn} == {(N, 2)}
    assert len({one.classifier.labels.names for one in drawn}) > 1
    whole = made()
    for one in drawn:
        places = [whole.classifier.labels.names.index(name) for name in one.classifier.labels.names]
        np.testing.assert_array_equal(one.log_odds, whole.log_odds[:, places])
        np.testing.assert_array_equal(one.labels, whole.labels[places])


def test_two_sets_are_too_few_to_start_from(capsys, toys):
    with pytest.raises(SystemExit):
        run(starts, capsys, "--sets", "toy", "other")
    assert "at least three --sets are needed" in capsys.readouterr().err
