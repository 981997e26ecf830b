"""The cosine of a sentence encoder: nothing is learned but a scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from setscore.baselines.base import Untrained, finished
from setscore.encoders import ENCODER, Encode, load_encoder
from setscore.ensemble import COSINE_SCALE, cosines
from setscore.records import BoolArray, LabelSet, Progress, Scores, steps


@dataclass(frozen=True)
class Cosine(Untrained):
    """Slope times cosine plus bias, in the place of log-odds; the order of labels is that of the cosines."""

    checkpoint: str = ENCODER
    device: str = "auto"
    encode: Encode | None = None

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        encode = self.encode or load_encoder(self.checkpoint, "the baseline cosine", self.device)
        slope, bias = COSINE_SCALE
        found = slope * cosines(texts, labels, encode) + bias
        steps(progress, "scoring", len(texts))(len(texts))
        return finished(found, candidates, len(texts))
