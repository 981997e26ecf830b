"""Choosing what stands in before `fit`: the table over competitions, and what is chosen by it."""

import json

import numpy as np
import pytest

from recipes import unfitted
from recipes.unfitted import Asked

GOLD = np.array([[True, False], [True, True]])
SURE = np.ones_like(GOLD)


def asked(log_odds, sure=SURE):
    return Asked(np.array(log_odds, dtype=float), GOLD, sure)


def test_labels_that_exclude_each_other_want_competition_and_sure_answers_a_low_temperature(capsys):
    alone = Asked(np.array([[6.0, 1.0]] * 4), np.array([[True, False]] * 4), np.ones((4, 2), dtype=bool))
    chosen = unfitted.choose({unfitted.PUBLIC: [alone]})
    assert chosen["competition"] * chosen["handicap"] >= 0.2
    assert chosen["temperature"] == 0.5
    rows = 1 + (len(unfitted.COMPETITIONS) - 1) * len(unfitted.HANDICAPS)  # without competition there is no handicap
    assert capsys.readouterr().out.count("\n") == 2 + rows


def test_labels_that_go_together_want_none():
    both = asked([[5.0, -5.0], [5.0, 0.4]])
    chosen = unfitted.choose({"judged": [both]})
    assert chosen["competition"] * chosen["handicap"] == 0.0


@pytest.mark.parametrize(("gain", "chosen"), [(0.05, 0.0), (0.2, 1.0)])
def test_of_competitions_that_are_as_good_the_smallest_is_chosen(monkeypatch, gain, chosen):
    """Only the largest gains anything: less than a tenth of a point is no reason to take it."""
    monkeypatch.setattr(
        unfitted, "micro_f1", lambda found, *, together, competition, **_: 50 + gain * (competition == 1)
    )
    assert unfitted.choose({"judged": [asked([[5.0, -5.0], [5.0, 0.4]])]})["competition"] == chosen


def test_unsure_pairs_count_neither_way():
    unsure = np.array([[True, False], [True, True]])
    wrong, right = asked([[3, 3], [3, 3]], unsure), asked([[3, -3], [3, 3]], unsure)
    for together in (False, True):
        assert unfitted.micro_f1([wrong], together=together) == unfitted.micro_f1([right], together=together) == 100
    assert unfitted.surprise([wrong]) == pytest.approx(unfitted.surprise([right]))


def test_small_label_sets_are_measured_together_and_public_ones_one_by_one():
    nothing, everything = asked([[-3, -3], [-3, -3]]), asked([[3, -3], [3, 3]])
    assert unfitted.micro_f1([nothing, everything], together=False) == pytest.approx(50)
    assert unfitted.micro_f1([nothing, everything], together=True) == pytest.approx(100 * 6 / 9)


def test_a_label_by_itself_has_no_other_beside_it():
    """Beside a sure label a handicap holds the second one down; alone nothing does."""
    numbers = {"competition": 1.0, "handicap": 1.0}
    one = asked([[5.0, -5.0], [5.0, 1.0]])
    assert unfitted.micro_f1([one], together=True, **numbers) == pytest.approx(80)
    assert unfitted.micro_f1([one.alone()], together=True, **numbers) == 100


def test_the_command_asks_a_packaged_model(tmp_path, capsys, monkeypatch):
    refund, praise = ["refund", "a request to get money back"], ["praise", "kind words about a firm"]
    rows = [
        {"id": "judged-a-1", "text": "I want my money back.", "yes": [refund], "no": [praise]},
        {"id": "judged-a-1", "text": "Lovely people, thank you!", "yes": [praise], "no": []},
    ]
    public = {"labels": ["oil", "sports"], "documents": ["Crude fell.", "They won the final."], "gold": [[0], [1]]}
    path = tmp_path / "validation.json"
    path.write_text(json.dumps({"own": public, "written": {"rows": []}, "judged": {"rows": rows}}))
    monkeypatch.setattr("sys.argv", ["unfitted", "--validation", str(path), "--backbone", "setscore-mini"])
    unfitted.main()
    assert "\nchosen: temperature " in capsys.readouterr().out
