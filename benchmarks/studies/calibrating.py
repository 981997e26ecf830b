"""What calibration alone makes of labelled documents: micro / macro F1 by the number that `fit` sees, and without any.

    setscore evaluate all --data-dir DATA --save scores
    python benchmarks/studies/calibrating.py --scores scores
    python benchmarks/studies/calibrating.py --scores scores --blend
    python benchmarks/studies/calibrating.py --scores scores --within --steady 0 50 100 200 inf

For every seed (13, 17, 23) some of the 200 validation documents are drawn three times, the calibration `auto` is fitted
on them and measured on the development documents outside of the 200. "0" is what stands in before `fit`. With --within
it is measured on the rest of the 200 instead, for choosing between ways to calibrate: --steady compares how little the
observed best threshold counts beside the expected one (`setscore.calibration.thresholds`). --blend mixes in the model's
own cosine, with weights from the same few documents.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

import numpy as np

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import SEEDS, header, options, row
from benchmarks.saved import check_scores, saved_trials
from setscore import SetScoreClassifier
from setscore.calibration import make, thresholds
from setscore.errors import FewDocumentsWarning, SetScoreError
from setscore.experiments import PAPER_SETS
from setscore.experiments.blending import EMBEDDED_BLEND, before_fit, mixed, weigh
from setscore.experiments.evaluation import Trial
from setscore.experiments.scored import Scored
from setscore.metrics import decision_metrics

COUNTS = (0, 8, 15, 25, 50, 100, 200)
WITHIN = (15, 25, 50, 100)
DRAWS = 3


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--kind", default="auto", help="the calibration")
    parser.add_argument("--sets", nargs="+", default=PAPER_SETS)
    parser.add_argument("--blend", action="store_true", help="as with blend='own-cosine'")
    parser.add_argument("--within", action="store_true", help="measure inside the validation documents")
    parser.add_argument("--steady", nargs="+", type=float, default=[thresholds.STEADY], metavar="GOLD LABELS")
    arguments = parser.parse_args(given)
    try:
        check_scores(arguments.scores)
        drawn = [read(arguments.scores, name, blend=arguments.blend) for name in arguments.sets]
    except SetScoreError as error:
        parser.error(str(error))
    steadies = ["steady"] * (len(arguments.steady) > 1)
    print(header(["documents", *steadies, *arguments.sets, "mean"], left=0))
    most = min(len(trial.validation) for trials, _ in drawn for trial in trials) - arguments.within
    for count in [count for count in (WITHIN if arguments.within else COUNTS) if count <= most]:
        for steady in arguments.steady:
            with steadiness(steady):
                found = [over_seeds(*made, count, arguments.kind, within=arguments.within) for made in drawn]
            cells = [f"{micro:.1f} / {macro:.1f}" for micro, macro in [*found, np.mean(found, axis=0)]]
            print(row([count, *[f"{steady:g}"] * len(steadies), *cells]), flush=True)


@contextmanager
def steadiness(steady: float) -> Iterator[None]:
    """Calibrations fitted inside take this for how little the observed best threshold counts."""
    before = thresholds.STEADY
    thresholds.STEADY = steady or 1e-9
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewDocumentsWarning)
            yield
    finally:
        thresholds.STEADY = before


def read(scores: Path, name: str, *, blend: bool) -> tuple[list[Trial], list[Trial]]:
    """The trials of a set, and the same of the cosine where one is blended in."""
    return saved_trials(scores, name, SEEDS), saved_trials(scores, name, SEEDS, EMBEDDED_BLEND) if blend else []


def over_seeds(
    several: Sequence[Trial], cosines: Sequence[Trial], count: int, kind: str, *, within: bool
) -> np.ndarray:
    """Micro and macro F1 in percent, means over seeds and draws."""
    found = []
    for trial, cosine in zip_longest(several, cosines):
        for number in range(DRAWS if 0 < count < len(trial.validation) else 1):
            order = np.random.default_rng([trial.seed, number, count]).permutation(len(trial.validation))
            known, test = parts(trial, order, count, within=within)
            if cosine is not None:
                known, test = blended((known, test), parts(cosine, order, count, within=within))
            if count == 0:
                calibration = SetScoreClassifier(test.labels).current_calibration()
            else:
                calibration = make(kind).fit(known.log_odds, known.gold)
            metrics = decision_metrics(test.gold, calibration.predict(test.log_odds))
            found.append([100 * metrics["micro_f1"], 100 * metrics["macro_f1"]])
    return np.mean(found, axis=0)


def parts(trial: Trial, order: np.ndarray, count: int, *, within: bool) -> tuple[Scored, Scored]:
    """The documents that are known, and those to measure on."""
    known, rest = trial.validation.take(np.sort(order[:count])), trial.validation.take(order[count:])
    return known, rest if within else trial.test


def blended(model: tuple[Scored, Scored], cosine: tuple[Scored, Scored]) -> tuple[Scored, Scored]:
    """Both parts with the cosine's say in them; without a known document it counts as before `fit`."""
    if not len(model[0]):
        return model[0], before_fit(model[1], cosine[1], EMBEDDED_BLEND)
    known, chosen = weigh(model[0], cosine[0], EMBEDDED_BLEND)
    return known, mixed(chosen, model[1], cosine[1], EMBEDDED_BLEND)


if __name__ == "__main__":
    main()
