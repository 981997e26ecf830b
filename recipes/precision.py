"""What int8 and shared attention cost: the shipped graph against the weights in fp32, shared against exact attention.

    python -m recipes.precision --weights weights.safetensors --data-dir DATA --scores scores [--sets jigsaw,aapd]

`--scores` is the folder of `setscore evaluate all --long-documents truncate --save scores`, with the shipped graph. The
fp32 model gets the very same prompts. Per set: the share of decisions at 0 that differ, micro / macro F1 of these
decisions, and micro / macro F1 with one calibration (auto, fitted to the fp32 scores of 200 documents; means over seeds
13, 17 and 23), so that what differs is the scores alone.
A GPU takes two minutes; on a CPU leave out --exact.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.saved import saved_pool
from recipes.floats import FloatBackbone
from setscore import SetScoreClassifier
from setscore.backbones import Attention
from setscore.calibration import make
from setscore.datasets.dataset import draw_rows
from setscore.errors import TruncationWarning
from setscore.experiments import PAPER_SETS, prepare
from setscore.metrics import decision_metrics

SEEDS, FITTED = (13, 17, 23), 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("weights", "data-dir", "scores"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(PAPER_SETS))
    parser.add_argument("--exact", action="store_true", help="compare exact attention too")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", TruncationWarning)
    columns = ("int8 flips", "int8 at 0", "fp32 at 0", "int8", "fp32", "exact flips", "exact, fp32")
    print(f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name in arguments.sets.split(","):
        experiment = prepare(name, "development", SEEDS, data_dir=arguments.data_dir)
        pool, stored = experiment.parts["pool"], saved_pool(arguments.scores, name)
        full = fp32(arguments, "shared", pool.labels, pool.texts)
        both = [stored.log_odds, full]
        cells = [flips(*both), *(percent(f1(stored.gold, odds > 0)) for odds in both), *scores(full, both, stored.gold)]
        if arguments.exact:
            exact = fp32(arguments, "exact", pool.labels, pool.texts)
            cells += [flips(exact, full), *scores(exact, [exact], stored.gold)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def fp32(arguments: argparse.Namespace, attention: Attention, labels: object, texts: Sequence[str]) -> np.ndarray:
    backbone = FloatBackbone(arguments.weights, attention=attention, device=arguments.device)
    full = SetScoreClassifier(labels, backbone=backbone, long_documents="truncate")
    return full.decision_function(list(texts))


def flips(some: np.ndarray, others: np.ndarray) -> str:
    return f"{100 * ((some > 0) != (others > 0)).mean():.2f}%"


def scores(fitted: np.ndarray, measured: list[np.ndarray], gold: np.ndarray) -> list[str]:
    """Micro / macro F1 of each of `measured`, with the calibration of `fitted`."""
    sums = np.zeros((len(measured), 2))
    for seed in SEEDS:
        known, new = draw_rows(len(gold), FITTED, seed)
        calibration = make("auto").fit(fitted[known], gold[known])
        for row, values in enumerate(measured):
            sums[row] += f1(gold[new], calibration.predict(values[new]))
    return [percent(each) for each in sums / len(SEEDS)]


def f1(gold: np.ndarray, decided: np.ndarray) -> np.ndarray:
    found = decision_metrics(gold, decided)
    return np.array([found["micro_f1"], found["macro_f1"]])


def percent(values: np.ndarray) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


if __name__ == "__main__":
    main()
