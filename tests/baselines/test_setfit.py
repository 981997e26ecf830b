"""SetFit on a tiny encoder in the true format: it learns, tells, and goes on after a kill."""

import sys

import numpy as np
import pytest
from baselines import tiny

from setscore.baselines import load_baseline
from setscore.errors import BackboneError, MissingExtraError, SetScoreError
from setscore.records import LabelSet

pytest.importorskip("setfit")

LABELS = LabelSet.of(["oil", "match", "song"])
TEXTS = tuple(f"the {word} is very {how}" for word in LABELS.names for how in ("good", "bad", "about", "rain"))
GOLD = np.repeat(np.eye(3, dtype=bool), 4, axis=0)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return tiny.sentence_encoder(tmp_path_factory.mktemp("tiny"))


def test_it_learns_a_tiny_set_and_shows_progress(checkpoint):
    told = []
    model = load_baseline("setfit", checkpoint=checkpoint, steps=12, progress=lambda *step: told.append(step))
    scores = model.fit(TEXTS, GOLD, LABELS).score(TEXTS, LABELS).log_odds
    np.testing.assert_array_equal(scores.argmax(axis=1), GOLD.argmax(axis=1))
    assert [step for _, step, _ in told] == list(range(1, told[0][2] + 1))
    assert 1 <= told[0][2] <= 12
    assert told[0][0].startswith("training, loss ")


def test_training_goes_on_after_a_kill(checkpoint, tmp_path):
    class KilledError(Exception):
        pass

    def kill(what, step, steps):
        if step == 5:
            raise KilledError

    options = {"checkpoint": checkpoint, "steps": 8, "save_every": 2}
    straight = load_baseline("setfit", **options).fit(TEXTS, GOLD, LABELS)
    with pytest.raises(KilledError):
        load_baseline("setfit", folder=tmp_path, progress=kill, **options).fit(TEXTS, GOLD, LABELS)
    steps = []
    resumed = load_baseline("setfit", folder=tmp_path, progress=lambda _, step, __: steps.append(step), **options)
    again = resumed.fit(TEXTS, GOLD, LABELS)
    assert steps[0] == 5
    np.testing.assert_allclose(again.score(TEXTS, LABELS).log_odds, straight.score(TEXTS, LABELS).log_odds, atol=1e-3)


def test_a_label_without_documents_stays_at_the_floor_and_none_at_all_is_an_error(checkpoint):
    gold = GOLD & np.array([True, True, False])
    model = load_baseline("setfit", checkpoint=checkpoint, steps=1, length=8).fit(TEXTS, gold, LABELS)
    scores = model.score(TEXTS, LABELS).log_odds
    assert np.ptp(scores[:, 2]) == 0
    assert (scores[:, 2] < scores[:, :2].min()).all()
    with pytest.raises(SetScoreError, match="none of 3 labels has documents with it and without it"):
        load_baseline("setfit", checkpoint=checkpoint).fit(TEXTS, np.zeros_like(GOLD), LABELS)


def test_documents_without_a_label_show_what_a_label_in_all_others_is_not(checkpoint):
    gold = np.array([[True, number < 4, False] for number in range(8)] + [[False] * 3] * 4)
    model = load_baseline("setfit", checkpoint=checkpoint, per_label=4, steps=12).fit(TEXTS, gold, LABELS)
    scores = model.score(TEXTS, LABELS).log_odds
    assert model.usable == (0, 1)
    assert scores[:8, 0].mean() > scores[8:, 0].mean()
    alike = np.repeat([[True, True, False]], 4, axis=0)
    alike[0, 1] = False  # every pair shares a label: there is nothing to hold apart
    assert load_baseline("setfit", checkpoint=checkpoint, steps=2).fit(TEXTS[:4], alike, LABELS).usable == (1,)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "setfit", None)
    with pytest.raises(MissingExtraError, match=r"SetFit needs the extra 'baselines'"):
        load_baseline("setfit").fit(TEXTS, GOLD, LABELS)


def test_an_encoder_that_cannot_be_had_says_which_files_to_put_where(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BackboneError, match=r"cannot be loaded: .*modules.json.* into a folder and give that folder"):
        load_baseline("setfit", checkpoint=str(tmp_path / "empty")).fit(TEXTS, GOLD, LABELS)
