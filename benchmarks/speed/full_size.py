"""The shapes of the public checkpoints, as their config.json gives them, and random models of these shapes."""

from typing import Any

import torch

from setscore.backbones.native.architecture import Architecture, read_architecture
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.quantise import Quantiser

CONFIGS: dict[str, dict[str, Any]] = {
    "llada-8b": {
        "architectures": ["LLaDAModelLM"], "d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 32,
        "mlp_hidden_size": 12288, "vocab_size": 126464, "embedding_size": 126464, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0, "weight_tying": False,
    },
    "illada-8b": {
        "architectures": ["ILLaDAForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 155136, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0, "tie_word_embeddings": True,
    },
    "dream-7b": {
        "architectures": ["DreamModel"], "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
    },
    "llada2-mini": {
        "architectures": ["LLaDA2MoeModelLM"], "hidden_size": 2048, "num_hidden_layers": 20, "num_attention_heads": 16,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 5120, "vocab_size": 157184,
        "moe_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
        "num_shared_experts": 1, "first_k_dense_replace": 1, "rms_norm_eps": 1e-6, "rope_theta": 600000,
        "partial_rotary_factor": 0.5, "routed_scaling_factor": 2.5,
    },
    "llada-moe": {
        "architectures": ["LLaDAMoEModelLM"], "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
        "num_key_value_heads": 16, "expert_intermediate_size": 1024, "num_experts": 64, "num_experts_per_tok": 8,
        "vocab_size": 157184, "rms_norm_eps": 1e-5, "rope_theta": 50000,
    },
}  # fmt: skip
SMALLER = {"d_model": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 4, "mlp_hidden_size": 128, "hidden_size": 64,
           "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
           "intermediate_size": 128, "moe_intermediate_size": 32, "num_experts": 16, "vocab_size": 512,
           "embedding_size": 512, "num_experts_per_tok": 2}  # fmt: skip


def architecture(name: str, *, small: bool = False) -> Architecture:
    """The shape of a checkpoint; `small` keeps its kind and shrinks its size."""
    config = CONFIGS[name]
    return read_architecture(
        config | {key: value for key, value in SMALLER.items() if key in config} if small else config
    )


def random_model(shape: Architecture, *, device: str, dtype: torch.dtype = torch.bfloat16) -> Transformer:
    """Weights drawn from a narrow normal distribution: what a pass costs does not depend on what they say."""
    with torch.device("meta"):
        model = Transformer(shape)
    model = model.to(dtype).to_empty(device=device)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            torch.nn.init.ones_(parameter) if parameter.ndim == 1 else parameter.normal_(std=0.02)
        for name, parameter in model.named_parameters():
            if name.endswith("mlp.bias"):
                parameter.data = torch.zeros_like(parameter, dtype=torch.float32)
    return model.requires_grad_(requires_grad=False).eval()


def quantised(model: Transformer, dtype: str, *, device: str) -> Transformer:
    """The same model, its layers' weights now in fewer bits."""
    quantise = Quantiser(dtype, torch.device(device))
    for name in [name for name, _ in model.named_parameters() if name.startswith("layers.")]:
        quantise(model, name)
    return model
