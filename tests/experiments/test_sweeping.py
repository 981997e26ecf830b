"""The choice among templates, and how much of it is luck."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore.experiments.sweeping import choose


def decisions(gold, flips, seed):
    turned = np.random.default_rng(seed).random(gold.shape) < flips
    return gold ^ turned


@settings(max_examples=10, deadline=None)  # each draws documents again a thousand times
@given(st.integers(0, 100))
def test_the_highest_is_chosen_and_the_default_on_a_tie(seed):
    gold = np.random.default_rng(seed).random((60, 4)) < 0.3
    decided = {"default": decisions(gold, 0.3, seed), "same": decisions(gold, 0.3, seed), "good": gold.copy()}
    found = choose(13, gold, decided)
    assert found.template == "good"
    assert sum(one.first for one in found.tried) == pytest.approx(1)
    assert found.over_default.difference == pytest.approx(found.tried[2].micro_f1 - found.tried[0].micro_f1)
    again = choose(13, gold, {name: decided[name] for name in ("default", "same")})
    assert (again.template, again.over_default) == ("default", None)


def test_a_sure_choice_comes_first_in_every_redraw_and_a_close_one_does_not():
    gold = np.random.default_rng(3).random((200, 5)) < 0.3
    sure = choose(13, gold, {"bad": decisions(gold, 0.4, 1), "good": decisions(gold, 0.02, 2)})
    close = choose(13, gold, {"one": decisions(gold, 0.2, 1), "other": decisions(gold, 0.2, 2)})
    assert max(one.first for one in sure.tried) == 1
    assert 0.02 < min(one.first for one in close.tried) < 0.5
