"""What backbones with a tokenizer share."""

import math

import pytest

from setscore.backbones.asking import Adjustment
from setscore.errors import BackboneError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guidance": math.nan}, "guidance is a finite number, 0 (off) or more, got nan."),
        ({"guidance": math.inf}, "guidance is a finite number, 0 (off) or more, got inf."),
        ({"guidance": -0.5}, "guidance is a finite number, 0 (off) or more, got -0.5."),
        ({"prior": math.nan}, "prior is true or false, got nan."),
        ({"prior": 1}, "prior is true or false, got 1."),
    ],
)
def test_adjustments_that_would_make_every_score_nan(options, message):
    with pytest.raises(BackboneError) as caught:
        Adjustment(**options)
    assert str(caught.value) == message
