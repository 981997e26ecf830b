"""How long tuning takes on 200 documents and 100 labels, in seconds of this process and against what else one could do.

    python benchmarks/studies/tuning.py

Made-up log-odds. Every row is fitted `--rounds` times in turn with the others, and the quickest counts, so that other
work on the machine disturbs little. Beside them scikit-learn's TunedThresholdClassifierCV, one threshold for a label
with five folds on the same log-odds: it is timed once on five labels, and that is scaled to all of them.
"""

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import options, table, timed
from setscore.calibration import make

NAMES = ("auto", "levelled", "platt", "shrunk", "isotonic", "temperature", "paper")
SCIKIT_LEARN = "scikit-learn, a tuned threshold per label"


def made_up(documents: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that differ in how often they apply; each is gold at least a few times."""
    random = np.random.default_rng(13)
    log_odds = random.normal(scale=2.5, size=(documents, labels))
    gold = random.random(log_odds.shape) < expit(1.2 * log_odds + np.linspace(-5, 0, labels))
    gold[:10] |= log_odds[:10] == log_odds[:10].max(axis=0)
    gold[10:15] |= log_odds[10:15] == log_odds[10:15].max(axis=0)
    return log_odds, gold


def scikit_learn(log_odds: np.ndarray, gold: np.ndarray) -> float:
    """Seconds for all labels, from some that are spread over the rare and the common ones."""
    some = np.unique(np.linspace(0, gold.shape[1] - 1, 5).astype(int))

    def fit() -> None:
        for one in some:
            TunedThresholdClassifierCV(LogisticRegression(), scoring="f1", cv=5).fit(log_odds[:, [one]], gold[:, one])

    return seconds(fit) * gold.shape[1] / len(some)


def seconds(work: Callable[[], object]) -> float:
    return timed(work, clock=time.process_time)[1]


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(given)
    log_odds, gold = made_up(arguments.documents, arguments.labels)
    best = dict.fromkeys(NAMES, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn: folds without a gold document
        for _ in range(arguments.rounds):
            for name in NAMES:
                best[name] = min(best[name], seconds(partial(make(name).fit, log_odds, gold)))
        best[SCIKIT_LEARN] = scikit_learn(log_odds, gold)
    print(f"{arguments.documents} documents, {arguments.labels} labels\n")
    rows = [[name, f"{took:.3f}", f"{took / best['paper']:.1f}"] for name, took in best.items()]
    print(table(["calibration", "processor seconds", "times the paper's grid"], rows))


if __name__ == "__main__":
    main()
