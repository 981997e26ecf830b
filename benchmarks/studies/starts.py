"""Where a read-out starts: what all labels share, fitted on each set, and what a start from the other five is worth.

    python benchmarks/studies/starts.py --data-dir DATA --save scores
    python benchmarks/studies/starts.py --data-dir DATA --save scores --labels 6 --draws 30

First the seven numbers that labels share (`setscore.readout`), fitted on the 200 validation documents of seed 13 of
each set, their mean and how sure it is (one over their variance, at most 10): TYPICAL and its precision in the package.
Then micro / macro F1 inside these documents after a few of them, where the start of a set is the mean of the other
sets: a set that takes no part in its own start tells what the start is worth for labels that nobody has seen. --labels
draws an inventory of so many labels anew each time.
"""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import f1_pair, header, options, row
from benchmarks.labelled import Labelled, chosen, labelled
from benchmarks.studies.few_documents import Method, calibrated, fit, not_fitting
from setscore import SetScoreClassifier, readout
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS
from setscore.logistic import Prior, fit_logistic
from setscore.metrics import decision_metrics
from setscore.readout import COSINE, COSINE_SCALE, OWN, shared_inputs
from setscore.records import FloatArray, LabelSet

SIZES = (5, 10, 25, 50)
HARDLY = 0.1  # precision of each number around OWN
MOST = 10.0  # precision of a mean
Start = tuple[FloatArray, FloatArray]


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--save", type=Path, required=True, help="a folder for the answers of the model")
    parser.add_argument("--backbone", default="setscore-small")
    parser.add_argument("--weights", type=Path, help="float weights of the recipe instead, on a GPU where there is one")
    parser.add_argument("--sets", nargs="+", default=PAPER_SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--labels", type=int, help="of an inventory drawn from a set's; default: all")
    arguments = parser.parse_args(given)
    if len(arguments.sets) < 3:
        parser.error("at least three --sets are needed: a set's start is the mean of the others.")
    backbone = chosen(arguments.backbone, arguments.weights)
    try:
        sets = {
            name: labelled(name, arguments.data_dir, arguments.save, backbone, within=True) for name in arguments.sets
        }
    except SetScoreError as error:
        parser.error(str(error))
    found = {name: shared_numbers(one) for name, one in sets.items()}
    print(header(["set", "own", "mean", "maximum", "cosine", "alone", "beside", "constant"]))
    together = dict(zip(("**mean**", "**precision**"), start_of(list(found.values())), strict=True))
    for name, numbers in (found | together).items():
        print(row([name, *(f"{number:.2f}" for number in numbers)]))
    print("\n" + header(["documents", "method", *sets, "mean"], left=0))
    for size in arguments.sizes:
        for name, method in METHODS.items():
            cells = []
            for own, one in sets.items():
                start = start_of([numbers for other, numbers in found.items() if other != own])
                cells.append(over_draws(method, one, size, start, draws=arguments.draws, labels=arguments.labels))
            pairs = [*cells, np.mean(cells, axis=0)]
            print(row([size, name, *(f1_pair({"micro_f1": p[0], "macro_f1": p[1]}) for p in pairs)]), flush=True)


def shared_numbers(one: Labelled) -> FloatArray:
    """The seven numbers, fitted on all validation documents of a set, hardly held."""
    inputs = shared_inputs(one.log_odds[one.choice], one.vectors[one.choice] @ one.labels.T)
    inputs = inputs - inputs[..., 3].mean() / COSINE_SCALE * COSINE
    gold = one.gold[one.choice].ravel()
    return fit_logistic(inputs.reshape(-1, len(OWN))[:, :-1], gold, Prior(OWN, np.full(len(OWN), HARDLY)))


def start_of(numbers: Sequence[FloatArray]) -> Start:
    """Mean and precision of the numbers of several sets."""
    return np.mean(numbers, axis=0), 1 / np.maximum(np.var(numbers, axis=0), 1 / MOST)


def over_draws(method: Method, one: Labelled, size: int, start: Start, *, draws: int, labels: int | None) -> FloatArray:
    """Micro and macro F1, the mean over draws."""
    found = []
    for number in range(draws):
        random = np.random.default_rng([number, size])
        part = one if labels is None else of_some(one, labels, random)
        order = random.permutation(one.choice)
        known, measured = order[:size], order[size:]
        with patch.object(readout, "BASES", (readout.BASES[0], start)), threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few documents
            decisions, _ = method(part, known, measured)
        metrics = decision_metrics(part.gold[measured], decisions)
        found.append([metrics["micro_f1"], metrics["macro_f1"]])
    return np.mean(found, axis=0)


def of_some(one: Labelled, labels: int, random: np.random.Generator) -> Labelled:
    """The same documents with an inventory of so many labels, of those that two documents have."""
    known = np.flatnonzero(one.gold[one.choice].sum(axis=0) >= 2)
    places = random.choice(known, min(labels, len(known)), replace=False)
    inventory = one.classifier.labels
    alone = [replace(inventory.labels[place], parent=None) for place in places]
    chosen = LabelSet(tuple(alone), inventory.label_text)
    return replace(
        one,
        classifier=SetScoreClassifier(chosen, backbone=one.classifier.backbone),
        log_odds=one.log_odds[:, places],
        gold=one.gold[:, places],
        labels=one.labels[places],
    )


METHODS: dict[str, Method] = {"not fitting": not_fitting, "calibration": calibrated, "fit": fit}

if __name__ == "__main__":
    main()
