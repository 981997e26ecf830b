"""A GGUF file of a Qwen2 model as a small file of the tutor's weights, still quantised: what is not needed is left out.

    python -m recipes.tutor.weights --gguf model.gguf --layers 21 --out weights.safetensors

Kept are the first layers, the embeddings, and of the output only the rows of yes and no. The upper layers of a language
model choose words, which the tutor has no use for. What the names mean: src/setscore/backbones/causal.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from setscore.backbones.causal.weights import BYTES

ANSWERS = ("Ġyes", "Ġno")  # as byte-level vocabularies write them
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
    named = reader.fields.get("general.name")
    about = {"kinds": json.dumps(kinds), "name": path.stem if named is None else str(named.contents())}
    return found, about | {name: str(value) for name, value in numbers.items()}


if __name__ == "__main__":
    main()
