"""The embedded model beside cosine, SetFit and a linear head, and their ensembles, on all development sets.

    python benchmarks/baseline_results.py --data-dir DATA --save scores > docs/baseline-results.md

Scores are saved as they are made, training included: a run that was stopped goes on, and a second one only measures.
So the slow part may be done elsewhere, one process for each dataset, and the page be made from the folder:

    python benchmarks/baseline_results.py --data-dir DATA --save scores --sets aapd --score-only setfit --device cuda

Needs the extras shortlist and baselines. --limit 60 --steps 2 is a quick look; --without setfit leaves a method out.
"""

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path

from setscore import SetScoreClassifier
from setscore.datasets import Dataset
from setscore.encoders import load_encoder
from setscore.ensemble import BLENDS
from setscore.experiments import PAPER_SETS, Summary, prepare
from setscore.experiments.baselines import Measured, measure_baseline
from setscore.experiments.blending import score_blend
from setscore.experiments.ensembles import measure_ensembles
from setscore.experiments.report import score_parts
from setscore.experiments.slices import Experiment
from setscore.experiments.training import training_documents

SEEDS = (13, 17, 23)
METHODS = ("cosine", "linear", "setfit")
SAMPLE = 48  # documents, on which the embedded model is timed
TRAINED_ON = 4000  # training documents at most, so that encoding them takes minutes
HEAD = """# Results beside other methods

Made by `python benchmarks/baseline_results.py {arguments} > docs/baseline-results.md`.

All methods saw the same documents: 200 validation documents drawn with each of the seeds 13, 17 and 23, measured on the
rest of the development documents, decided by the calibration `auto`. Cells are micro / macro F1 in percent, the mean
over the seeds, then each seed. The linear head and SetFit learn: from the training split where there is one, without
any text that is measured on, else from the 200 validation documents, cross-fitted. The embedded model, the cosines and
their ensembles learn nothing but calibration and weights from those 200. `cosine` is that of all-MiniLM-L6-v2,
`own cosine` that of the embedded model's own sentence embedding (`blend="own-cosine"`). The official test documents
were not read.
"""

SPEED = """
## Documents a second

Scoring alone, in one process, after training, and where it was scored. The embedded model and its own cosine are timed
anew on {sample} documents. Ensembles cost what their members cost.
"""


def main() -> None:
    arguments = parsed()
    names = arguments.sets.split(",")
    if arguments.score_only:
        for name in names:
            experiment = prepare(name, "development", SEEDS, data_dir=arguments.data_dir, limit=arguments.limit)
            for method in arguments.score_only:
                baseline(method, experiment, arguments)
        return
    found = {}
    for name in names:
        found[name] = measured(name, arguments)
        say(f"{name}: done")
    given = [f"--{key} {getattr(arguments, key)}" for key in ("limit", "steps", "length") if getattr(arguments, key)]
    print(HEAD.format(arguments=" ".join(["--data-dir DATA --save scores", *given])))
    print(table(found, lambda one: cell(one["summary"])))
    print(SPEED.format(sample=SAMPLE))
    print(table(found, lambda one: speed(one["speed"])))
    print("\n## Ensembles\n\nWeights by cross-validated likelihood on the validation documents of each seed.\n")
    for name, rows in found.items():
        for row, one in rows.items():
            if one["weights"]:
                print(f"- {name}, {row}: {'; '.join(one['weights'])}")
    print("\n## What was learnt from\n")
    for name, rows in found.items():
        for remark in dict.fromkeys(text for one in rows.values() for text in one["remarks"]):
            print(f"- {name}: {remark}")


