"""How long tuning takes on 200 documents and 100 labels, in seconds of this process and against what else one could do.

    python benchmarks/tuning.py

Made-up log-odds. Every row is fitted `--rounds` times in turn with the others, and the quickest counts, so that other
work on the machine disturbs little. Beside them scikit-learn's TunedThresholdClassifierCV, one threshold for a label
with five folds on the same log-odds: it is timed once on five labels, and that is scaled to all of them.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV

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
    some = np.linspace(0, gold.shape[1] - 1, 5).astype(int)
    begun = time.process_time()
    for label in some:
        TunedThresholdClassifierCV(LogisticRegression(), scoring="f1", cv=5).fit(log_odds[:, [label]], gold[:, label])
    return (time.process_time() - begun) * gold.shape[1] / len(some)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn: folds without a gold document
    log_odds, gold = made_up(arguments.documents, arguments.labels)
    work: dict[str, Callable[[], object]] = {name: (lambda name=name: make(name).fit(log_odds, gold)) for name in NAMES}
    best = dict.fromkeys(work, np.inf)
    for _ in range(arguments.rounds):
        for name, do in work.items():
            begun = time.process_time()
            do()
            best[name] = min(best[name], time.process_time() - begun)
    best[SCIKIT_LEARN] = scikit_learn(log_odds, gold)
    print(f"{arguments.documents} documents, {arguments.labels} labels\n")
    print("| calibration | processor seconds | times the paper's grid |\n|---|---:|---:|")
    for name, seconds in best.items():
        print(f"| {name} | {seconds:.3f} | {seconds / best['paper']:.1f} |")


if __name__ == "__main__":
    main()
