"""The mixture of experts: who is chosen, and that every way of computing it is the same."""

import pytest
import torch
from torch.nn import functional

from setscore.backbones.native.architecture import Router
from setscore.backbones.native.experts import Experts, route


def test_the_bias_decides_who_is_chosen_but_not_the_weight():
    router = Router(experts=4, chosen=1, width=8, scoring="sigmoid", bias=True)
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    experts, weights = route(logits, torch.tensor([0.0, 0.0, 0.0, 5.0]), router)
    assert experts.tolist() == [[3]]
    assert weights.item() == pytest.approx(torch.sigmoid(torch.tensor(-1.0)).item())


def test_a_group_is_as_good_as_its_two_best_experts():
    """The best single expert is in a group whose second is poor; that group is left out."""
    router = Router(experts=4, chosen=2, width=8, scoring="sigmoid", groups=2, chosen_groups=1)
    experts, _ = route(torch.tensor([[3.0, -9.0, 2.0, 2.5]]), None, router)
    assert sorted(experts[0].tolist()) == [2, 3]


@pytest.mark.parametrize(("normalise", "scale"), [(False, 1.0), (True, 1.0), (True, 2.5)])
def test_weights(normalise, scale):
    router = Router(experts=5, chosen=2, width=8, normalise=normalise, scale=scale)
    _, weights = route(torch.randn(7, 5), None, router)
    assert weights.dtype == torch.float32
    if normalise:
        assert torch.allclose(weights.sum(-1), torch.full((7,), scale))
    else:
        assert (weights.sum(-1) < 1).all()


@pytest.mark.skipif(not hasattr(functional, "grouped_mm"), reason="needs a newer torch")
def test_all_experts_at_once_equal_one_by_one():
    torch.manual_seed(0)
    experts = Experts(32, Router(experts=8, chosen=2, width=16)).bfloat16()
    for parameter in experts.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    counts = torch.tensor([3, 0, 5, 2, 1, 4, 0, 5])  # two of them have nothing to do
    x = torch.randn(20, 32).bfloat16()
    with torch.inference_mode():
        assert torch.allclose(experts.all_at_once(x, counts), experts.one_by_one(x, counts), atol=1e-2, rtol=1e-2)
