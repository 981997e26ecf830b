"""int4 weights against bf16 on the CPU, on the shape of LLaDA2-mini scaled down, in one run.

    python benchmarks/studies/quantised.py [--seconds 5]

Width, experts and layers are those of LLaDA2-mini divided by 2, 8 and 5; the weights are random. What int4 saves is
memory: scoring is bound by arithmetic, not by reading weights, so it is not the faster one on every CPU.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import header, options, repeat, row
from benchmarks.speed.full_size import CONFIGS, architecture, quantised, random_model
from benchmarks.speed.ways import documents, ours
from setscore.backbones.devices import used_bytes
from setscore.backbones.native.architecture import read_architecture

SCALED = {"hidden_size": 1024, "num_hidden_layers": 4, "num_experts": 32, "vocab_size": 8192, "num_attention_heads": 8,
          "n_group": 4, "topk_group": 2}  # fmt: skip
DOCUMENTS, TOKENS, LABELS = 2, 96, 10


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of the two")
    parser.add_argument("--smoke", action="store_true", help="a tiny shape: does it run?")
    arguments = parser.parse_args(given)
    full = read_architecture(CONFIGS["llada2-mini"] | SCALED)
    model = random_model(architecture("llada2-mini", small=True) if arguments.smoke else full, device="cpu")
    asked = documents([TOKENS] * DOCUMENTS, LABELS, model.architecture.vocabulary)

    def score() -> torch.Tensor:
        return torch.tensor(ours(model, asked, 2048, shared=True, block=32).values)

    print(header(["weights", "documents/s", "memory MB", "log-odds off by (mean)"]))
    exact = score()
    for dtype in ("bf16", "int4"):
        if dtype == "int4":
            quantised(model, dtype, device="cpu")
        off = (score() - exact).abs().mean().item()
        seconds, calls = repeat(score, 0.0 if arguments.smoke else arguments.seconds)
        rate, memory = DOCUMENTS * calls / seconds, used_bytes(model) / 1e6
        print(row([dtype, f"{rate:.2f}", f"{memory:.0f}", f"{off:.4f}"]), flush=True)


if __name__ == "__main__":
    main()
