"""What learning costs: processor time of `fit` and of prediction with a read-out, against calibration alone.

    python benchmarks/speed/fit.py
    python benchmarks/speed/fit.py --backbone setscore-mini --rounds 9

Both sides run in turn in one process, and the quickest of --rounds counts, so that other work on the machine disturbs
little. Fitting is on made-up numbers, 200 documents and 100 labels: asking the model costs both the same and is left
out. Predicting asks the model, 100 labels of made-up texts of 150 words, with and without what was learned.
"""

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.special import expit

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import options, table, timed
from setscore import SetScoreClassifier, fitting
from setscore.encoders import unit
from setscore.fitting import MODEL, Aim, Known
from setscore.records import BoolArray, FloatArray

CALIBRATED, LEARNED = "calibration alone", "with a read-out"
MOST_FIT, MOST_PREDICT = 3.0, 1.05  # times calibration alone
WIDTH = 384  # of an embedding
WORDS = 150
LETTERS = tuple("abcdefghijklmnoprstuvw")


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--backbone", default="setscore-small")
    parser.add_argument("--documents", type=int, default=200, help="to fit on")
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--texts", type=int, default=8, help="to predict")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(given)
    for name in ("documents", "labels", "texts", "rounds"):
        if getattr(arguments, name) < 2:
            parser.error(f"--{name} is at least 2, got {getattr(arguments, name)}.")
    fit = side_by_side(fits(arguments.documents, arguments.labels), arguments.rounds)
    predict = side_by_side(predictions(arguments.backbone, arguments.labels, arguments.texts), arguments.rounds)
    rows = [
        told(f"fit, {arguments.documents} documents, {arguments.labels} labels", fit, MOST_FIT),
        told(f"predict, {arguments.texts} texts, {arguments.labels} labels", predict, MOST_PREDICT),
    ]
    print(table(["processor seconds", CALIBRATED, LEARNED, "ratio", "at most"], rows))


def told(what: str, found: Mapping[str, float], most: float) -> list[str]:
    return [what, *(f"{value:.3f}" for value in found.values()), f"{found[LEARNED] / found[CALIBRATED]:.2f}", f"{most}"]


def side_by_side(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Processor seconds of each, the least of all rounds; each is called once before, to warm up."""
    best = dict.fromkeys(works, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few documents
        for number in range(rounds + 1):
            for name, work in works.items():
                took = timed(work, clock=time.process_time)[1]
                best[name] = min(best[name], took) if number else best[name]
    return best


def fits(documents: int, labels: int) -> dict[str, Callable[[], object]]:
    known, texts = made_up(documents, labels)
    return {
        CALIBRATED: lambda: fitting.conclude(known, None, Aim()),
        LEARNED: lambda: fitting.conclude(known, texts, Aim()),
    }


def made_up(documents: int, labels: int) -> tuple[Known, FloatArray]:
    """Documents whose labels are partly in the scores and partly in the embedding, and vectors of the labels' texts."""
    random = np.random.default_rng(13)
    vectors, texts = (unit(random.normal(size=(n, WIDTH))).astype(np.float64) for n in (documents, labels))
    truth = 20 * vectors @ texts.T + np.linspace(-4, -1, labels)
    gold: BoolArray = random.random(truth.shape) < expit(truth)
    scores = 0.3 * truth + random.normal(size=truth.shape)
    return Known({MODEL: scores}, gold, vectors), texts


def predictions(backbone: str, labels: int, texts: int) -> dict[str, Callable[[], object]]:
    random = np.random.default_rng(13)
    words = ["".join(random.choice(LETTERS, size=6)) for _ in range(500)]
    asked = [" ".join(random.choice(words, size=WORDS)) for _ in range(texts)]
    inventory = [f"{words[number]} {words[-number - 1]}" for number in range(labels)]
    gold = random.random((texts, labels)) < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {
            name: SetScoreClassifier(inventory, backbone=backbone, head=head).fit(asked, gold)
            for name, head in ((CALIBRATED, "none"), (LEARNED, "auto"))
        }
    return {name: lambda one=one: one.classify(asked) for name, one in made.items()}  # type: ignore[misc]


if __name__ == "__main__":
    main()
