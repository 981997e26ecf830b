"""The tutor in torch: Qwen2's shape, whose questions about a text stand side by side behind it.

A row holds several examples. A token sees what stands before it in its own document and question, and the whole
document of its question; so no question sees another, as with the model that learns from the answers.

The language model's own weights stay as they are. What is learned is a correction of low rank to each matrix,

    y = W x + b + SCALE B A x        A [RANK, inputs], B [outputs, RANK], B = 0 at the start

(LoRA, Hu et al., 2021), and the head: a hundredth of the numbers, small enough to keep.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6
RANK, SCALE = 16, 2.0


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


class Adapted(nn.Linear):
    """A linear layer whose own weights stay as they are."""

    def __init__(self, inputs: int, outputs: int, bias: bool = False) -> None:
        super().__init__(inputs, outputs, bias)
        self.a, self.b = nn.Parameter(torch.empty(RANK, inputs)), nn.Parameter(torch.zeros(outputs, RANK))

    def start(self) -> None:
        """As if there were no correction."""
        device, bound = self.weight.device, 1 / math.sqrt(self.in_features)
        self.a = nn.Parameter(torch.empty(RANK, self.in_features, device=device).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.zeros(self.out_features, RANK, device=device))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + SCALE * functional.linear(functional.linear(x, self.a), self.b)


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.shared, self.size = shape.heads, shape.shared, shape.width // shape.heads
        self.n1, self.n2 = Norm(shape.width), Norm(shape.width)
        self.qkv = Adapted(shape.width, (shape.heads + 2 * shape.shared) * self.size, bias=True)
        self.o = Adapted(shape.width, shape.width)
        self.gate, self.up = Adapted(shape.width, shape.inner), Adapted(shape.width, shape.inner)
        self.down = Adapted(shape.inner, shape.width)

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


class Tutor(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.word = nn.Embedding(shape.tokens, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width)
        self.head = nn.Linear(shape.width, 1)  # the log-odds of yes against no

    def forward(self, tokens: Tensor, positions: Tensor, parts: Tensor, segments: Tensor, slots: Tensor) -> Tensor:
        """Log-odds at the slots [S, 2] of packed rows [B, N]; parts and segments as in recipes/model.py."""
        x = self.word(tokens)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        turn, seen = self.turn(positions, x.dtype), visible(parts, segments)
        for layer in self.layers:
            x = layer(x, turn, seen)
        read = self.norm(x[slots[:, 0], slots[:, 1]]).float()
        return (read * self.head.weight[0].float()).sum(dim=-1) + self.head.bias[0]  # not rounded to half precision

    def turn(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        size = self.shape.width // self.shape.heads
        rates = self.shape.base ** (-torch.arange(0, size, 2, device=positions.device, dtype=torch.float32) / size)
        angles = (positions[:, None, :, None].float() * rates).repeat(1, 1, 1, 2)
        return angles.cos().to(dtype), angles.sin().to(dtype)


def visible(parts: Tensor, segments: Tensor) -> Tensor:
    """[B, 1, N, N]: what each token may look at; padding (part 0) sees the padding before it."""
    group = parts * 64 + segments
    document = torch.where(parts > 0, parts * 64 + 1, -1)
    allowed = (group[:, :, None] == group[:, None, :]) | (document[:, :, None] == group[:, None, :])
    columns = parts.shape[1]
    before = torch.ones(columns, columns, dtype=torch.bool, device=parts.device).tril()
    return (allowed & before)[:, None]


def build(
    state: Mapping[str, Tensor], heads: int, shared: int, base: float, *, learned: Mapping[str, Tensor] | None = None
) -> Tutor:
    """With these weights, in their own types; only corrections and head are there to be learned."""
    (tokens, width), (inner, _) = state["word.weight"].shape, state["layers.0.up.weight"].shape
    layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))
    with torch.device("meta"):
        tutor = Tutor(Shape(layers, width, heads, shared, inner, tokens, base))
    missing, surplus = tutor.load_state_dict(state, strict=False, assign=True)
    for module in tutor.modules():
        if isinstance(module, Adapted):
            module.start()
    wanted = set(to_learn(tutor))
    if surplus or set(missing) | {"head.weight", "head.bias"} != wanted:
        raise ValueError(f"the weights do not fit: missing {sorted(set(missing) - wanted)[:3]}, surplus {surplus[:3]}.")
    if learned is not None:
        if set(learned) != wanted:
            raise ValueError("what was learned does not fit these weights: it has other tensors.")
        tutor.load_state_dict(learned, strict=False)
    for name, parameter in tutor.named_parameters():
        parameter.requires_grad_(name in wanted)
    return tutor


def to_learn(tutor: Tutor) -> dict[str, Tensor]:
    """Corrections and head, by their names."""
    return {name: p for name, p in tutor.named_parameters() if name.endswith((".a", ".b")) or name.startswith("head.")}
