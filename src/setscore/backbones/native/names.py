"""What each family calls its tensors, and where they go in our transformer.

Sources: model.safetensors.index.json of GSAI-ML/LLaDA-8B-Instruct; the module trees of modeling_dream.py (that of
Qwen2), modeling_llada2_moe.py, modeling_lladamoe.py, modeling_sdar.py (that of Qwen3) and iLLaDA (that of Llama).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from setscore.backbones.native.architecture import Architecture


@dataclass(frozen=True)
class Names:
    """Names of a family's tensors; `layer` comes before those of a layer, with {layer} for its number."""

    embedding: str = "model.embed_tokens.weight"
    norm: str = "model.norm.weight"
    head: str = "lm_head.weight"
    layer: str = "model.layers.{layer}."
    attention_norm: str = "input_layernorm.weight"
    mlp_norm: str = "post_attention_layernorm.weight"
    qkv: tuple[str, ...] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # one name: all three in one
    out: str = "self_attn.o_proj.weight"
    q_norm: str = "self_attn.q_norm.weight"
    k_norm: str = "self_attn.k_norm.weight"
    mlp: tuple[str, str, str] = ("mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight")
    router: str = "mlp.gate.weight"
    router_bias: str = "mlp.gate.expert_bias"
    experts: str = "mlp.experts.{expert}."  # before gate_proj.weight and so on
    shared: str = "mlp.shared_experts."


LLAMA = Names()
NAMES = {
    "llada": Names(
        embedding="model.transformer.wte.weight",
        norm="model.transformer.ln_f.weight",
        head="model.transformer.ff_out.weight",
        layer="model.transformer.blocks.{layer}.",
        attention_norm="attn_norm.weight",
        mlp_norm="ff_norm.weight",
        qkv=("q_proj", "k_proj", "v_proj"),
        out="attn_out.weight",
        mlp=("ff_proj.weight", "up_proj.weight", "ff_out.weight"),
    ),
    "illada": LLAMA,
    "dream": LLAMA,
    "sdar": LLAMA,
    "llada-moe": LLAMA,
    "llada2": replace(
        LLAMA,
        embedding="model.word_embeddings.weight",
        qkv=("attention.query_key_value",),
        out="attention.dense.weight",
        q_norm="attention.query_layernorm.weight",
        k_norm="attention.key_layernorm.weight",
    ),
}


Rows = tuple[int, int | None]  # from, and up to (None: the last)


@dataclass(frozen=True)
class Piece:
    """Rows of a checkpoint's tensor that become rows of one of our parameters."""

    parameter: str
    shape: tuple[int, ...]  # of the checkpoint's tensor
    source: Rows = (0, None)  # its rows
    target: Rows = (0, None)  # rows of the parameter, or of one expert's matrix in it
    expert: int | None = None


Pieces = dict[str, tuple[Piece, ...]]


def expected(names: Names, architecture: Architecture) -> Pieces:
    """Every tensor that a checkpoint of this architecture has, and where its rows go."""
    a = architecture
    found: Pieces = {names.embedding: (Piece("embedding", (a.vocabulary, a.width)),)}
    found[names.norm] = (Piece("norm", (a.width,)),)
    if not a.tied:
        found[names.head] = (Piece("own_head", (a.vocabulary, a.width)),)
    for layer in range(a.layers):
        here, ours = names.layer.format(layer=layer), f"layers.{layer}."
        for name, piece in _layer(names, a, experts=a.has_experts(layer)):
            moved = replace(piece, parameter=ours + piece.parameter)
            found[here + name] = (*found.get(here + name, ()), moved)
    return found


def _layer(names: Names, a: Architecture, *, experts: bool) -> Iterator[tuple[str, Piece]]:
    yield names.attention_norm, Piece("attention_norm", (a.width,))
    yield names.mlp_norm, Piece("mlp_norm", (a.width,))
    yield from _qkv(names, a, "weight", (a.width,))
    if a.qkv_bias:
        yield from _qkv(names, a, "bias", ())
    yield names.out, Piece("out.weight", (a.width, a.heads * a.head_width))
    if a.qk_norm:
        yield names.q_norm, Piece("q_norm", (a.head_width,))
        yield names.k_norm, Piece("k_norm", (a.head_width,))
    if experts:
        yield from _experts(names, a)
    else:
        yield from _mlp(names.mlp, "mlp.", a.width, a.mlp_width)


def _qkv(names: Names, a: Architecture, kind: str, rest: tuple[int, ...]) -> Iterator[tuple[str, Piece]]:
    query, key = a.heads * a.head_width, a.key_heads * a.head_width
    if len(names.qkv) == 1:
        name, shape = f"{names.qkv[0]}.{kind}", (query + 2 * key, *rest)
        yield name, Piece(f"q.{kind}", shape, source=(0, query))
        yield name, Piece(f"kv.{kind}", shape, source=(query, query + 2 * key))
        return
    for number, name in enumerate(names.qkv):
        if number == 0:
            yield f"{name}.{kind}", Piece(f"q.{kind}", (query, *rest))
        else:
            target = ((number - 1) * key, number * key)
            yield f"{name}.{kind}", Piece(f"kv.{kind}", (key, *rest), target=target)


def _mlp(
    names: tuple[str, ...], ours: str, width: int, inner: int, *, expert: int | None = None
) -> Iterator[tuple[str, Piece]]:
    end = ".weight" if expert is None else ""
    gate, up, down = names
    yield gate, Piece(f"{ours}gate_up{end}", (inner, width), target=(0, inner), expert=expert)
    yield up, Piece(f"{ours}gate_up{end}", (inner, width), target=(inner, 2 * inner), expert=expert)
    yield down, Piece(f"{ours}down{end}", (width, inner), expert=expert)


def _experts(names: Names, a: Architecture) -> Iterator[tuple[str, Piece]]:
    router = a.router
    if router is None:
        return
    yield names.router, Piece("mlp.gate", (router.experts, a.width))
    if router.bias:
        yield names.router_bias, Piece("mlp.bias", (router.experts,))
    parts = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")
    for expert in range(router.experts):
        prefix = names.experts.format(expert=expert)
        yield from _mlp(tuple(prefix + part for part in parts), "mlp.", a.width, router.width, expert=expert)
    if router.shared_width:
        yield from _mlp(tuple(names.shared + part for part in parts), "mlp.shared.", a.width, router.shared_width)
