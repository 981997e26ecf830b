"""The cell of `setscore headroom`: what an oracle has over auto, or that it has nothing."""

import pytest

from setscore.cli.console import results
from setscore.cli.headroom import _show
from setscore.experiments import Summary


def summary(name, kind, micro):
    mean = {"micro_f1": micro, "macro_f1": 0.2}
    return Summary(name, kind, mean, mean, {})


@pytest.mark.parametrize(
    ("auto", "cell", "explained"),
    [(0.40, "+2.0", False), (0.42, "+0.0", False), (0.45, "none, auto is 3.0 above", True)],
)
def test_auto_may_pass_an_oracle_of_another_form(auto, cell, explained):
    rows = [summary("auto", "model", auto), summary("oracle global", "oracle", 0.3), summary("oracle", "oracle", 0.42)]
    with results.capture() as captured:
        _show({"a": rows})
    text = " ".join(captured.get().split())
    assert f"42.0/20.0 {cell} " in text
    assert ("none: oracles cut each label's own log-odds" in text) == explained
