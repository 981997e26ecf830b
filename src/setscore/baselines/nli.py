"""Zero-shot entailment: a document entails "This example is <label>." or contradicts it (Yin et al., 2019).

The score is the log-odds of entailment against contradiction, what the zero-shot pipeline of transformers reports with
multi_label=True. All pairs of document and label go through the model in batches of like length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from scipy.special import expit

from setscore.baselines.base import (
    DOCUMENT_TOKENS,
    batches,
    beginning,
    beside,
    finished,
    library,
    on_device,
    pretrained,
)
from setscore.calibration.thresholds import best_cut
from setscore.errors import BackboneError, TemplateError
from setscore.records import BoolArray, LabelSet, Progress, Scores, steps

# The first is the default of the zero-shot pipeline. The paper searches three and prints none of them.
HYPOTHESES = ("This example is {}.", "This text is about {}.", "The topic of this text is {}.")
BART, DEBERTA = "facebook/bart-large-mnli", "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli"


@dataclass(frozen=True)
class Entailment:
    """checkpoint   a folder or repository of a sequence classifier trained on NLI
    hypotheses   with {} for the label; `fit` keeps the one with the highest micro-F1, the first being the default
    document_tokens  of a document that are read; fewer where the model has no room for them and the hypothesis
    device       "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:1"
    """

    checkpoint: str = BART
    hypotheses: tuple[str, ...] = HYPOTHESES[:1]
    batch_size: int = 16
    document_tokens: int = DOCUMENT_TOKENS
    device: str = "auto"

    def __post_init__(self) -> None:
        for hypothesis in self.hypotheses:
            if hypothesis.count("{}") != 1:
                raise TemplateError(f"a hypothesis has {{}} exactly once for the label, got {hypothesis!r}.")

    def fit(
        self, texts: Sequence[str], gold: BoolArray, labels: LabelSet, *, candidates: BoolArray | None = None
    ) -> Self:
        """The hypothesis with the highest micro-F1 at its best threshold on these documents; of equals the first."""
        reached = []
        for hypothesis in self.hypotheses if len(self.hypotheses) > 1 else ():
            scores = replace(self, hypotheses=(hypothesis,)).score(texts, labels, candidates=candidates).log_odds
            probabilities, asked = expit(scores), np.isfinite(scores)
            decided = asked & (probabilities >= best_cut(probabilities[asked], gold[asked], int(gold.sum())))
            reached.append(2 * (decided & gold).sum() / max(1, decided.sum() + gold.sum()))
        return replace(self, hypotheses=(self.hypotheses[int(np.argmax(reached))],)) if reached else self

    def score(
        self,
        texts: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        torch = library("torch", "the NLI baselines")
        tokenizer, model, (yes, no) = _loaded(self.checkpoint, self.device)
        room, begun = _room(tokenizer, model), [beginning(tokenizer, text, self.document_tokens) for text in texts]
        asked = np.ones((len(texts), len(labels)), dtype=np.bool_) if candidates is None else candidates
        hypotheses = [self.hypotheses[0].replace("{}", text) for text in labels.texts]
        pairs = sorted(np.argwhere(asked).tolist(), key=lambda pair: -len(begun[pair[0]]) - len(hypotheses[pair[1]]))
        log_odds = np.full(asked.shape, -np.inf)
        for batch in batches(pairs, self.batch_size):
            premises, claims = [begun[row] for row, _ in batch], [hypotheses[i] for _, i in batch]
            cut = {} if room is None else {"truncation": "only_first", "max_length": room}
            inputs = tokenizer(premises, claims, padding=True, return_tensors="pt", **cut)
            with torch.inference_mode():
                logits = model(**beside(model, inputs)).logits.float().cpu().numpy()
            for (row, i), found in zip(batch, logits[:, yes] - logits[:, no], strict=True):
                log_odds[row, i] = found
        steps(progress, "scoring", len(texts))(len(texts))
        return finished(log_odds, candidates, len(pairs))


@lru_cache(maxsize=2)
def _loaded(place: str, device: str) -> tuple[Any, Any, tuple[int, int]]:
    """Tokenizer, model, and which outputs mean entailment and contradiction: by name, never by place."""
    model = pretrained("AutoModelForSequenceClassification", place, "the NLI baselines")
    names = {str(name).lower(): int(number) for name, number in model.config.label2id.items()}
    found = [next((n for name, n in names.items() if name.startswith(part)), None) for part in ("entail", "contradict")]
    if found[0] is None or found[1] is None:
        outputs = ", ".join(sorted(names, key=names.__getitem__))
        raise BackboneError(f"{place} is no NLI model: its outputs are {outputs}, not entailment and contradiction.")
    tokenizer = pretrained("AutoTokenizer", place, "the NLI baselines")
    return tokenizer, on_device(model, device), (found[0], found[1])


def _room(tokenizer: Any, model: Any) -> int | None:
    """Tokens that a model reads at most; None where positions are relative, as in DeBERTa-v3."""
    if getattr(model.config, "relative_attention", False) and not getattr(model.config, "position_biased_input", True):
        return None
    return min(int(tokenizer.model_max_length), int(model.config.max_position_embeddings))
