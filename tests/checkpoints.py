"""Small random checkpoints in each family's true tensor names, written out here and not taken from the package."""

import json
import re
from pathlib import Path

import torch
from safetensors.torch import save_file

SHAPE = {"layers": 3, "width": 32, "heads": 4, "key_heads": 2, "head_width": 8, "inner": 48, "vocabulary": 400}
MASK = 5

LLADA_CONFIG = {
    "architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": 32, "n_layers": 3, "n_heads": 4,
    "n_kv_heads": 4, "mlp_hidden_size": 48, "vocab_size": 400, "embedding_size": 400, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "mask_token_id": MASK, "weight_tying": False, "include_bias": False,
    "include_qkv_bias": False, "activation_type": "silu", "block_type": "llama", "layer_norm_type": "rms",
    "attention_layer_norm": False, "rope": True, "alibi": False, "max_sequence_length": 256,
}  # fmt: skip
DREAM_CONFIG = {
    "architectures": ["DreamModel"], "model_type": "Dream", "hidden_size": 32, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 400,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": False, "hidden_act": "silu",
    "mask_token_id": MASK, "rope_scaling": None, "use_mrope": False, "max_position_embeddings": 256,
}  # fmt: skip
ILLADA_CONFIG = DREAM_CONFIG | {
    "architectures": ["ILLaDAForCausalLM"],
    "model_type": "illada",
    "tie_word_embeddings": True,
}
SDAR_CONFIG = DREAM_CONFIG | {"architectures": ["SDARForCausalLM"], "model_type": "sdar", "head_dim": 16}
LLADA2_CONFIG = {
    "architectures": ["LLaDA2MoeModelLM"], "model_type": "llada2_moe", "hidden_size": 32, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 40, "vocab_size": 400,
    "moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2,
    "num_shared_experts": 1, "first_k_dense_replace": 1, "rms_norm_eps": 1e-6, "rope_theta": 600000,
    "partial_rotary_factor": 0.5, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "score_function": "sigmoid",
    "tie_word_embeddings": False, "use_qkv_bias": False, "use_bias": False, "hidden_act": "silu", "rope_scaling": None,
    "mask_token_id": MASK, "max_position_embeddings": 256,
}  # fmt: skip
LLADA_MOE_CONFIG = {
    "architectures": ["LLaDAMoEModelLM"], "model_type": "llada", "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 99, "expert_intermediate_size": 24,
    "num_experts": 6, "num_experts_per_tok": 2, "moe_layer_freq": [1, 1], "qk_layernorm": True, "norm_topk_prob": False,
    "rms_norm_eps": 1e-5, "rope_theta": 50000, "partial_rotary_factor": 1, "routed_scaling_factor": 1,
    "vocab_size": 400, "tie_word_embeddings": False, "attention_bias": False, "hidden_act": "silu",
    "shared_expert_intermediate_size": None, "moe_router_enable_expert_bias": False, "max_position_embeddings": 256,
}  # fmt: skip


def write(folder: Path, config: dict, state: dict[str, torch.Tensor], *, shards: int = 1) -> Path:
    """The folder of a checkpoint; tensors go to the shards in turn, as they do in the public ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(state, folder / "model.safetensors")
        return folder
    files = [f"model-{number + 1:05}-of-{shards:05}.safetensors" for number in range(shards)]
    weight_map = {name: files[number % shards] for number, name in enumerate(sorted(state))}
    for file in files:
        save_file({name: state[name] for name, home in weight_map.items() if home == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def randomised(model):
    """Weights that are all different, so that no mix-up of tensors goes unseen."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.3 if parameter.ndim > 1 else 0.2
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale + (parameter.ndim == 1))
    return model.eval()


def hugging_llama(*, tied: bool = False, bias: bool = False):
    """transformers' Llama with the shape of LLADA_CONFIG."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, rms_norm_eps=1e-5, tie_word_embeddings=tied, attention_bias=bias,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0}, attn_implementation="eager",
    )  # fmt: skip
    return randomised(LlamaForCausalLM(config))


def hugging_qwen(kind: str = "Qwen2", *, tied: bool = False, head_dim: int = 8):
    """transformers' Qwen2 or Qwen3 with the shape of DREAM_CONFIG."""
    import transformers

    extra = {"head_dim": head_dim} if kind == "Qwen3" else {}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, rms_norm_eps=1e-6, tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}, attn_implementation="eager", **extra,
    )  # fmt: skip
    return randomised(getattr(transformers, f"{kind}ForCausalLM")(config))


LLADA_NAMES = {
    r"model\.embed_tokens\.weight": "model.transformer.wte.weight",
    r"model\.norm\.weight": "model.transformer.ln_f.weight",
    r"lm_head\.weight": "model.transformer.ff_out.weight",
    r"model\.layers\.(\d+)\.input_layernorm\.weight": r"model.transformer.blocks.\1.attn_norm.weight",
    r"model\.layers\.(\d+)\.post_attention_layernorm\.weight": r"model.transformer.blocks.\1.ff_norm.weight",
    r"model\.layers\.(\d+)\.self_attn\.([qkv])_proj\.(weight|bias)": r"model.transformer.blocks.\1.\2_proj.\3",
    r"model\.layers\.(\d+)\.self_attn\.o_proj\.(weight|bias)": r"model.transformer.blocks.\1.attn_out.\2",
    r"model\.layers\.(\d+)\.mlp\.gate_proj\.weight": r"model.transformer.blocks.\1.ff_proj.weight",
    r"model\.layers\.(\d+)\.mlp\.up_proj\.weight": r"model.transformer.blocks.\1.up_proj.weight",
    r"model\.layers\.(\d+)\.mlp\.down_proj\.weight": r"model.transformer.blocks.\1.ff_out.weight",
}


