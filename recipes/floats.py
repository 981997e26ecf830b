"""Float weights of the recipe as a backbone: the package's own prompts, windows and batches, computed by torch.

    SetScoreClassifier(labels, backbone=FloatBackbone(Path("build/small/weights.safetensors")))

On a GPU it scores all evaluation sets in minutes, where the int8 graph takes hours on two cores; and it is what that
graph is compared with.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from recipes.model import build, pooled
from setscore.backbones import Attention, BackboneSpec
from setscore.backbones.asking import AskingBackbone, Prompter
from setscore.backbones.mini import MiniBackbone, default_folder
from setscore.backbones.specs import SMALL
from setscore.backbones.tokens import TextTokenizer
from setscore.prompts import Verbalizer


class FloatBackbone(MiniBackbone):
    """As the embedded backbone, with other numbers in the place of its graph."""

    def __init__(
        self,
        weights: Path,
        *,
        spec: BackboneSpec = SMALL,
        attention: Attention = "shared",
        device: str | None = None,
    ) -> None:
        self._session = TorchSession(weights, device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._digest = hashlib.sha256(weights.read_bytes()).hexdigest()
        tokenizer = TextTokenizer(default_folder() / "tokenizer.json")
        AskingBackbone.__init__(self, Prompter(spec, tokenizer, Verbalizer("yes", "no")), attention)

    def weights(self) -> dict[str, str]:
        """Other numbers than the packaged graph's: their own digest, so that no store mixes up their answers."""
        return {"weights": self._digest, "dtype": "fp32"}


class TorchSession:
    """What the embedded backbone asks of onnxruntime, answered by the training code; graph.py tells the inputs."""

    def __init__(self, weights: Path, device: str) -> None:
        self.model = build(load_file(weights)).to(device).eval()

    @torch.no_grad()
    def run(self, names: Sequence[str], inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        at = {name: torch.from_numpy(array).to(self.model.b.device) for name, array in inputs.items()}
        segments = at["segments"]
        parts = (segments > 0).long()
        hidden = self.model(at["token_ids"], at["positions"], parts, segments)
        found = {}
        if "logits" in names:
            read = hidden.gather(1, at["slots"][..., None].expand(-1, -1, hidden.shape[-1]))
            found["logits"] = self.model.logits(read)[..., at["words"]]
        if "embedding" in names:
            rows = at["embedded"]
            found["embedding"] = pooled(hidden[rows], parts[rows], segments[rows], 1)[:, 0]
        return [found[name].float().cpu().numpy() for name in names]
