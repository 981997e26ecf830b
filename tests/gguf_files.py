"""Checkpoints of tests/checkpoints.py as .gguf files, with the names and settings that llama.cpp gives them."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

LAYER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "attn_norm": "attn_norm", "ff_norm": "ffn_norm", "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v",
    "attn_out": "attn_output", "ff_proj": "ffn_gate", "up_proj": "ffn_up", "ff_out": "ffn_down",
}  # fmt: skip
WHOLE = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "model.transformer.wte": "token_embd", "model.transformer.ln_f": "output_norm",
    "model.transformer.ff_out": "output",
}  # fmt: skip


def write(folder: Path, path: Path, family: str) -> Path:
    """The checkpoint in `folder` as one file; tokenizer.json goes beside it."""
    import gguf

    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(str(path), family)
    heads = config.get("n_heads") or config["num_attention_heads"]
    keys = config.get("n_kv_heads") or config["num_key_value_heads"]
    width = config.get("d_model") or config["hidden_size"]
    writer.add_context_length(256)
    writer.add_embedding_length(width)
    writer.add_block_count(config.get("n_layers") or config["num_hidden_layers"])
    writer.add_feed_forward_length(config.get("mlp_hidden_size") or config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(keys)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_causal_attention(False)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _vocabulary(writer, folder, config["vocab_size"])
    writer.add_mask_token_id(config["mask_token_id"])
    for file in sorted(folder.glob("*.safetensors")):
        for name, tensor in load_file(file).items():
            turned = {"q_proj": heads, "k_proj": keys}.get(name.split(".")[-2]) if family == "llada" else None
            placed = tensor if turned is None else _interleaved(tensor, turned)
            writer.add_tensor(_name(name), np.ascontiguousarray(placed.astype(np.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_name("tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    return path


def _interleaved(weight, heads):
    """llama.cpp turns neighbouring dimensions for LLaDA, the checkpoint those half a head apart."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def _name(name: str) -> str:
    home, _, kind = name.rpartition(".")
    if home in WHOLE:
        return f"{WHOLE[home]}.{kind}"
    number, own = home.removeprefix("model.transformer.blocks.").removeprefix("model.layers.").split(".", 1)
    return f"blk.{number}.{LAYER[own]}.{kind}"


def _vocabulary(writer, folder: Path, size: int) -> None:
    made = json.loads((folder / "tokenizer.json").read_text())
    tokens = [f"[PAD{number}]" for number in range(size)]
    for token, number in made["model"]["vocab"].items():
        tokens[number] = token
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * size)
    writer.add_token_merges([" ".join(merge) for merge in made["model"]["merges"]])
