"""Float weights out of a packaged int8 graph, to train on from a model whose float weights are not at hand.

    python -m recipes.readback --package src/setscore/models/setscore-small --out build/small/packaged.safetensors

What rounding took is gone, but the numbers are those that the graph computes with: of the linear layers code times
step, copies of loud channels added up and the scale of the inputs taken out again. The graph keeps positions and token
type as one sum, so the token type read back is zero.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

from recipes.graph import Shape

Array = np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, required=True, help="a folder with model.onnx")
    parser.add_argument("--out", type=Path, required=True, help="safetensors, half precision")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    graph = onnx.load(arguments.package / "model.onnx").graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found = weights(stored)
    save_file({name: value.astype(np.float16, order="C") for name, value in found.items()}, arguments.out)


def weights(stored: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors of recipes.model by their names."""
    words = stored["word.codes"].astype(np.float32) * stored["word.scale"]
    found = {"word.weight": words, "pos.weight": stored["position.weight"], "typ.weight": np.zeros((2, words.shape[1]))}
    found |= {"t.weight": stored["t.matrix"].T, "t.bias": stored["t.offset"], "b": stored["b"]}
    norms = (name for name in stored if name.endswith((".weight", ".bias")) and name != "position.weight")
    found |= {name: stored[name] for name in norms}
    layers = 1 + max(int(name.split(".")[1]) for name in stored if name.startswith("l."))
    shape = Shape(layers, words.shape[1], words.shape[1] // 32)
    for number in range(layers):
        name = f"l.{number}"
        for part in ("o", "u", "d"):
            found[f"{name}.{part}.weight"] = linear(stored, f"{name}.{part}", f"{name}.{part}")
            found[f"{name}.{part}.bias"] = stored[f"{name}.{part}.offset"]
        # the last layer computes queries apart from keys and values, out of the same codes of the input
        parts = ("qkv",) if number < layers - 1 else ("q", "kv")
        factor = np.ones(3 * shape.width, np.float32)
        factor[: shape.width] = shape.head_width**0.5
        joint = np.concatenate([linear(stored, f"{name}.{part}", f"{name}.qkv") for part in parts])
        found[f"{name}.qkv.weight"] = joint * factor[:, None]
        found[f"{name}.qkv.bias"] = np.concatenate([stored[f"{name}.{part}.offset"] for part in parts]) * factor
    return found


def linear(stored: Mapping[str, Array], name: str, read: str) -> Array:
    """The weight [out, K] of the layer `name`, whose input is stored under the name `read`."""
    matrix = stored[f"{name}.codes"].astype(np.float32) * stored[f"{name}.step"]
    inverse, copies = stored[f"{read}.inverse_scale"], stored[f"{read}.copies"]
    kept = matrix[: len(inverse)].copy()
    np.add.at(kept, copies, matrix[len(inverse) :])
    return (kept * inverse[:, None]).T


if __name__ == "__main__":
    main()
