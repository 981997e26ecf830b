"""Weights to the files that ship: an int8 ONNX graph, the tokenizer, a manifest with checksums, and a parity report.

    python -m recipes.export --weights W.safetensors --tokenizer tokenizer.json --texts general.jsonl

`--texts` are general documents (JSONL with `text`, or .txt), never evaluation data: the activations seen on them set
the int8 scales. The parity sample (tests/data/everyday.*) is scored with the fp32 graph, and its log-odds are kept in
tests/data/fp32_log_odds.json (`--parity`) beside those of the int8 graph, where a test compares what the shipped graph
gives on its own machine with both.
"""

import argparse
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from safetensors.numpy import load_file

from recipes import ROOT
from recipes.graph import DOCUMENT, Shape, export, layer_weight
from recipes.quantize import Observed, QuantizedLinear, merge, quantize
from setscore.backbones.mini import MiniBackbone, default_folder
from setscore.classifier import SetScoreClassifier
from setscore.datasets import read_documents, read_labels
from setscore.encoders.embedded import batches
from setscore.prompts import Template, Verbalizer

# Labels asked while activations are observed: everyday subjects, tones and kinds of text.
OBSERVED_LABELS = (
    "sports", "politics", "feeling happy", "a complaint about a bill", "computer science", "anger or frustration",
    "food and drink", "a dispute before a court", "rude words", "the cost of fuel",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=default_folder())
    parser.add_argument("--parity", type=Path, default=ROOT / "tests" / "data" / "fp32_log_odds.json")
    parser.add_argument("--flips", type=float, default=0.01, help="the share of decisions that int8 may flip")
    arguments = parser.parse_args()
    weights = {name: value.astype(np.float32) for name, value in load_file(arguments.weights).items()}
    texts = [row.document.text for row in read_documents(arguments.texts) if row.document]

    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.tokenizer.resolve() != (arguments.out / "tokenizer.json").resolve():
        shutil.copyfile(arguments.tokenizer, arguments.out / "tokenizer.json")
    with tempfile.TemporaryDirectory() as folder:
        full_precision = Path(folder)
        shutil.copyfile(arguments.tokenizer, full_precision / "tokenizer.json")
        write(full_precision, export(weights).SerializeToString())
        full = parity_scores(full_precision)
        observed = merge(observe(full_precision, weights, texts))
    write(
        arguments.out,
        export(weights, quantized=quantized_layers(weights, observed)).SerializeToString(),
        arguments.weights,
    )
    small = parity_scores(arguments.out)

    flips = float(((full > 0) != (small > 0)).mean())
    error = float(np.sqrt(((full - small) ** 2).mean()))
    report = {"made_by": "python -m recipes.export", "flips": flips, "rms_error": error}
    found = {"log_odds": np.round(full, 4).tolist(), "int8_log_odds": np.round(small, 4).tolist()}
    arguments.parity.write_text(json.dumps(report | found) + "\n")
    print(f"{full.size} decisions of the parity sample: {flips:.2%} flip, rms error of the log-odds {error:.3f}")
    print(f"{(arguments.out / 'model.onnx').stat().st_size / 1e6:.1f} MB in {arguments.out}")
    if flips > arguments.flips:
        raise SystemExit(f"int8 may flip at most {arguments.flips:.0%} of the decisions; look at quantize.py's scales.")


def write(folder: Path, graph: bytes, made_from: Path | None = None) -> None:
    """The graph and the manifest that the backbone verifies at load; it also names the weights it was made from."""
    (folder / "model.onnx").write_bytes(graph)
    names = ("model.onnx", "tokenizer.json")
    checksums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    origin = {} if made_from is None else {"made_from_sha256": hashlib.sha256(made_from.read_bytes()).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps({"sha256": checksums} | origin, indent=2) + "\n")


def load(folder: Path) -> MiniBackbone:
    return MiniBackbone(attention="shared", verbalizer=Verbalizer("yes", "no"), folder=folder)


def parity_scores(folder: Path) -> np.ndarray:
    data = ROOT / "tests" / "data"
    documents = [row.document for row in read_documents(data / "everyday.jsonl")]
    labels = read_labels(data / "everyday_labels.yaml").asked_by("description")
    return SetScoreClassifier(labels, backbone=load(folder)).decision_function(documents)


def observe(folder: Path, weights: Mapping[str, np.ndarray], texts: Sequence[str]) -> Iterator[dict[str, Observed]]:
    """What every linear layer reads on general documents, batch by batch, with the fp32 weights.

    Questions show what all of them read but the document part of the last layer, which reads texts to embed.
    """
    backbone = load(folder)
    session = onnxruntime.InferenceSession(export(weights, observe=True).SerializeToString())
    layers = {output.name.removesuffix(".low") for output in session.get_outputs() if output.name.endswith(".low")}
    document = {name for name in layers if name.endswith(DOCUMENT)}

    def observed(inputs: Mapping[str, np.ndarray], names: set[str]) -> dict[str, Observed]:
        wanted = [f"{name}.{part}" for name in sorted(names) for part in ("low", "high", "moments")]
        found = dict(zip(wanted, session.run(wanted, inputs), strict=True))
        return {
            name: Observed(found[f"{name}.low"], found[f"{name}.high"], found[f"{name}.moments"].astype(np.float64))
            for name in names
        }

    template = Template.of("express")
    for start in range(0, len(texts), 8):
        batch = [text[:1500] for text in texts[start : start + 8]]
        queries = [template.query(text, label) for text in batch for label in OBSERVED_LABELS]
        for packed in backbone.batches(queries):
            rows = np.arange(len(packed.slots))  # an empty part has no range
            inputs = backbone.inputs(packed, backbone.prompter.answers) | {"embedded": rows}
            yield observed(inputs, layers - document)
    for _, inputs in batches([*texts, *OBSERVED_LABELS], backbone.prompter.tokenizer):
        yield observed(inputs | {"slots": np.zeros((len(inputs["embedded"]), 1), np.int64)}, document)


def quantized_layers(weights: Mapping[str, np.ndarray], observed: Mapping[str, Observed]) -> dict[str, QuantizedLinear]:
    shape = Shape.of(weights)
    return {name: quantize(layer_weight(weights, shape, name), seen) for name, seen in observed.items()}


if __name__ == "__main__":
    main()
