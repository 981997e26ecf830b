"""A GGUF file of a small Qwen2 model with random weights, in the true format."""

from pathlib import Path

import numpy as np

LAYERS, WIDTH, HEADS, SHARED, INNER = 3, 256, 4, 2, 512
SPECIAL = ["<|endoftext|>", "<|im_start|>"]


def made(path: Path) -> dict[str, np.ndarray]:
    """A GGUF file of a small Qwen2 model, its matrices of random bytes in both kinds of blocks."""
    import gguf

    generator, writer = np.random.default_rng(6), gguf.GGUFWriter(str(path), "qwen2")
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(SHARED)
    writer.add_rope_freq_base(1e6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    symbols = [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ", "Ġy", "Ġye", "Ġyes", "Ġn", "Ġno", *SPECIAL]
    writer.add_token_list(symbols)
    writer.add_token_merges(["Ġ y", "Ġy e", "Ġye s", "Ġ n", "Ġn o"])
    tensors: dict[str, np.ndarray] = {}

    def add(name: str, rows: int, columns: int, kind: str) -> None:
        blocks = rows * columns // 256
        data = generator.integers(0, 256, (blocks, {"Q4_K": 144, "Q6_K": 210}[kind]), dtype=np.uint8)
        scales = generator.uniform(1e-4, 1e-3, (blocks, 2)).astype(np.float16).view(np.uint8)
        if kind == "Q4_K":
            data[:, :4] = scales
        else:
            data[:, 208:] = scales[:, :2]
        kind_of = getattr(gguf.GGMLQuantizationType, kind)
        data = data.reshape(rows, -1)
        writer.add_tensor(name, data, raw_dtype=kind_of)
        tensors[name] = gguf.quants.dequantize(data, kind_of)

    add("token_embd.weight", len(symbols), WIDTH, "Q4_K")
    add("output.weight", len(symbols), WIDTH, "Q6_K")
    norm = np.ones(WIDTH, dtype=np.float32)
    writer.add_tensor("output_norm.weight", norm)
    size = WIDTH // HEADS
    for number in range(LAYERS):
        for name, rows, columns, kind in (
            ("attn_q", WIDTH, WIDTH, "Q4_K"),
            ("attn_k", SHARED * size, WIDTH, "Q4_K"),
            ("attn_v", SHARED * size, WIDTH, "Q6_K"),
            ("attn_output", WIDTH, WIDTH, "Q4_K"),
            ("ffn_gate", INNER, WIDTH, "Q4_K"),
            ("ffn_up", INNER, WIDTH, "Q4_K"),
            ("ffn_down", WIDTH, INNER, "Q6_K"),
        ):
            add(f"blk.{number}.{name}.weight", rows, columns, kind)
        for name, rows in (("attn_q", WIDTH), ("attn_k", SHARED * size), ("attn_v", SHARED * size)):
            writer.add_tensor(f"blk.{number}.{name}.bias", np.full(rows, 0.5, dtype=np.float32))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{number}.{name}.weight", norm)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors
