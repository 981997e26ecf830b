"""What a shortlist keeps, and the best that any method can reach on what it keeps (Theorem 3 of the paper).

A label that is not shortlisted is predicted negative, so whatever a shortlist drops is lost for good:

    micro-F1 <= 2 r / (1 + r),    r = share of all gold labels that are kept, pooled over documents
    macro-F1 <= mean over labels with gold documents of 2 r_i / (1 + r_i)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray


@dataclass(frozen=True)
class Retention:
    """All shares are fractions.

    pooled         kept gold labels over all gold labels; the ceilings follow from this one
    per_document   mean over the documents that have gold labels, as the paper's table has it
    per_label      [n_labels]; NaN for a label without gold documents
    chance         what a random shortlist of the same size keeps
    asked          labels per document, a mean
    dropped        pairs of document and label that are negative because they were not asked
    micro_ceiling, macro_ceiling  bounds on F1
    """

    pooled: float
    per_document: float
    per_label: FloatArray
    chance: float
    asked: float
    dropped: int
    micro_ceiling: float
    macro_ceiling: float

    def sentence(self) -> str:
        """One line for a report."""
        return (
            f"{self.asked:.1f} labels a document were asked; the shortlist keeps {100 * self.pooled:.1f}% of the gold"
            f" labels (chance {100 * self.chance:.1f}%), so micro-F1 is at most {100 * self.micro_ceiling:.1f} and"
            f" macro-F1 {100 * self.macro_ceiling:.1f}. {self.dropped} pairs were not asked and count as negative."
        )


def retention(gold: BoolArray, kept: BoolArray) -> Retention:
    """Both [n_documents, n_labels]."""
    if gold.shape != kept.shape:
        raise SetScoreError(f"gold labels have the shape {gold.shape}, the shortlist {kept.shape}; they must agree.")
    both, positives = gold & kept, gold.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        per_label = np.where(positives > 0, both.sum(axis=0) / positives, np.nan)
        per_document = both.sum(axis=1) / gold.sum(axis=1)
    pooled = float(both.sum() / max(1, gold.sum())) if gold.any() else 1.0
    known = per_label[positives > 0]
    return Retention(
        pooled=pooled,
        per_document=float(per_document[gold.any(axis=1)].mean()) if gold.any() else 1.0,
        per_label=per_label,
        chance=float(kept.mean()),
        asked=float(kept.sum(axis=1).mean()),
        dropped=int((~kept).sum()),
        micro_ceiling=f1_ceiling(pooled),
        macro_ceiling=float(np.mean([f1_ceiling(share) for share in known])) if len(known) else 1.0,
    )


def f1_ceiling(recall: float) -> float:
    """The highest F1 with this recall: precision 1."""
    return 2 * recall / (1 + recall)


def worst_labels(found: Retention, names: Sequence[str], most: int = 5) -> list[tuple[str, float]]:
    """The labels that the shortlist loses most often, with the share it keeps."""
    order = np.argsort(np.where(np.isnan(found.per_label), 2.0, found.per_label), kind="stable")[:most]
    return [(names[i], float(found.per_label[i])) for i in order if found.per_label[i] < 1]
