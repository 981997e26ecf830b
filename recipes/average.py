"""The mean of several runs' weights.

    python -m recipes.average run1/weights.safetensors run2/weights.safetensors --out weights.safetensors

Runs must descend from the same encoder; then their mean is often better than each of them. `--share` weighs them.
`--shift` lowers every log-odds by a constant: in training a third of the answers is yes, of a user's labels far fewer
apply to a document.
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--share", type=float, nargs="+", help="one number per file; equal shares without it")
    parser.add_argument("--shift", type=float, default=0.0, help="taken from the bias of the answer yes")
    parser.add_argument("--tokenizer", type=Path, help="needed with --shift")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    shares = arguments.share or [1.0] * len(arguments.weights)
    mean = average([load_file(path) for path in arguments.weights], shares)
    if arguments.shift:
        mean["b"][Tokenizer.from_file(str(arguments.tokenizer)).token_to_id("yes")] -= arguments.shift
    save_file(mean, arguments.out)


def average(runs: list[dict[str, np.ndarray]], shares: list[float]) -> dict[str, np.ndarray]:
    """Weighted by `shares`, in double precision, returned in half."""
    if len(shares) != len(runs):
        raise ValueError(f"{len(runs)} files need {len(runs)} shares; got {len(shares)}.")
    for run in runs[1:]:
        if {name: value.shape for name, value in run.items()} != {name: value.shape for name, value in runs[0].items()}:
            raise ValueError("the files hold different tensors: only runs of one model can be averaged.")
    total = sum(shares)
    return {
        name: sum(share / total * run[name].astype(np.float64) for share, run in zip(shares, runs, strict=True)).astype(
            np.float16
        )
        for name in runs[0]
    }


if __name__ == "__main__":
    main()
