"""The embedded model's sentence embedding beside all-MiniLM-L6-v2, which training keeps it near.

    python benchmarks/studies/embedding.py --data-dir DATA [--documents 200] [--sets reuters aapd]

On so many documents of each development set, drawn with seed 13: the mean cosine between the two vectors of one text,
documents and labels apart; the correlation of the two encoders' cosines between documents and labels; the mean average
precision over documents when labels are ranked by each cosine; and how long encoding took, as a ratio. Needs the extra
shortlist. What a shortlist keeps with each encoder: `setscore shortlist eurlex --data-dir DATA --encoder NAME`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import average_precision_score

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import header, options, row, timed
from setscore.datasets import Dataset
from setscore.encoders import ENCODER, Encode, load_encoder, unit
from setscore.encoders.embedded import sentence_encoder
from setscore.experiments import PAPER_SETS, prepare

SEED, THREADS = 13, 2


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--sets", nargs="+", default=PAPER_SETS)
    arguments = parser.parse_args(given)
    torch.set_num_threads(THREADS)
    ours, theirs = sentence_encoder(threads=THREADS), load_encoder(ENCODER, device="cpu")
    measures = ("same document", "same label", "correlation", "ranking, setscore-mini", "ranking, all-MiniLM", "time")
    print(header(["", *measures]))
    for name in arguments.sets:
        pool = prepare(name, "development", (SEED,), data_dir=arguments.data_dir).parts["pool"]
        drawn = pool.draw(min(arguments.documents, len(pool) - 1), SEED)[0]
        print(row([name, *(f"{value:.3f}" for value in compared(drawn, ours, theirs))]), flush=True)


def compared(dataset: Dataset, ours: Encode, theirs: Encode) -> tuple[float, ...]:
    (own, own_labels, spent), (other, other_labels, base) = (encoded(dataset, encode) for encode in (ours, theirs))
    cosines, others = own @ own_labels.T, other @ other_labels.T
    return (
        float((own * other).sum(axis=1).mean()),
        float((own_labels * other_labels).sum(axis=1).mean()),
        float(np.corrcoef(cosines.ravel(), others.ravel())[0, 1]),
        ranking(dataset, cosines),
        ranking(dataset, others),
        spent / base,
    )


def encoded(dataset: Dataset, encode: Encode) -> tuple[np.ndarray, np.ndarray, float]:
    """Vectors of documents and labels, and the seconds that the documents took."""
    labels = unit(encode(dataset.labels.texts))
    documents, seconds = timed(lambda: unit(encode(dataset.texts)))
    return documents, labels, seconds


def ranking(dataset: Dataset, cosines: np.ndarray) -> float:
    """Mean average precision over the documents that have labels."""
    rows = np.flatnonzero(dataset.gold.any(axis=1))
    return float(np.mean([average_precision_score(dataset.gold[row], cosines[row]) for row in rows]))


if __name__ == "__main__":
    main()
