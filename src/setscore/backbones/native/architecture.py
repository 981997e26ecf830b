"""What a transformer is made of, as data, and how each family's config.json says it.

Sources: modeling_llada.py and config.json of GSAI-ML/LLaDA-8B-*, the code of GSAI-ML/iLLaDA-8B-* (ILLaDAForCausalLM),
modeling_dream.py of Dream-org/Dream-v0-*-7B, modeling_llada2_moe.py of inclusionAI/LLaDA2.0-mini, modeling_lladamoe.py
of inclusionAI/LLaDA-MoE-7B-A1B-*.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from setscore.errors import BackboneError

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Router:
    """A mixture of experts: who is asked for a token, and with what weight.

    scoring        "sigmoid" scores every expert alone, "softmax" against the others
    groups         experts stand in so many groups of equal size; only the best `chosen_groups` are looked at, a group
                   being as good as its two best experts together
    bias           a learnt offset that decides who is chosen, but not with what weight
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


def _refuse(config: Config, allowed: Mapping[str, Any]) -> None:
    """What this transformer cannot do is an error, not a silently different model."""
    for key, value in allowed.items():
        if (got := config.get(key, value)) != value:
            raise BackboneError(f"config.json says {key}={got!r}; this transformer only does {key}={value!r}.")


def _llada(config: Config) -> Architecture:
    plain = {"block_type": "llama", "activation_type": "silu", "layer_norm_type": "rms", "rope": True, "alibi": False}
    absent = ("attention_layer_norm", "input_emb_norm", "scale_logits", "include_bias", "bias_for_layer_norm")
    _refuse(config, plain | dict.fromkeys(absent, False))
    head_width = config["d_model"] // config["n_heads"]
    return Architecture(
        vocabulary=config.get("embedding_size") or config["vocab_size"],
        layers=config["n_layers"],
        width=config["d_model"],
        heads=config["n_heads"],
        key_heads=config.get("n_kv_heads") or config["n_heads"],
        head_width=head_width,
        mlp_width=config["mlp_hidden_size"],
        norm_eps=config["rms_norm_eps"],
        rope_theta=config["rope_theta"],
        rotary=head_width,
        qkv_bias=config.get("include_qkv_bias", False),
        tied=config.get("weight_tying", False),
    )


def _common(config: Config, **differences: Any) -> Architecture:
    """The names that Llama gave to config.json, which most families kept."""
    _refuse(config, {"hidden_act": "silu", "use_sliding_window": False, "use_mrope": False})
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type", scaling.get("type", "default")) != "default" or scaling.get("factor", 1.0) != 1.0:
        raise BackboneError(f"config.json says rope_scaling={scaling!r}; this transformer does not stretch positions.")
    head_width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rope = config.get("rope_parameters") or {}
    made: dict[str, Any] = {
        "vocabulary": config["vocab_size"],
        "layers": config["num_hidden_layers"],
        "width": config["hidden_size"],
        "heads": config["num_attention_heads"],
        "key_heads": config.get("num_key_value_heads") or config["num_attention_heads"],
        "head_width": head_width,
        "mlp_width": config.get("intermediate_size") or 0,
        "norm_eps": config["rms_norm_eps"],
        "rope_theta": config["rope_theta"] if "rope_theta" in config else rope["rope_theta"],
        "rotary": int(head_width * (config.get("partial_rotary_factor") or 1.0)),
        "tied": config.get("tie_word_embeddings", False),
    }
    return Architecture(**made | differences)


def _illada(config: Config) -> Architecture:
    _refuse(config, {"attention_bias": False, "mlp_bias": False, "layer_norm_eps": None})
    return _common(config)


def _dream(config: Config) -> Architecture:
    return _common(config, qkv_bias=config.get("attention_bias", True))


def _sdar(config: Config) -> Architecture:
    return _common(config, qkv_bias=config.get("attention_bias", False), qk_norm=True)


def _llada2(config: Config) -> Architecture:
    _refuse(config, {"use_bias": False, "norm_topk_prob": True, "score_function": "sigmoid", "use_qk_norm": True})
    router = Router(
        experts=config["num_experts"],
        chosen=config["num_experts_per_tok"],
        width=config["moe_intermediate_size"],
        shared_width=config["moe_intermediate_size"] * (config.get("num_shared_experts") or 0),
        scoring="sigmoid",
        groups=config["n_group"],
        chosen_groups=config["topk_group"],
        bias=config.get("moe_router_enable_expert_bias", True),
        normalise=config["num_experts_per_tok"] > 1,
        scale=config["routed_scaling_factor"],
        full_precision=True,
    )
    bias, dense = config.get("use_qkv_bias", False), config.get("first_k_dense_replace", 0)
    return _common(config, qkv_bias=bias, qk_norm=True, router=router, dense_layers=dense)


def _llada_moe(config: Config) -> Architecture:
    absent = ("attention_bias", "moe_router_enable_expert_bias")
    _refuse(config, {"moe_router_score_function": "softmax"} | dict.fromkeys(absent, False))
    _refuse(config, dict.fromkeys(("shared_expert_intermediate_size", "router_num_group", "router_topk_group"), None))
    if set(config.get("moe_layer_freq") or [1]) != {1}:
        raise BackboneError("config.json has layers without experts (moe_layer_freq); this transformer has none.")
    router = Router(
        experts=config["num_experts"],
        chosen=config["num_experts_per_tok"],
        width=config["expert_intermediate_size"],
        normalise=False,  # whatever config.json says: modeling_lladamoe.py never does
        scale=config.get("routed_scaling_factor") or 1.0,
    )
    return _common(config, qk_norm=config.get("qk_layernorm", True), router=router)


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


def family_of(config: Config) -> str:
    """The family of a checkpoint, by the architecture that its config.json names."""
    names = config.get("architectures") or ["nothing"]
    if names[0] not in FAMILIES:
        raise BackboneError(
            f"config.json names the architecture {names[0]}, this transformer knows {', '.join(FAMILIES)}."
            " A masked language model of transformers is loaded as hf:<id or folder>."
        )
    return FAMILIES[names[0]]


def read_architecture(config: Config) -> Architecture:
    """The architecture that a checkpoint's config.json describes."""
    family = family_of(config)
    try:
        return READERS[family](config)
    except KeyError as error:
        raise BackboneError(
            f"config.json of a {family} checkpoint has no {error}. Get the whole folder again."
        ) from error
