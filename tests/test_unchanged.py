"""Log-odds, decisions and saved classifiers are those of version 0.1: reshaping the core changed none of them.

`data/unchanged.json` and `data/saved-0.1/` were written by the last commit before the core was reshaped.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from setscore import SetScoreClassifier
from setscore.errors import TruncationWarning
from setscore.records import LabelSet
from setscore.store import MemoryStore

DATA = Path(__file__).parent / "data"
BEFORE = json.loads((DATA / "unchanged.json").read_text(encoding="utf-8"))
TEXTS = BEFORE["documents"]
# Log-odds. Another processor rounds int8 otherwise, and since then a row is as wide in a batch as it is alone: of 924
# log-odds on the machine that wrote the file, 13 moved by more than 0.02, the farthest by 0.050.
CLOSE = 0.06

MODEL = "setscore-mini"  # the only one that version 0.1 had
LABELS = LabelSet.of(BEFORE["labels"]).asked_by("description")  # as version 0.1 asked them
STORE = MemoryStore()  # fitted classifiers ask the same questions

pytestmark = pytest.mark.filterwarnings(f"ignore::{TruncationWarning.__module__}.TruncationWarning")


def same_decisions(found, before, probabilities, thresholds):
    """A decision may differ only where its probability lies on the threshold."""
    sure = np.abs(probabilities - thresholds) > CLOSE
    np.testing.assert_array_equal(np.where(sure, found, 0), np.where(sure, before, 0))
    assert sure.mean() > 0.7


@pytest.mark.parametrize("way", BEFORE["ways"])
def test_log_odds_and_decisions_before_fit(way):
    model = SetScoreClassifier(LABELS, **{"backbone": MODEL} | BEFORE["ways"][way])
    before = np.array([[-np.inf if u is None else u for u in row] for row in BEFORE["log_odds"][way]])
    predictions = model.classify(TEXTS)
    np.testing.assert_allclose(predictions.scores.log_odds, before, atol=CLOSE)
    thresholds = model.current_calibration().thresholds_
    same_decisions(predictions.decisions, BEFORE["decisions"][way], predictions.probabilities, thresholds)


@pytest.mark.parametrize("name", [name for name, found in BEFORE["fitted"].items() if found["way"] is not None])
def test_a_fit_chooses_what_it_chose(name):
    before = BEFORE["fitted"][name]
    model = SetScoreClassifier(LABELS, backbone=MODEL, head="none", store=STORE, **before["way"]).fit(
        BEFORE["fitted_on"], BEFORE["gold"]
    )
    check(model, before)


@pytest.mark.parametrize("name", BEFORE["fitted"])
def test_classifiers_that_version_0_1_saved_load_and_predict_the_same(name):
    model = SetScoreClassifier.load(DATA / "saved-0.1" / f"{name}.json").set_params(store=STORE)
    assert model.regime == ("zero-shot" if name == "unfitted" else "calibrated")
    check(model, BEFORE["fitted"][name])


def check(model, before):
    found = model.predict_proba(TEXTS)
    np.testing.assert_allclose(found, np.array(before["probabilities"]), atol=CLOSE)
    same_decisions(model.predict(TEXTS), before["decisions"], found, model.current_calibration().thresholds_)
