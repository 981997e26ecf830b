"""The model in torch: BERT's shape with segments for shared-document attention and a head tied to the embeddings.

Tensor names are those that graph.py reads. Packed rows hold several examples, so a token carries two numbers: its
**part** (which example, 0 for padding) and its **segment** (1 the document, 2.. one per question). It sees its part's
document and its own segment, as in src/setscore/backbones/asking.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    layers: int = 6
    width: int = 384
    heads: int = 12
    inner: int = 1536
    vocabulary: int = 30522
    positions: int = 512

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> "Shape":
        """The shape of weights under our names; heads are 32 wide, as in the encoder it starts from."""
        (vocabulary, width), (inner, _) = state["word.weight"].shape, state["l.0.u.weight"].shape
        layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("l."))
        return cls(layers, width, width // 32, inner, vocabulary, len(state["pos.weight"]))


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.o = nn.Linear(shape.width, shape.width)
        self.n1 = nn.LayerNorm(shape.width, eps=1e-12)
        self.u = nn.Linear(shape.width, shape.inner)
        self.d = nn.Linear(shape.inner, shape.width)
        self.n2 = nn.LayerNorm(shape.width, eps=1e-12)

    def forward(self, x: Tensor, bias: Tensor, dropout: float) -> Tensor:
        """x [B, N, H], bias [B, 1, N, N] (0 or -inf); `dropout` is the share of what is added that is left out."""
        batch, columns, _ = x.shape
        q, k, v = self.qkv(x).view(batch, columns, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        added = self.o(seen.transpose(1, 2).reshape(batch, columns, -1))
        x = self.n1(x + functional.dropout(added, dropout))
        return self.n2(x + functional.dropout(self.d(functional.gelu(self.u(x))), dropout))  # type: ignore[no-any-return]


class Mini(nn.Module):
    def __init__(self, shape: Shape = Shape()) -> None:
        super().__init__()
        self.shape, self.dropout = shape, 0.0
        self.word = nn.Embedding(shape.vocabulary, shape.width)
        self.pos = nn.Embedding(shape.positions, shape.width)
        self.typ = nn.Embedding(2, shape.width)
        self.ln = nn.LayerNorm(shape.width, eps=1e-12)
        self.l = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.t = nn.Linear(shape.width, shape.width)
        self.tn = nn.LayerNorm(shape.width, eps=1e-12)
        self.b = nn.Parameter(torch.zeros(shape.vocabulary))
        with torch.no_grad():  # the head starts as the identity, so that it starts from the encoder's own features
            self.t.weight.copy_(torch.eye(shape.width))
            self.t.bias.zero_()

    def forward(self, tokens: Tensor, positions: Tensor, parts: Tensor, segments: Tensor) -> Tensor:
        """Hidden states [B, N, H] of packed rows [B, N]."""
        x = self.ln(self.word(tokens) + self.pos(positions) + self.typ.weight[0])
        kind = x.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
        bias = attention_bias(parts, segments, dtype)
        for layer in self.l:
            x = layer(x, bias, self.dropout if self.training else 0.0)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [..., H] to vocabulary logits."""
        return functional.linear(self.tn(functional.gelu(self.t(hidden))), self.word.weight, self.b)


def attention_bias(parts: Tensor, segments: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, 1, N, N]: 0 where a token may look, -inf elsewhere. Padding (part 0) sees padding only."""
    group = parts * 64 + segments
    document = torch.where(parts > 0, parts * 64 + 1, -1)
    allowed = (group[:, :, None] == group[:, None, :]) | (document[:, :, None] == group[:, None, :])
    bias = torch.zeros(allowed.shape, dtype=dtype, device=parts.device)
    return bias.masked_fill_(~allowed, float("-inf"))[:, None]


def from_bert(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A BERT encoder's tensors (sentence-transformers/all-MiniLM-L6-v2) under our names; the head is not in it."""
    found = {name.removeprefix("bert."): value.float() for name, value in state.items()}
    ours = {
        "word.weight": found["embeddings.word_embeddings.weight"],
        "pos.weight": found["embeddings.position_embeddings.weight"],
        "typ.weight": found["embeddings.token_type_embeddings.weight"],
        "ln.weight": found["embeddings.LayerNorm.weight"],
        "ln.bias": found["embeddings.LayerNorm.bias"],
    }
    names = {"o": "attention.output.dense", "n1": "attention.output.LayerNorm", "u": "intermediate.dense"}
    names |= {"d": "output.dense", "n2": "output.LayerNorm"}
    layers = {int(name.split(".")[2]) for name in found if name.startswith("encoder.layer.")}
    for number in sorted(layers):
        at = f"encoder.layer.{number}."
        for kind in ("weight", "bias"):
            parts = [found[f"{at}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
            ours[f"l.{number}.qkv.{kind}"] = torch.cat(parts)
            ours |= {f"l.{number}.{name}.{kind}": found[f"{at}{theirs}.{kind}"] for name, theirs in names.items()}
    return ours


def build(state: Mapping[str, Tensor]) -> Mini:
    """A model with our own tensors, all of them; or with a BERT encoder's, whose head starts as the identity."""
    ours = {name: value.float() for name, value in state.items()} if "word.weight" in state else from_bert(state)
    model = Mini(Shape.of(ours))
    missing, surplus = model.load_state_dict(ours, strict=False)
    head = {"b", "t.weight", "t.bias", "tn.weight", "tn.bias"}
    if surplus or set(missing) not in (set(), head):
        raise ValueError(f"the weights do not fit: missing {missing}, surplus {surplus}.")
    return model


def pooled(hidden: Tensor, parts: Tensor, segments: Tensor, most: int) -> Tensor:
    """Sentence embeddings [B, most, H], of length 1: the mean over the document of parts 1 .. `most` of each row.

    One matrix product for all of them: gathering the rows instead costs more than the rest of the step.
    """
    numbers = torch.arange(1, most + 1, device=parts.device)
    chosen = (parts[:, None] == numbers[:, None]) & (segments[:, None] == 1)
    return functional.normalize((chosen.to(hidden.dtype) @ hidden).float(), dim=-1)
