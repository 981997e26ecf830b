"""The embedded model beside cosine, SetFit and a linear head, and their ensembles, on all development sets.

    python benchmarks/pages/baseline_results.py --data-dir DATA --save scores > docs/results/baselines.md

Scores are saved as they are made, training included: a run that was stopped goes on, and a second one only measures.
So the slow part may be done elsewhere, one process for each dataset, and the page be made from the folder:

    python benchmarks/pages/baseline_results.py --data-dir DATA --save scores --sets aapd --score-only setfit \\
        --device cuda

Needs the extras shortlist and baselines. --limit 60 --steps 2 is a quick look; --without setfit leaves a method out.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import SEEDS, f1_pair, options, table, tell, timed
from benchmarks.pages.weights import shipped, stated
from setscore import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.encoders import load_encoder
from setscore.ensemble import BLENDS
from setscore.experiments import PAPER_SETS, Summary, prepare
from setscore.experiments.baselines import BaselineReport, measure_baseline
from setscore.experiments.blending import score_blend
from setscore.experiments.ensembles import measure_ensembles
from setscore.experiments.evaluation import Experiment
from setscore.experiments.report import score_parts
from setscore.experiments.saved import open_folder
from setscore.experiments.training import training_documents

MODEL = "setscore-mini"
METHODS = ("cosine", "linear", "setfit")
SAMPLE = 48  # documents, on which the embedded model is timed
TRAINED_ON = 4000  # training documents at most, so that encoding them takes minutes
HEAD = """# Results beside other methods

Made by `python benchmarks/pages/baseline_results.py {arguments} > docs/results/baselines.md`.

All methods saw the same documents: 200 validation documents drawn with each of the seeds 13, 17 and 23, measured on the
rest of the development documents, decided by the calibration `auto`. Cells are micro / macro F1 in percent, the mean
over the seeds, then each seed. The linear head and SetFit learn: from the training split where there is one, without
any text that is measured on, else from the 200 validation documents, cross-fitted. The embedded model, here
`setscore-mini`, the smaller one (the default is now `setscore-small`), calibrated only (`head="none"`), the cosines and
their ensembles learn nothing but calibration and weights from those 200. `cosine` is that of all-MiniLM-L6-v2,
`own cosine` that of the embedded model's own sentence embedding (`blend="own-cosine"`). The official test documents
were not read.

{weights}
"""

SPEED = """
## Documents a second

Scoring alone, in one process, after training, and where it was scored. The embedded model and its own cosine are timed
anew on {sample} documents. Ensembles cost what their members cost.
"""
ENSEMBLES = """
## Ensembles

