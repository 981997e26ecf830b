"""The transformer: pre-norm, rotary positions, grouped keys, SwiGLU or experts; one class for every family.

It works on flat batches (see layout.py) and gives the hidden states at the positions that are read, nothing else. The
vocabulary is only touched for the rows of the two answers, unless `answer_mass` or `most_likely` is asked for.
"""

import torch
from torch import Tensor, nn

from setscore.backbones.native.architecture import Architecture
from setscore.backbones.native.attention import attend
from setscore.backbones.native.experts import Experts, Mlp
from setscore.backbones.native.layout import Layout, Sight
from setscore.backbones.native.operations import PLAIN, Operations, rms_norm, rotation

HEAD_ROWS = 256  # hidden states that meet the whole vocabulary at once


class Layer(nn.Module):
    """x + attention(norm(x)), then + MLP(norm(.))."""

    def __init__(self, architecture: Architecture, number: int) -> None:
        super().__init__()
        a = architecture
        self.operations = PLAIN
        self.head_width, self.eps = a.head_width, a.norm_eps
        self.attention_norm = nn.Parameter(torch.empty(a.width))
        self.q = nn.Linear(a.width, a.heads * a.head_width, bias=a.qkv_bias)
        self.kv = nn.Linear(a.width, 2 * a.key_heads * a.head_width, bias=a.qkv_bias)
        self.q_norm = nn.Parameter(torch.empty(a.head_width)) if a.qk_norm else None
        self.k_norm = nn.Parameter(torch.empty(a.head_width)) if a.qk_norm else None
        self.out = nn.Linear(a.heads * a.head_width, a.width, bias=False)
        self.mlp_norm = nn.Parameter(torch.empty(a.width))
        self.mlp: nn.Module = Mlp(a.width, a.mlp_width)
        if a.router is not None and a.has_experts(number):
            self.mlp = Experts(a.width, a.router)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], sight: Sight, reads: Tensor | None) -> Tensor:
        """x [T, C]; the result has the rows `reads` only, all of them when it is None."""
        ops, (cos, sin) = self.operations, turn
        normed = ops.rms_norm(x, self.attention_norm, self.eps)
        k, v = self.kv(normed).view(len(x), 2, -1, self.head_width).unbind(1)
        k = ops.rotate(self._normed(k, self.k_norm), cos, sin)
        if reads is not None:
            x, normed, cos, sin = x[reads], normed[reads], cos[reads], sin[reads]
        q = self.q(normed).view(len(x), -1, self.head_width)
        q = ops.rotate(self._normed(q, self.q_norm), cos, sin)
        mixed = self.out(attend(q, k, v, sight, ops).flatten(1))
        x, normed = ops.add_norm(x, mixed, self.mlp_norm, self.eps)
        return x + self.mlp(normed)  # type: ignore[no-any-return]

    def _normed(self, x: Tensor, weight: Tensor | None) -> Tensor:
        return x if weight is None else self.operations.rms_norm(x, weight, self.eps)


class Transformer(nn.Module):
    """Token ids to hidden states where they are read."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.embedding = nn.Parameter(torch.empty(architecture.vocabulary, architecture.width))
        self.layers = nn.ModuleList(Layer(architecture, number) for number in range(architecture.layers))
        self.norm = nn.Parameter(torch.empty(architecture.width))
        # Tied heads are the embedding itself: see `head`.
        self.own_head = None if architecture.tied else nn.Parameter(torch.empty_like(self.embedding))

    def use(self, operations: Operations) -> None:
        """Takes compiled operations, or goes back to plain ones."""
        for module in self.modules():
            if hasattr(module, "operations"):
                module.operations = operations  # type: ignore[assignment]

    @property
    def head(self) -> Tensor:
        """[vocabulary, C]"""
        return self.embedding if self.own_head is None else self.own_head

    def forward(self, layout: Layout) -> Tensor:
        """The normed hidden states [S, C] at the layout's reads."""
        a = self.architecture
        turn = rotation(layout.positions, a.rotary, a.rope_theta)
        x = self.embedding[layout.token_ids]
        for number, layer in enumerate(self.layers, start=1):
            if number < a.layers:
                x = layer(x, turn, layout.sight, None)
            else:  # nothing after the last layer looks at other positions
                x = layer(x, turn, layout.last_sight, layout.reads)
        return rms_norm(x, self.norm, a.norm_eps)

    def log_odds(self, hidden: Tensor, yes: int, no: int) -> Tensor:
        """log p(yes) - log p(no) [S] in fp32: the normaliser over the vocabulary cancels, two rows of the head do."""
        return hidden.float() @ (self.head[yes].float() - self.head[no].float())

    def answer_mass(self, hidden: Tensor, yes: int, no: int) -> Tensor:
        """p(yes) + p(no) [S] over the whole vocabulary: how much of what the model would say is an answer at all."""
        found = []
        for rows in torch.split(hidden, HEAD_ROWS):
            logits = (rows @ self.head.T).float()
            found.append((logits[:, [yes, no]].logsumexp(dim=-1) - logits.logsumexp(dim=-1)).exp())
        return torch.cat(found)

    def most_likely(self, hidden: Tensor) -> Tensor:
        """The token [S] of the largest logit."""
        return torch.cat([(rows @ self.head.T).float().argmax(dim=-1) for rows in torch.split(hidden, HEAD_ROWS)])
