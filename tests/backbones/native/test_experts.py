"""The mixture of experts: who is chosen, and that every way of computing it is the same."""

import os
import subprocess
import sys
from pathlib import Path

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


def experts(*, dtype=torch.float32, shared=32):
    """16 experts of which some have nothing to do: the router's bias is against them."""
    torch.manual_seed(0)
    router = Router(
        experts=16, chosen=4, width=32, shared_width=shared, scoring="sigmoid", groups=4, chosen_groups=2, bias=True,
        normalise=True, scale=2.5, full_precision=True,
    )  # fmt: skip
    made = Experts(64, router).to(dtype).requires_grad_(requires_grad=False)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    made.bias = torch.nn.Parameter(torch.tensor([0.0, -9.0] * 8), requires_grad=False)
    return made


def literally(made, x):
    """Token by token, expert by expert."""
    chosen, weights = route(x.float() @ made.gate.float().T, made.bias, made.router)
    rows = []
    for token, numbers, shares in zip(x, chosen.tolist(), weights.tolist(), strict=True):
        row = torch.zeros_like(token) if made.shared is None else made.shared(token)
        for number, share in zip(numbers, shares, strict=True):
            gate, up = (made.gate_up[number] @ token).chunk(2)
            row = row + share * (made.down[number] @ (functional.silu(gate) * up))
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("shared", [32, 0])
@pytest.mark.parametrize("tokens", [1, 50])
def test_experts_one_by_one_are_what_the_definition_says(shared, tokens):
    made, x = experts(shared=shared), torch.randn(tokens, 64)
    assert torch.allclose(made(x), literally(made, x), atol=1e-5)
    assert torch.equal(made(x), made(x))
    assert torch.allclose(made(x.flip(0)).flip(0), made(x), atol=1e-5)


def test_a_choice_is_sorted_by_expert_and_can_be_undone():
    made, x = experts(), torch.randn(30, 64)
    chosen, _ = route(made.logits(x), made.bias, made.router)
    choice = made.choose(x)
    in_order = chosen.flatten()[choice.order]
    assert (in_order.diff() >= 0).all()
    assert choice.stops.tolist() == [int((chosen <= expert).sum()) for expert in range(16)]
    assert torch.equal(in_order[choice.places()], chosen)


@pytest.mark.skipif(not hasattr(functional, "grouped_mm"), reason="needs a newer torch")
def test_the_grouped_product_gives_the_same():
    made, x = experts(dtype=torch.bfloat16), torch.randn(50, 64).bfloat16()
    assert torch.allclose(made.grouped(x), made.one_by_one(x), atol=2e-2, rtol=2e-2)


INTERPRETED = """
import torch
from test_experts import experts
from setscore.backbones.native import kernels
from setscore.backbones.native.architecture import Router
from setscore.backbones.native.experts import route

for groups, kept, bias, normalise in ((4, 2, True, True), (1, 1, False, False), (4, 4, True, False)):
    router = Router(experts=16, chosen=4, width=32, scoring="sigmoid", groups=groups, chosen_groups=kept,
                    bias=bias, normalise=normalise, scale=2.5)
    assert kernels.chooses(router)
    asked = torch.randn(40, 16), torch.randn(16) if bias else None
    (numbers, weights), (ours, our_weights) = route(*asked, router), kernels.choose(*asked, router)
    assert torch.equal(ours.long(), numbers), router
    assert torch.allclose(our_weights, weights, atol=1e-6), router
for shared in (32, 0):
    made = experts(shared=shared)
    for tokens in (1, 50, 300):
        x = torch.randn(tokens, 64)
        assert torch.allclose(made.fused(x, kernels), made.one_by_one(x), atol=1e-5), (shared, tokens)
"""


def test_our_kernels_give_the_same():
    """They run on a GPU; here Triton's interpreter runs the same source."""
    pytest.importorskip("triton")
    paths = [str(Path(__file__).parent), *sys.path]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
