"""int4 weights against bf16 on the CPU, on the shape of LLaDA2-mini scaled down, in one run.

    python benchmarks/quantised.py [--seconds 5]

Width, experts and layers are those of LLaDA2-mini divided by 2, 8 and 5; the weights are random. What int4 saves is
memory: scoring is bound by arithmetic, not by reading weights, so it is not the faster one on every CPU.
"""

import argparse
import time

import torch
from full_size import CONFIGS, random_model
from ways import documents, ours

from setscore.backbones.devices import used_bytes
from setscore.backbones.native.architecture import read_architecture
from setscore.backbones.native.quantise import Quantiser

SCALED = {"hidden_size": 1024, "num_hidden_layers": 4, "num_experts": 32, "vocab_size": 8192, "num_attention_heads": 8,
          "n_group": 4, "topk_group": 2}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of the two")
    arguments = parser.parse_args()
    shape = read_architecture(CONFIGS["llada2-mini"] | SCALED)
    model = random_model(shape, device="cpu")
    asked = documents([96] * 2, 10, shape.vocabulary)

    def score() -> torch.Tensor:
        return torch.tensor(ours(model, asked, 2048, shared=True, block=32).values)

    print("| weights | documents/s | memory MB | log-odds off by (mean) |\n|---|---:|---:|---:|")
    exact = score()
    for dtype in ("bf16", "int4"):
        if dtype == "int4":
            quantise = Quantiser("int4", torch.device("cpu"))
            for name in [name for name, _ in model.named_parameters() if name.startswith("layers.")]:
                quantise(model, name)
        off = (score() - exact).abs().mean().item()
        begun, calls = time.perf_counter(), 0
        while calls == 0 or time.perf_counter() - begun < arguments.seconds:
            score()
            calls += 1
        rate = 2 * calls / (time.perf_counter() - begun)
        print(f"| {dtype} | {rate:.2f} | {used_bytes(model) / 1e6:.0f} | {off:.4f} |", flush=True)


if __name__ == "__main__":
    main()