def measured(name: str, arguments: argparse.Namespace) -> dict[str, dict]:
    """Rows by method; the last three are ensembles."""
    experiment = prepare(name, "development", SEEDS, data_dir=arguments.data_dir, limit=arguments.limit)
    told = partial(told_of, f"{name} embedded")
    members = {"embedded": score_parts(experiment, SetScoreClassifier(), save=arguments.save, tell=told)}
    own = score_blend(experiment.parts, "own-cosine", arguments.save / experiment.folder)
    speeds = timed(experiment.parts["pool"])
    rows: dict[str, dict] = {}
    for method in [method for method in METHODS if method not in arguments.without]:
        made = baseline(method, experiment, arguments)
        members[method] = made.scored
        rows[method] = {"speed": (made.documents_per_second, made.device), "remarks": made.remarks}
    rows = {
        key: {"speed": (speeds[key], f"{os.cpu_count()} cores"), "remarks": ()} for key in ("embedded", "own cosine")
    } | rows
    together = by_name(measure_ensembles(members, SEEDS, "auto"))
    free = by_name(measure_ensembles({key: members[key] for key in ("embedded", "cosine")}, SEEDS, "auto"))
    alone = by_name(measure_ensembles({"embedded": members["embedded"], "own cosine": own}, SEEDS, "auto"))
    for method in rows:
        rows[method] |= {"summary": (together | alone)[method], "weights": []}
    ensembles = {"embedded + own cosine": alone, "embedded + cosine": free, "ensemble of all": together}
    for title, summaries in ensembles.items():
        summary = summaries["ensemble"]
        weights = [f"seed {seed} {row.choice}" for seed, row in summary.rows.items()]
        rows[title] = {"summary": summary, "weights": weights, "speed": None, "remarks": ()}
    return rows


def baseline(method: str, experiment: Experiment, arguments: argparse.Namespace) -> Measured:
    """One method on one dataset, trained where it learns; from the folder where it was scored before."""
    training = training_documents(
        method, experiment, "either", data_dir=arguments.data_dir, limit=arguments.train_limit
    )
    options = {"device": arguments.device}
    options |= {"steps": arguments.steps, "length": arguments.length} if method == "setfit" else {}
    made = measure_baseline(
        method, experiment, SEEDS, (), options=options, training=training, save=arguments.save, watch=tell
    )
    say(f"{experiment.name}: {method} done")
    return made


def speed(measured: tuple[float | None, str | None] | None) -> str:
    """ "12.3, cpu"."""
    return "" if measured is None or measured[0] is None else f"{measured[0]:.1f}, {measured[1]}"


def timed(pool: Dataset) -> dict[str, float]:
    """Documents a second of the embedded model and of its own cosine, after a warm-up."""
    drawn, _ = pool.draw(min(SAMPLE, len(pool)), SEEDS[0])
    classifier, encode = SetScoreClassifier(pool.labels), load_encoder(BLENDS["own-cosine"])
    found = {}
    for name, score in (("embedded", classifier.decision_function), ("own cosine", encode)):
        score(drawn.texts[:1])
        begun = time.perf_counter()
        score(list(drawn.texts))
        found[name] = len(drawn) / (time.perf_counter() - begun)
    return found


def told_of(what: str, part: str, done: int, total: int, message: str) -> None:
    if "re-using" not in message:
        tell(what, done, total)


def by_name(summaries: list[Summary]) -> dict[str, Summary]:
    return {summary.name: summary for summary in summaries}


def cell(summary: Summary) -> str:
    def pair(metrics) -> str:
        return f"{100 * metrics['micro_f1']:.1f} / {100 * metrics['macro_f1']:.1f}"

    return f"{pair(summary.mean)} ({', '.join(pair(row.metrics) for row in summary.rows.values())})"


def table(found: dict[str, dict[str, dict]], show) -> str:
    """Datasets down, methods across."""
    methods = list(next(iter(found.values())))
    lines = ["| | " + " | ".join(methods) + " |", "|---|" + "---:|" * len(methods)]
    return "\n".join(
        lines + [f"| {n} | " + " | ".join(show(rows[m]) for m in methods) + " |" for n, rows in found.items()]
    )


def tell(what: str, done: int, total: int) -> None:
    print(f"\r{what}: {done} of {total}   ", end="", file=sys.stderr, flush=True)


say = partial(print, file=sys.stderr, flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    return parser.parse_args()


if __name__ == "__main__":
    main()
