"""Attention over ragged groups: every way of computing it gives what a whole masked matrix gives."""

import inspect

import pytest
import torch

from setscore.backbones.asking import Question, Row
from setscore.backbones.native import attention
from setscore.backbones.native.attention import attend
from setscore.backbones.native.layout import lay_out
from setscore.backbones.native.operations import merge, rotate, rotation

ROWS = [
    Row((1,) * 8, (Question(0, (2,) * 4, (1,)), Question(1, (3,) * 8, (2, 7)))),
    Row((1,) * 4, (Question(2, (2,) * 4, (3,)),)),
    Row((), (Question(3, (2,) * 8, (5,)),)),  # a document that lies wholly in the begun block
]


def whole_mask(rows, block):
    """Who sees whom among all tokens of a batch, by definition."""
    cells = []  # row, segment, position
    for number, row in enumerate(rows):
        cells += [(number, 0, position) for position in range(len(row.document))]
        for segment, question in enumerate(row.questions, start=1):
            start = len(row.document)
            cells += [(number, segment, start + offset) for offset in range(len(question.tokens))]
    mask = torch.zeros(len(cells), len(cells), dtype=torch.bool)
    for i, (row, segment, position) in enumerate(cells):
        for j, (other, seen, place) in enumerate(cells):
            near = row == other and seen in (0, segment)
            mask[i, j] = near and (block == 0 or place // block <= position // block)
    return mask


def vectors(count, heads, keys):
    generator = torch.Generator().manual_seed(5)
    shapes = ((count, heads, 16), (count, keys, 16), (count, keys, 16))
    return [torch.randn(shape, generator=generator) for shape in shapes]


def expected(q, k, v, mask):
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, dim=1).transpose(0, 1) for x in (k, v))
    return torch.nn.functional.scaled_dot_product_attention(q.transpose(0, 1), k, v, attn_mask=mask).transpose(0, 1)


@pytest.fixture(params=["by length", "flash, heads first", "flash, heads last", "flash before grouped keys"])
def kernel(request, monkeypatch):
    """The kernel for GPUs is replaced by a literal stand-in with the interfaces that versions of torch gave it."""
    if request.param == "by length":
        yield
        return
    import torch.nn.attention.varlen as module

    heads_last = request.param.endswith("last")

    def stand_in(  # noqa: PLR0917  as torch has it
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, return_aux=None, enable_gqa=False
    ):
        assert enable_gqa == (query.shape[1] != key.shape[1]) or request.param.endswith("keys")
        assert max_q == cu_seq_q.diff().max()
        repeats = query.shape[1] // key.shape[1]
        out, lse = torch.empty_like(query), query.new_empty(query.shape[:2])
        for (a, b), (c, d) in zip(cu_seq_q.unfold(0, 2, 1).tolist(), cu_seq_k.unfold(0, 2, 1).tolist(), strict=True):
            keys, values = (x[c:d].repeat_interleave(repeats, dim=1).float() for x in (key, value))
            scores = torch.einsum("qhd,khd->qhk", query[a:b].float(), keys) / query.shape[-1] ** 0.5
            out[a:b] = torch.einsum("qhk,khd->qhd", scores.softmax(-1), values).to(query.dtype)
            lse[a:b] = scores.logsumexp(-1)
        return (out, lse if heads_last else lse.T.contiguous()) if return_aux else out

    if request.param.endswith("keys"):
        parameters = [p for name, p in inspect.signature(stand_in).parameters.items() if name != "enable_gqa"]
        stand_in.__signature__ = inspect.Signature(parameters)
    monkeypatch.setattr(module, "varlen_attn", stand_in)
    monkeypatch.setattr(attention, "flash_fits", lambda _: True)
    known = (attention._heads_first, attention._takes_groups)
    for cached in known:
        cached.cache_clear()
    yield
    for cached in known:
        cached.cache_clear()


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("heads", "keys"), [(4, 4), (4, 2)])
def test_every_kernel_gives_what_the_whole_matrix_gives(block, shared, heads, keys):
    rows = ROWS if shared else [Row((), (Question(0, (1,) * n, (n - 1,)),)) for n in (8, 12, 4)]
    layout = lay_out(rows, shared=shared, block=block, shift=0, device="cpu")
    q, k, v = vectors(layout.tokens, heads, keys)
    truth = expected(q, k, v, whole_mask(rows, block))
    assert (attend(q, k, v, layout.sight) - truth).abs().max() < 1e-5
    reads = layout.reads
    assert (attend(q[reads], k, v, layout.last_sight) - truth[reads]).abs().max() < 1e-5


def test_scores_that_do_not_fit_into_memory_at_once_are_taken_in_parts(monkeypatch):
    layout = lay_out(ROWS, shared=True, block=0, shift=0, device="cpu")
    q, k, v = vectors(layout.tokens, 4, 2)
    whole = attend(q, k, v, layout.sight)
    monkeypatch.setattr(attention, "SCORES", 40)
    assert torch.allclose(attend(q, k, v, layout.sight), whole, atol=1e-6)


def test_merging_does_not_overflow():
    values = torch.ones(1, 1, 2), torch.zeros(1, 1, 2)
    for lse, share in ((-1e4, 0.0), (0.0, 0.5), (1e4, 1.0)):
        merged = merge(values[0], torch.zeros(1, 1), values[1], torch.full((1, 1), lse))
        assert torch.allclose(merged, torch.full((1, 1, 2), 1 - share))


def test_partial_rotation_leaves_the_rest():
    x = torch.randn(3, 2, 16)
    cos, sin = rotation(torch.tensor([0, 5, 9]), 8, 1e4)
    turned = rotate(x, cos, sin)
    assert torch.equal(turned[..., 8:], x[..., 8:])
    assert torch.allclose(turned[0], x[0])
    assert torch.allclose(turned.norm(dim=-1), x.norm(dim=-1), atol=1e-5)