def state_of(model, *, llada: bool = False) -> dict[str, torch.Tensor]:
    """The state dict as a checkpoint stores it: no tied head, LLaDA's names on request."""
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del state["lm_head.weight"]
    if not llada:
        return state
    renamed = {}
    for name, tensor in state.items():
        (new,) = {re.sub(old, new, name) for old, new in LLADA_NAMES.items() if re.fullmatch(old, name)}
        renamed[new] = tensor
    return renamed


def _random(shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    return {
        name: torch.randn(shape, generator=generator) * (0.3 if len(shape) > 1 else 0.2) + (len(shape) == 1)
        for name, shape in shapes.items()
    }


def llada2_state() -> dict[str, torch.Tensor]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.word_embeddings.weight": (400, 32), "model.norm.weight": (32,), "lm_head.weight": (400, 32),
    }  # fmt: skip
    for layer in range(3):
        at = f"model.layers.{layer}."
        shapes |= {at + "input_layernorm.weight": (32,), at + "post_attention_layernorm.weight": (32,)}
        shapes |= {at + "attention.query_key_value.weight": (128, 32), at + "attention.dense.weight": (32, 64)}
        shapes |= {at + "attention.query_layernorm.weight": (16,), at + "attention.key_layernorm.weight": (16,)}
        homes = {"mlp.": 40}
        if layer > 0:
            homes = {"mlp.shared_experts.": 24} | {f"mlp.experts.{expert}.": 24 for expert in range(8)}
            shapes |= {at + "mlp.gate.weight": (8, 32), at + "mlp.gate.expert_bias": (8,)}
        for home, inner in homes.items():
            shapes |= {at + home + "gate_proj.weight": (inner, 32), at + home + "up_proj.weight": (inner, 32)}
            shapes[at + home + "down_proj.weight"] = (32, inner)
    return _random(shapes)


def llada_moe_state() -> dict[str, torch.Tensor]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (400, 32), "model.norm.weight": (32,), "lm_head.weight": (400, 32),
    }  # fmt: skip
    for layer in range(2):
        at = f"model.layers.{layer}."
        shapes |= {at + "input_layernorm.weight": (32,), at + "post_attention_layernorm.weight": (32,)}
        shapes |= {at + f"self_attn.{part}_proj.weight": (32, 32) for part in "qkvo"}
        shapes |= {at + "self_attn.q_norm.weight": (8,), at + "self_attn.k_norm.weight": (8,)}
        shapes[at + "mlp.gate.weight"] = (6, 32)
        for expert in range(6):
            home = at + f"mlp.experts.{expert}."
            shapes |= {home + "gate_proj.weight": (24, 32), home + "up_proj.weight": (24, 32)}
            shapes[home + "down_proj.weight"] = (32, 24)
    return _random(shapes)


SPECIALS = [
    "<unk>", "<|startoftext|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "<|mdm_mask|>",
    "<|end_header_id|>", "<|im_start|>", "<|im_end|>", "<|padding|>", "<role>", "</role>", "<|role_end|>",
]  # fmt: skip
MASKS = {
    "llada": "<|mdm_mask|>", "illada": "<[MASK]>", "dream": "<|mask|>", "llada2": "<|mask|>", "llada-moe": "<|mask|>",
    "sdar": "<|MASK|>",
}  # fmt: skip


def tokenizer(mask: str = "<|mdm_mask|>"):
    """A byte-level BPE of 400 tokens in which the answers are one token each; token 5 is the mask."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[mask if name == "<|mdm_mask|>" else name for name in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    text = "Document:\nCrude prices fell again.\n\nQuestion: Does this document express oil?\nAnswer: yes no yes no yes"
    made.train_from_iterator([text, "yes", "no", " yes no"] * 20, trainer)
    return made


def qwen_tokenizer():
    """A tokenizer that joins punctuation and the line ends after it, as those of LLaDA and Dream do."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    words = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    split = pre_tokenizers.Split(Regex(words), behavior="isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(["again.\n\nQuestion: Does this? yes no\nAnswer:", " yes no"] * 20, trainer)
    assert ".\n\n" in [made.decode([number]) for number in made.encode("again.\n\nQuestion").ids]
    return made


FAMILIES = ("llada", "illada", "dream", "llada2", "llada-moe", "sdar")


def make(folder: Path, family: str, *, shards: int = 1) -> Path:
    """A whole checkpoint of a family: settings, weights and tokenizer."""
    if family == "llada":
        config, state = LLADA_CONFIG, state_of(hugging_llama(), llada=True)
    elif family == "dream":
        config, state = DREAM_CONFIG, state_of(hugging_qwen())
    elif family == "illada":
        state = state_of(hugging_qwen(tied=True))
        config, state = ILLADA_CONFIG, {name: tensor for name, tensor in state.items() if not name.endswith("bias")}
    elif family == "sdar":
        config, state = SDAR_CONFIG, state_of(hugging_qwen("Qwen3", head_dim=16))
    elif family == "llada2":
        config, state = LLADA2_CONFIG, llada2_state()
    else:
        config, state = LLADA_MOE_CONFIG | {"mask_token_id": MASK}, llada_moe_state()
    write(folder, config, state, shards=shards)
    tokenizer(MASKS[family]).save(str(folder / "tokenizer.json"))
    return folder
