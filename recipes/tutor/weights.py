"""A GGUF file of a Qwen2 model as a small file of the tutor's weights, still quantised: what is not needed is left out.

    python -m recipes.tutor.weights --gguf model.gguf --layers 21 --out weights.safetensors

Kept are the first layers, the embeddings, and of the output only the rows of yes and no. The upper layers of a language
model choose words, which the tutor has no use for. `unpack` makes float tensors of the file, wherever there is torch.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

ANSWERS = ("Ġyes", "Ġno")  # as byte-level vocabularies write them
BLOCK = 256  # weights that share a scale of scales
Q4, Q6 = "Q4_K", "Q6_K"
BYTES = {Q4: 144, Q6: 210}  # of a block
NAMES = {
    "n1": "attn_norm",
    "n2": "ffn_norm",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--layers", type=int, required=True, help="how many, from the first")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    packed, about = pack(arguments.gguf, arguments.layers)
    save_file(packed, arguments.out, metadata=about)
    print(f"{arguments.layers} layers: {arguments.out.stat().st_size / 1e6:.0f} MB")


def pack(path: Path, layers: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors by the tutor's names, quantised ones as bytes [rows, bytes of a row]; and what `unpack` must know."""
    import gguf

    reader = gguf.GGUFReader(str(path))
    tensors = {each.name: each for each in reader.tensors}
    if missing := [f"blk.{layers - 1}.attn_q.weight" for _ in [0] if f"blk.{layers - 1}.attn_q.weight" not in tensors]:
        raise SystemExit(f"{path} has no {missing[0]}: it has fewer than {layers} layers.")
    found, kinds = dict[str, Tensor](), dict[str, str]()

    def take(name: str, source: str, rows: list[int] | None = None) -> None:
        kind = tensors[source].tensor_type.name
        if kind not in (*BYTES, "F32"):
            raise SystemExit(f"{path}: {source} is {kind}; {', '.join(BYTES)} and F32 can be read.")
        data = np.array(tensors[source].data)
        found[name] = torch.from_numpy(data if rows is None else data[rows])
        kinds[name] = kind

    words = reader.fields["tokenizer.ggml.tokens"].contents()
    take("word.weight", "token_embd.weight")
    output = "output.weight" if "output.weight" in tensors else "token_embd.weight"
    take("yes_no", output, [words.index(answer) for answer in ANSWERS])
    take("norm.weight", "output_norm.weight")
    for number in range(layers):
        for ours, theirs in NAMES.items():
            take(f"layers.{number}.{ours}.weight", f"blk.{number}.{theirs}.weight")
        for each in "qkv":
            for part in ("weight", "bias"):
                take(f"layers.{number}.{each}.{part}", f"blk.{number}.attn_{each}.{part}")
    numbers = {
        name: reader.fields[f"qwen2.{field}"].contents()
        for name, field in (
            ("heads", "attention.head_count"),
            ("shared", "attention.head_count_kv"),
            ("base", "rope.freq_base"),
        )
    }
    return found, {"kinds": json.dumps(kinds), **{name: str(value) for name, value in numbers.items()}}


def unpack(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, float]]:
    """Float tensors for `model.build`, and the numbers that it takes beside them."""
    state, about = dict[str, Tensor](), dict[str, str]()
    with safe_open(str(path), "pt", device=device) as file:
        about = file.metadata()
        for name, kind in json.loads(about["kinds"]).items():
            state[name] = restored(file.get_tensor(name), kind)
    for name in [name for name in state if name.endswith("q.weight") or name.endswith("q.bias")]:
        parts = [state.pop(name.replace(".q.", f".{each}.")) for each in "qkv"]
        state[name.replace(".q.", ".qkv.")] = torch.cat(parts)
    yes, no = state.pop("yes_no")
    state |= {"head.weight": (yes - no)[None], "head.bias": torch.zeros(1, device=yes.device)}
    return state, {"heads": int(about["heads"]), "shared": int(about["shared"]), "base": float(about["base"])}


def restored(data: Tensor, kind: str) -> Tensor:
    """Floats [..., weights] of bytes [..., bytes]."""
    if kind not in BYTES:
        return data.float()
    blocks = data.reshape(-1, BYTES[kind])
    values = four_bits(blocks) if kind == Q4 else six_bits(blocks)
    return values.reshape(*data.shape[:-1], -1)


def four_bits(blocks: Tensor) -> Tensor:
    """Q4_K: eight groups of 32 weights, each w = d * scale * q - least * offset; scales and offsets have six bits."""
    d, least = blocks[:, :4].contiguous().view(torch.float16).float().T
    a, b, c = blocks[:, 4:16].reshape(-1, 3, 4).unbind(1)
    scales = torch.cat([a & 63, (c & 15) | ((a >> 6) << 4)], dim=1).float()
    offsets = torch.cat([b & 63, (c >> 4) | ((b >> 6) << 4)], dim=1).float()
    pairs = blocks[:, 16:].reshape(-1, 4, 1, 32)
    q = torch.cat([pairs & 15, pairs >> 4], dim=2).reshape(-1, 8, 32).float()
    return ((d[:, None] * scales)[..., None] * q - (least[:, None] * offsets)[..., None]).reshape(-1, BLOCK)


def six_bits(blocks: Tensor) -> Tensor:
    """Q6_K: sixteen groups of 16 weights, w = d * scale * (q - 32); four bits of q stand apart from the two upper."""
    low, high = blocks[:, :128].reshape(-1, 2, 1, 64), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
    d = blocks[:, 208:210].contiguous().view(torch.float16).float()
    lower = torch.cat([low & 15, low >> 4], dim=2).reshape(-1, 2, 4, 32)
    upper = torch.cat([(high >> shift) & 3 for shift in (0, 2, 4, 6)], dim=2)
    q = (lower | (upper << 4)).reshape(-1, 16, 16).float() - 32
    return ((d * scales)[..., None] * q).reshape(-1, BLOCK)


if __name__ == "__main__":
    main()
