"""Qwen2's transformer, of which one number is read at a token: how far yes is before no as the next one.

A row holds documents with the questions about them side by side. A token sees what stands before it in its own document
and question, and the whole document of its question: no question sees another, and a document is computed once. For a
causal model that is exact: a document never saw its question.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6
SEGMENTS = 4096  # more than a row has tokens


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    shared: int  # heads of keys and values
    inner: int
    tokens: int
    base: float = 1e6  # of the rotary positions


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x.float(), x.shape[-1:], self.weight, EPSILON).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.shared, self.size = shape.heads, shape.shared, shape.width // shape.heads
        self.n1, self.n2 = Norm(shape.width), Norm(shape.width)
        self.qkv = nn.Linear(shape.width, (shape.heads + 2 * shape.shared) * self.size)
        self.o = nn.Linear(shape.width, shape.width, bias=False)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], seen: Tensor) -> Tensor:
        """x [B, N, H]; `turn` cosines and sines [B, 1, N, size]; `seen` [B, 1, N, N], true where a token may look."""
        batch, columns, _ = x.shape
        all_heads = self.qkv(self.n1(x)).view(batch, columns, -1, self.size).transpose(1, 2)
        q, k, v = all_heads.split([self.heads, self.shared, self.shared], dim=1)
        q, k = rotated(q, turn), rotated(k, turn)
        k, v = (each.repeat_interleave(self.heads // self.shared, dim=1) for each in (k, v))
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.o(found.transpose(1, 2).reshape(batch, columns, -1))
        y = self.n2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))  # type: ignore[no-any-return]


def rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Each half of a head's numbers turned against the other, by the token's position."""
    one, other = x.chunk(2, dim=-1)
    return (x * turn[0] + torch.cat([-other, one], dim=-1) * turn[1]).to(x.dtype)


class CausalModel(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.word = nn.Embedding(shape.tokens, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width)
        self.head = nn.Linear(shape.width, 1)  # the log-odds of yes against no

    def forward(self, tokens: Tensor, positions: Tensor, parts: Tensor, segments: Tensor, slots: Tensor) -> Tensor:
        """Log-odds behind the tokens at `slots` [S, 2] of rows [B, N].

        `parts` counts a row's documents from 1, 0 is padding; `segments` is 1 in a document, 2 .. in its questions.
        """
        x = self.word(tokens)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        turn, seen = self.turn(positions, x.dtype), visible(parts, segments)
        for layer in self.layers:
            x = layer(x, turn, seen)
        read = self.norm(x[slots[:, 0], slots[:, 1]]).float()
        odds: Tensor = (read * self.head.weight[0].float()).sum(dim=-1) + self.head.bias[0]
        return odds  # a product of matrices would round it to half precision

    def turn(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        size = self.shape.width // self.shape.heads
        rates = self.shape.base ** (-torch.arange(0, size, 2, device=positions.device, dtype=torch.float32) / size)
        angles = (positions[:, None, :, None].float() * rates).repeat(1, 1, 1, 2)
        return angles.cos().to(dtype), angles.sin().to(dtype)


def visible(parts: Tensor, segments: Tensor) -> Tensor:
    """[B, 1, N, N]: what each token may look at; padding (part 0) sees the padding before it."""
    group = parts * SEGMENTS + segments
    document = torch.where(parts > 0, parts * SEGMENTS + 1, -1)
    allowed = (group[:, :, None] == group[:, None, :]) | (document[:, :, None] == group[:, None, :])
    columns = parts.shape[1]
    before = torch.ones(columns, columns, dtype=torch.bool, device=parts.device).tril()
    return (allowed & before)[:, None]


def build(state: Mapping[str, Tensor], heads: int, shared: int, base: float) -> CausalModel:
    """A model with these tensors, in their own types."""
    (tokens, width), (inner, _) = state["word.weight"].shape, state["layers.0.up.weight"].shape
    layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))
    with torch.device("meta"):
        model = CausalModel(Shape(layers, width, heads, shared, inner, tokens, base))
    model.load_state_dict(state, assign=True)
    return model
