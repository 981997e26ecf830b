"""Per-label entailment scoring, the paper's recommended method (Section 3.2, Algorithm 3).

One short prompt per (document, label) pair, one masked position, and

    u_i(x) = log p(yes | prompt_i, r_i) - log p(no | prompt_i, r_i)                                  (Eq. 2)

Every label is asked at the same place, so the scores do not depend on the order of the labels. Cost: one forward per
pair with exact attention, one per document (or window of it) with shared attention.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from setscore.backbones import Backbone
from setscore.errors import SetScoreError, TemplateError
from setscore.prompts import Template
from setscore.records import BoolArray, LabelSet, Progress, Query, Scores, steps
from setscore.scorers.windows import Reading, document_room, pool_windows, read_document

BLOCK_QUERIES = 8192  # queries held in memory at once; progress is told after each block
LONGEST = 256  # label texts whose tokens are counted, beside those that are asked


@dataclass(frozen=True)
class PerLabelScorer:
    """The options of the method; `score` is the method."""

    template: Template
    reading: Reading = field(default_factory=Reading)

    def cost(self, labels: int, *, shared: bool) -> int:
        """Forwards for one window of a document and so many labels."""
        return min(labels, 1) if shared else labels

    def score(
        self,
        backbone: Backbone,
        documents: Sequence[str],
        labels: LabelSet,
        *,
        candidates: BoolArray | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        """Scores of every label, or of each document's `candidates` [n_documents, n_labels] only."""
        texts, shared = labels.texts, backbone.attention == "shared"
        scored = np.ones((len(documents), len(labels)), dtype=np.bool_) if candidates is None else candidates
        wide = _may_be_longest(texts, scored)
        if shared and self.template.label_first:
            raise TemplateError(
                "this template names the label before the document, so the document cannot be shared between labels."
                " Put {document} first or use attention='exact'."
            )
        longest = [self.template.query("", texts[i]) for i in wide]
        room = document_room(backbone, longest, self.reading.max_document_tokens, places=wide)
        if self.reading.overlap >= room:
            overlap = self.reading.overlap
            raise SetScoreError(f"windows of {room} tokens cannot overlap by {overlap}; choose a smaller overlap.")
        log_odds = np.full(scored.shape, -np.inf)
        truncated = np.zeros(len(documents), dtype=np.bool_)
        forwards = 0
        step = steps(progress, "scoring", len(documents))
        for block in _blocks(documents, int(scored.sum(axis=1).max(initial=1))):
            queries: list[Query] = []
            places: list[tuple[int, list[int], int]] = []  # document, its labels, how many windows
            for row in block:
                most = backbone.spec.windows
                windows, truncated[row] = read_document(backbone, documents[row], self.reading, room=room, most=most)
                asked = np.flatnonzero(scored[row]).tolist()
                queries += [self.template.query(window, texts[i]) for window in windows for i in asked]
                places.append((row, asked, len(windows)))
            forwards += sum(count * self.cost(len(asked), shared=shared) for _, asked, count in places)
            answers = iter(np.array([float(answer[0]) for answer in backbone.log_odds(queries)]))
            for row, asked, count in places:
                parts = np.fromiter(answers, dtype=np.float64, count=count * len(asked))
                log_odds[row, asked] = pool_windows(parts.reshape(count, len(asked)), self.reading.pool)
            step(len(block))
        return Scores(log_odds, scored, truncated, forwards)


def _may_be_longest(texts: Sequence[str], scored: BoolArray) -> list[int]:
    """Places of the labels with most characters, whoever is asked, and of those that are: never a hundred thousand."""
    if len(texts) <= LONGEST:
        return list(range(len(texts)))
    wide = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)[:LONGEST]
    return sorted({*wide, *np.flatnonzero(scored.any(axis=0)).tolist()})


def _blocks(documents: Sequence[str], labels: int) -> Iterator[list[int]]:
    """Row numbers, long documents first, in blocks of like length."""
    order = sorted(range(len(documents)), key=lambda row: len(documents[row]), reverse=True)
    size = max(1, BLOCK_QUERIES // labels)
    for start in range(0, len(order), size):
        yield order[start : start + size]
