"""What a transformer is made of, as data, and how each family's config.json says it.

Sources: modeling_llada.py and config.json of GSAI-ML/LLaDA-8B-*, the code of GSAI-ML/iLLaDA-8B-* (ILLaDAForCausalLM),
modeling_dream.py of Dream-org/Dream-v0-*-7B, modeling_llada2_moe.py of inclusionAI/LLaDA2.0-mini, modeling_lladamoe.py
of inclusionAI/LLaDA-MoE-7B-A1B-*.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from setscore.backbones.config import Config, shown
from setscore.errors import BackboneError

MOST_LAYERS = 4096


@dataclass(frozen=True)
class Router:
    """A mixture of experts: who is asked for a token, and with what weight.

    scoring        "sigmoid" scores every expert alone, "softmax" against the others
    groups         experts stand in so many groups of equal size; only the best `chosen_groups` are looked at, a group
                   being as good as its two best experts together
    bias           a learned offset that decides who is chosen, but not with what weight
    normalise      whether the weights of the chosen are made to add up to 1, before `scale`
    full_precision whether router logits are computed in fp32, whatever the weights' dtype is
    """

    experts: int
    chosen: int
    width: int
    shared_width: int = 0  # the expert that every token goes through; 0 for none
    scoring: Literal["sigmoid", "softmax"] = "softmax"
    groups: int = 1
    chosen_groups: int = 1
    bias: bool = False
    normalise: bool = False
    scale: float = 1.0
    full_precision: bool = False


@dataclass(frozen=True)
class Architecture:
    """The shape of a pre-norm transformer with RMSNorm, rotary positions and SwiGLU."""

    vocabulary: int
    layers: int
    width: int
    heads: int
    key_heads: int  # grouped-query attention when fewer than `heads`
    head_width: int
    mlp_width: int
    norm_eps: float
    rope_theta: float
    rotary: int  # leading dimensions of a head that are rotated
    qkv_bias: bool = False
    qk_norm: bool = False  # RMSNorm of each head's queries and keys
    tied: bool = False  # the head is the embedding
    router: Router | None = None
    dense_layers: int = 0  # with a router: the first layers that have a plain MLP

    def has_experts(self, layer: int) -> bool:
        return self.router is not None and layer >= self.dense_layers

    def parameters(self) -> int:
        """How many numbers the weights have."""
        query, key = self.heads * self.head_width, self.key_heads * self.head_width
        attention = self.width * (2 * query + 2 * key) + self.qkv_bias * (query + 2 * key)
        attention += 2 * self.head_width * self.qk_norm
        total = self.vocabulary * self.width * (1 if self.tied else 2) + self.width
        for layer in range(self.layers):
            total += attention + 2 * self.width
            if self.router is None or not self.has_experts(layer):
                total += 3 * self.width * self.mlp_width
            else:
                inner = self.router.experts * self.router.width + self.router.shared_width
                total += 3 * self.width * inner + self.router.experts * (self.width + self.router.bias)
        return total


def _llada(config: Config) -> Architecture:
    plain = {"block_type": "llama", "activation_type": "silu", "layer_norm_type": "rms", "rope": True, "alibi": False}
    absent = ("attention_layer_norm", "input_emb_norm", "scale_logits", "include_bias", "bias_for_layer_norm")
    config.only(plain | dict.fromkeys(absent, False))
    width, one_key = config.size("d_model"), config.flag("multi_query_attention", False)
    heads = config.divisor("n_heads", of=width, what="d_model")
    return Architecture(
        vocabulary=config.size("embedding_size", config.size("vocab_size")),
        layers=config.size("n_layers", most=MOST_LAYERS),
        width=width,
        heads=heads,
        key_heads=config.divisor("n_kv_heads", 1 if one_key else heads, of=heads, what="n_heads"),
        head_width=width // heads,
        mlp_width=_llada_mlp(config, width),
        norm_eps=config.number("rms_norm_eps"),
        rope_theta=config.number("rope_theta"),
        rotary=_rotary(config, width // heads, 1.0),
        qkv_bias=config.flag("include_qkv_bias", False),
        tied=config.flag("weight_tying", False),
    )


def _llada_mlp(config: Config, width: int) -> int:
    """The width of the MLP; it may be null, and then mlp_ratio counts, which is 4 unless it is given."""
    if config.get("mlp_hidden_size") is not None:
        return config.size("mlp_hidden_size")
    inner = config.number("mlp_ratio", 4) * width
    if inner != int(inner):
        raise config.wrong("mlp_ratio", f"a number whose product with d_model={width} is whole")
    return int(inner)


def _rotary(config: Config, head_width: int, factor: float) -> int:
    """The dimensions of a head that are rotated: in pairs, so their number is even."""
    rotary = int(head_width * factor)
    if not 0 < rotary <= head_width or rotary % 2:
        raise BackboneError(
            f"{config.file}: {rotary} of {head_width} dimensions of a head would be rotated; it is an even number of"
            " them. Get the file again."
        )
    return rotary


def _common(config: Config, **differences: Any) -> Architecture:
    """The names that Llama gave to config.json, which most families kept."""
    config.only({"hidden_act": "silu", "use_sliding_window": False, "use_mrope": False})
    for name in ("rope_scaling", "rope_parameters"):
        stretched = config.section(name)
        kind = stretched.get("rope_type", stretched.get("type", "default"))
        if kind != "default" or stretched.get("factor", 1.0) != 1.0:
            raise BackboneError(
                f"{config.file} says {name}={shown(config[name])}; this transformer does not stretch positions."
            )
    width = config.size("hidden_size")
    heads = config.size("num_attention_heads")
    if config.get("head_dim") is None:
        config.divisor("num_attention_heads", of=width, what="hidden_size")
    head_width = config.size("head_dim", width // heads)
    rope = config if config.get("rope_theta") is not None else config.section("rope_parameters")
    made: dict[str, Any] = {
        "vocabulary": config.size("vocab_size"),
        "layers": config.size("num_hidden_layers", most=MOST_LAYERS),
        "width": width,
        "heads": heads,
        "key_heads": config.divisor("num_key_value_heads", heads, of=heads, what="num_attention_heads"),
        "head_width": head_width,
        "norm_eps": config.number("rms_norm_eps"),
        "rope_theta": (rope or config).number("rope_theta"),
        "rotary": _rotary(config, head_width, config.number("partial_rotary_factor", 1.0)),
        "tied": config.flag("tie_word_embeddings", False),
    }
    made |= differences
    only_experts = made.get("router") is not None and not made.get("dense_layers")
    return Architecture(mlp_width=config.size("intermediate_size", 0 if only_experts else None), **made)


def _illada(config: Config) -> Architecture:
    config.only({"attention_bias": False, "mlp_bias": False, "layer_norm_eps": None})
    return _common(config)


def _dream(config: Config) -> Architecture:
    return _common(config, qkv_bias=config.flag("attention_bias", True))


def _sdar(config: Config) -> Architecture:
    return _common(config, qkv_bias=config.flag("attention_bias", False), qk_norm=True)


def _llada2(config: Config) -> Architecture:
    config.only({"use_bias": False, "norm_topk_prob": True, "score_function": "sigmoid", "use_qk_norm": True})
    experts, width = config.size("num_experts"), config.size("moe_intermediate_size")
    groups = config.divisor("n_group", of=experts, what="num_experts")
    if groups > 1 and experts // groups < 2:  # a group is as good as its two best experts
        raise config.wrong("n_group", f"such that each group has two of num_experts={experts} or more")
    kept = config.size("topk_group", most=groups)
    chosen = config.size("num_experts_per_tok", most=kept * (experts // groups))
    router = Router(
        experts=experts,
        chosen=chosen,
        width=width,
        shared_width=width * config.size("num_shared_experts", 0, least=0),
        scoring="sigmoid",
        groups=groups,
        chosen_groups=kept,
        bias=config.flag("moe_router_enable_expert_bias", True),
        normalise=chosen > 1,
        scale=config.number("routed_scaling_factor"),
        full_precision=True,
    )
    bias, dense = config.flag("use_qkv_bias", False), config.size("first_k_dense_replace", 0, least=0)
    return _common(config, qkv_bias=bias, qk_norm=True, router=router, dense_layers=dense)


def _llada_moe(config: Config) -> Architecture:
    absent = ("attention_bias", "moe_router_enable_expert_bias")
    config.only({"moe_router_score_function": "softmax"} | dict.fromkeys(absent, False))
    config.only(dict.fromkeys(("shared_expert_intermediate_size", "router_num_group", "router_topk_group"), None))
    experts, layers = config.size("num_experts"), config.get("moe_layer_freq")
    if layers not in (None, 1) and not (isinstance(layers, list) and all(layer == 1 for layer in layers)):
        raise config.wrong("moe_layer_freq", "1 for every layer: this transformer has experts in all of them")
    router = Router(
        experts=experts,
        chosen=config.size("num_experts_per_tok", most=experts),
        width=config.size("expert_intermediate_size"),
        normalise=False,  # whatever config.json says: modeling_lladamoe.py never does
        scale=config.number("routed_scaling_factor", 1.0),
    )
    return _common(config, qk_norm=config.flag("qk_layernorm", True), router=router)


READERS: dict[str, Callable[[Config], Architecture]] = {
    "llada": _llada,
    "illada": _illada,
    "dream": _dream,
    "llada2": _llada2,
    "llada-moe": _llada_moe,
    "sdar": _sdar,
}
# What config.json calls its model.
FAMILIES = {
    "LLaDAModelLM": "llada",
    "ILLaDAForCausalLM": "illada",
    "DreamModel": "dream",
    "LLaDA2MoeModelLM": "llada2",
    "LLaDAMoEModelLM": "llada-moe",
    "SDARForCausalLM": "sdar",
}


def family_of(config: Mapping[str, Any]) -> str:
    """The family of a checkpoint, by the architecture that its config.json names."""
    config = Config.of(config)
    names = config.get("architectures") or ["nothing"]
    if not isinstance(names, list) or not isinstance(names[0], str):
        raise config.wrong("architectures", "a list with the name of one")
    if names[0] not in FAMILIES:
        raise BackboneError(
            f"{config.file} names the architecture {names[0]}, this transformer knows {', '.join(FAMILIES)}."
            " A masked language model of transformers is loaded as hf:<id or folder>."
        )
    return FAMILIES[names[0]]


def read_architecture(config: Mapping[str, Any]) -> Architecture:
    """The architecture that a checkpoint's config.json describes."""
    return READERS[family_of(config)](Config.of(config))
