"""`setscore ensemble` as a user runs it, on scores that are there."""

import numpy as np
import pytest
from commands import invoke

from setscore.experiments import Scored
from setscore.experiments.saved import keep
from setscore.store.folder import FolderStore


def save(folder, seed, noise, documents=80, labels=("joy", "anger", "fear")):
    rng = np.random.default_rng(1)
    truth = rng.normal(-1, 2, size=(documents, len(labels)))
    gold = truth > 0
    scores = truth + noise * np.random.default_rng(seed).normal(size=truth.shape)
    ids = tuple(f"d{row}" for row in range(documents))
    config = {"title": folder.name, "fingerprint": str(seed)}
    scored = Scored("made-up", "", labels, ids, scores, gold, np.zeros(documents, dtype=bool), config=config)
    store = FolderStore(folder.parent)  # side by side in one store
    keep(store, "made-up", "pool", scored)
    store.close()
    return f"{folder.parent}/made-up/{folder.name}"


@pytest.fixture
def saved(tmp_path):
    return (
        save(tmp_path / "one", 2, 1.0),
        save(tmp_path / "two", 3, 1.0),
        save(tmp_path / "other", 4, 1.0, documents=70),
    )


def test_members_the_mixture_and_the_oracle(saved):
    code, out, _ = invoke("ensemble", f"one={saved[0]}", f"two={saved[1]}")
    assert code == 0
    names = [line.split("  ")[0].strip() for line in out.splitlines()[1:5]]
    assert names == ["one", "two", "ensemble", "oracle ensemble"]
    assert "0.5 one + 0.5 two" in out
    scores = [float(line.split(" ± ")[0].split()[-1]) for line in out.splitlines()[1:5]]
    assert scores[2] > max(scores[:2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda one, two, other: [f"one={one}", f"other={other}"],
            "one has scores of 40 documents and 3 labels, other of 35",
        ),
        (lambda one, two, other: [f"one={one}"], "at least two members"),
        (
            lambda one, two, other: [f"{one}", f"b={two}"],
            "a member is NAME=PLACE, as in mini=scores/goemotions-development; got",
        ),
        (lambda one, two, other: [f"a={one}", f"a={two}"], "two members have the name 'a'"),
        (lambda one, two, other: [f"a={one}", f"b={two}/nothing"], "holds no scores"),
    ],
)
def test_mistakes(saved, make, message):
    code, _, err = invoke("ensemble", *make(*saved))
    assert code == 2
    assert message in err


def test_a_place_with_several_methods_asks_for_one(saved, tmp_path):
    code, _, err = invoke("ensemble", f"one={saved[0]}", f"two={tmp_path}")
    assert code == 2
    assert f"{tmp_path} holds 3 methods; name one of them: {tmp_path}/made-up/one (or " in err