Weights by cross-validated likelihood on the validation documents of each seed.
"""
LEARNED = "\n## What was learned from\n"


@dataclass(frozen=True)
class Line:
    """A method on a dataset: documents a second and where, if it was timed; the weights, if it is an ensemble."""

    summary: Summary | None = None
    speed: tuple[float | None, str | None] = (None, None)
    weights: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def quality(self) -> str:
        """The mean over seeds, then each seed."""
        seeds = ", ".join(f1_pair(row.metrics) for row in self.summary.rows.values())
        return f"{f1_pair(self.summary.mean)} ({seeds})"

    def pace(self) -> str:
        """ "12.3, cpu"."""
        rate, device = self.speed
        return "" if rate is None else f"{rate:.1f}, {device}"


Lines = Mapping[str, Line]  # by method


def main(given: Sequence[str] | None = None) -> None:
    arguments = parsed(given)
    names = arguments.sets.split(",")
    if arguments.score_only:
        for name in names:
            for method in arguments.score_only:
                baseline(method, prepared(name, arguments), arguments)
        return
    found = {}
    for name in names:
        found[name] = measured(name, arguments)
        tell(f"{name}: done")
    told = [f"--{key} {getattr(arguments, key)}" for key in ("limit", "steps", "length") if getattr(arguments, key)]
    print(page(found, " ".join(["--data-dir DATA --save scores", *told])))


def page(found: Mapping[str, Lines], command: str) -> str:
    weights = [
        f"- {name}, {method}: {'; '.join(line.weights)}"
        for name, lines in found.items()
        for method, line in lines.items()
        if line.weights
    ]
    remarks = [
        f"- {name}: {remark}"
        for name, lines in found.items()
        for remark in dict.fromkeys(text for line in lines.values() for text in line.remarks)
    ]
    return "\n".join([
        HEAD.format(arguments=command, weights=stated(MODEL, shipped(MODEL))), across(found, Line.quality),
        SPEED.format(sample=SAMPLE),
        across(found, Line.pace), ENSEMBLES, *weights, LEARNED, *remarks,
    ])  # fmt: skip


def across(found: Mapping[str, Lines], show: Callable[[Line], str]) -> str:
    """Datasets down, methods across."""
    methods = list(next(iter(found.values())))
    return table(["", *methods], [[name, *(show(lines[one]) for one in methods)] for name, lines in found.items()])


def measured(name: str, arguments: argparse.Namespace) -> dict[str, Line]:
    """Lines by method; the last three are ensembles."""
    experiment, store = prepared(name, arguments), open_folder(arguments.save)
    watch = partial(told_of, f"{name} embedded")
    members = {"embedded": score_parts(experiment, SetScoreClassifier(store=store), progress=watch)}
    own = score_blend(experiment.parts, "own-cosine", store, experiment.saved_as)
    lines = paces(experiment.parts["pool"])
    for method in [method for method in METHODS if method not in arguments.without]:
        made = baseline(method, experiment, arguments)
        members[method] = made.scored
        lines[method] = Line(speed=(made.documents_per_second, made.device), remarks=tuple(made.remarks))
    together = by_name(members)
    free = by_name({key: members[key] for key in ("embedded", "cosine")})
    alone = by_name({"embedded": members["embedded"], "own cosine": own})
    lines = {method: replace(line, summary=(together | alone)[method]) for method, line in lines.items()}
    ensembles = {"embedded + own cosine": alone, "embedded + cosine": free, "ensemble of all": together}
    for title, summaries in ensembles.items():
        summary = summaries["ensemble"]
        weights = tuple(f"seed {seed} {row.choice}" for seed, row in summary.rows.items())
        lines[title] = Line(summary=summary, weights=weights)
    return lines


def prepared(name: str, arguments: argparse.Namespace) -> Experiment:
    return prepare(name, "development", SEEDS, data_dir=arguments.data_dir, limit=arguments.limit)


def baseline(method: str, experiment: Experiment, arguments: argparse.Namespace) -> BaselineReport:
    """One method on one dataset, trained where it learns; from the folder where it was scored before."""
    training = training_documents(
        method, experiment, "either", data_dir=arguments.data_dir, limit=arguments.train_limit
    )
    given = {"device": arguments.device}
    given |= {"steps": arguments.steps, "length": arguments.length} if method == "setfit" else {}
    made = measure_baseline(
        method, experiment, SEEDS, (), options=given, training=training, save=arguments.save, progress=told
    )
    tell(f"{experiment.name}: {method} done")
    return made


def paces(pool: Dataset) -> dict[str, Line]:
    """The embedded model and its own cosine, with their documents a second after a warm-up."""
    drawn, _ = pool.draw(min(SAMPLE, len(pool)), SEEDS[0])
    classifier, encode = SetScoreClassifier(pool.labels), load_encoder(BLENDS["own-cosine"])
    found = {}
    for name, score in (("embedded", classifier.decision_function), ("own cosine", encode)):
        score(drawn.texts[:1])
        _, seconds = timed(partial(score, list(drawn.texts)))
        found[name] = Line(speed=(len(drawn) / seconds, f"{os.cpu_count()} cores"))
    return found


def by_name(members: Mapping) -> dict[str, Summary]:
    """Each member and their ensemble, measured."""
    return {summary.name: summary for summary in measure_ensembles(members, SEEDS, "auto")}


def told(what: str, done: int, total: int) -> None:
    tell(f"\r{what}: {done} of {total}   ", end="")


def told_of(what: str, step: str, done: int, total: int) -> None:
    if "re-using" not in step:
        told(what, done, total)


def parsed(given: Sequence[str] | None) -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--save", type=Path, required=True, help="a folder for scores and trainings")
    parser.add_argument("--sets", default=",".join(PAPER_SETS), help="datasets, separated by commas")
    parser.add_argument("--without", nargs="*", default=(), choices=METHODS[1:], help="methods to leave out")
    parser.add_argument("--score-only", nargs="+", choices=METHODS, help="save scores of these methods, make no page")
    parser.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:1")
    parser.add_argument("--limit", type=int, help="documents of each set, for a quick look")
    parser.add_argument("--steps", type=int, default=100, help="of SetFit's contrastive training, 16 pairs each")
    parser.add_argument("--length", type=int, default=128, help="tokens that SetFit reads of a document in training")
    parser.add_argument("--train-limit", type=int, default=TRAINED_ON, help="training documents at most")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
