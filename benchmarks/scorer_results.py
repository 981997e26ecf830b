"""Every scorer on the same documents: the tables of docs/scorer-results.md.

    python benchmarks/scorer_results.py score --data-dir DATA --save FOLDER --jobs 16 --page docs/scorer-results.md
    python benchmarks/scorer_results.py table --save FOLDER --page docs/scorer-results.md

`score` divides the documents of each dataset into shards, and gives each shard and scorer to a process of one thread. A
shard is a file in FOLDER, written whole: what is there is not scored again, so a run that was stopped goes on. Scorers
that start from another one learn on the validation documents of each seed, from that one's scores of all documents.
Then, or with `table` alone, the files are joined and the tables written between the page's two marks.

Time is measured inside each process, beside that of per_label on the same documents: only their ratio means something.
With --weights the training code computes the same prompts in fp32, on a GPU if there is one: refinement asks hundreds
of questions about a document, which take two cores hours and a GPU minutes.
"""

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from setscore.backbones import Backbone, load_backbone
from setscore.classifier import SetScoreClassifier
from setscore.experiments.comparison import (
    Timed,
    check_depth,
    decided,
    learnt_models,
    score_timed,
    with_scorer,
)
from setscore.experiments.evaluation import Spread
from setscore.experiments.scored import Scored
from setscore.experiments.slices import prepare, trials
from setscore.experiments.yardsticks import label_prior

SCORERS = (
    "per_label", "unary", "unary?layout=paper", "unary?contexts=2", "permutation?orders=1", "permutation?orders=2",
    "permutation?orders=4", "permutation?orders=8", "subset", "bp", "milp", "jsr", "jsr?layout=paper", "gibbs",
    "jsr?rule=full",
)  # fmt: skip
DATASETS = ("reuters", "goemotions")
SEEDS = (13, 17, 23)
KIND = "auto"
FEWEST = 60  # documents of which a scorer that was stopped is shown
BESIDE = ("per_label", "jsr")  # what it is shown beside
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"


@dataclass(frozen=True)
class Task:
    """Every `shards`-th document from number `shard` on, scored by `scorer`."""

    dataset: str
    scorer: str
    shard: int
    shards: int

    @property
    def file(self) -> str:
        name = self.scorer.translate(str.maketrans("?&=", "--_"))
        return f"{self.dataset}.{name}.{self.shard:03d}.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("score", "table"))
    parser.add_argument("--save", type=Path, required=True, help="the folder of the shards")
    parser.add_argument("--data-dir", type=Path, help="the datasets' official files")
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--scorers", nargs="+", default=SCORERS)
    parser.add_argument("--limit", type=int, default=240, help="documents of each dataset")
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--weights", type=Path, help="weights.safetensors of the recipe, in place of the int8 graph")
    parser.add_argument("--page", type=Path, help="with the two marks; without it the tables are printed")
    arguments = parser.parse_args()
    if arguments.what == "score":
        score(arguments)
    text = "".join(tables(name, arguments.scorers, arguments.save) for name in arguments.datasets)
    if arguments.page is None:
        print(text)
    else:
        page = arguments.page.read_text(encoding="utf-8")
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        arguments.page.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


def score(arguments: argparse.Namespace) -> None:
    """Seeds first: the others learn from their scores."""
    arguments.save.mkdir(parents=True, exist_ok=True)
    seeds = list(dict.fromkeys(seed for name in arguments.scorers if (seed := check_depth(name))))
    stages = [seeds, [name for name in arguments.scorers if name not in seeds]]
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for stage in stages:
            tasks = [
                Task(dataset, scorer, shard, arguments.shards)
                for scorer in stage
                for dataset in arguments.datasets
                for shard in range(arguments.shards)
            ]
            missing = [task for task in tasks if not (arguments.save / task.file).exists()]
            places = {"data_dir": arguments.data_dir, "save": arguments.save, "weights": arguments.weights}
            work = partial(run, **places, limit=arguments.limit)
            for number, task in enumerate(pool.imap_unordered(work, missing), start=1):
                print(f"{number} of {len(missing)}: {task.file}", file=sys.stderr, flush=True)


def run(task: Task, *, data_dir: Path, save: Path, weights: Path | None, limit: int) -> Task:
    """Scores a shard and writes its file."""
    pool = prepare(task.dataset, "development", SEEDS, data_dir=data_dir, limit=limit).parts["pool"]
    rows = list(range(task.shard, len(pool), task.shards))
    part = pool.take(rows)
    backbone = load_backbone("setscore-mini", threads=1) if weights is None else full_precision(weights)
    plain = SetScoreClassifier(backbone=backbone, long_documents="truncate")
    reference = score_timed(with_scorer(plain, "per_label"), part).seconds
    seed = check_depth(task.scorer)
    if seed is None:
        found = {"all": score_timed(with_scorer(plain, task.scorer), part)}
    else:
        starts = trials({"pool": joined(task.dataset, seed, save)["all"].scored}, SEEDS)
        models = learnt_models(plain, task.scorer, starts, KIND)
        found = {str(one): score_timed(model, part) for one, model in zip(SEEDS, models, strict=True)}
    content = {
        "rows": rows,
        "documents": len(pool),
        "per_label_seconds": reference,
        "labels": pool.labels.names,
        "gold": part.gold.astype(int).tolist(),
        "seeds": {name: _plain(timed) for name, timed in found.items()},
    }
    target = save / task.file
    target.with_suffix(".part").write_text(json.dumps(content), encoding="utf-8")
    target.with_suffix(".part").rename(target)
    return task


@cache
def full_precision(weights: Path) -> Backbone:
    """The model of the recipe, which is no part of the package, with fp32 weights."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import torch
    from safetensors.torch import load_file

    from recipes.model import build
    from recipes.precision import FullPrecision

    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return FullPrecision(build(load_file(weights)).to(device).eval(), "shared")


def _plain(timed: Timed) -> dict[str, Any]:
    details = {name: values.tolist() for name, values in timed.details.items()}
    log_odds = timed.scored.log_odds.round(9).tolist()
    return {"log_odds": log_odds, "forwards": timed.forwards, "seconds": timed.seconds, "details": details}


def joined(dataset: str, scorer: str, save: Path, rows: Sequence[int] | None = None) -> dict[str, Timed]:
    """A scorer's shards as one, by seed, or as "all" where the seed does not matter; of some documents only."""
    parts = _files(dataset, scorer, save)
    places = {row: place for place, row in enumerate(row for part in parts for row in part["rows"])}
    wanted = range(parts[0]["documents"]) if rows is None else rows
    if missing := [row for row in wanted if row not in places]:
        raise SystemExit(f"{dataset} {scorer}: {len(missing)} of {len(wanted)} documents are not scored.")
    order = [places[row] for row in wanted]

    def column(several: Sequence[Any]) -> np.ndarray:
        return np.concatenate([np.array(one) for one in several])[order]

    gold, ids = column([part["gold"] for part in parts]).astype(bool), tuple(map(str, wanted))
    made = {}
    for name, first in parts[0]["seeds"].items():
        found = [part["seeds"][name] for part in parts]
        log_odds, none = column([one["log_odds"] for one in found]), np.zeros(len(order), dtype=bool)
        scored = Scored(dataset, "pool", tuple(parts[0]["labels"]), ids, log_odds, gold, none)
        details = {key: column([one["details"][key] for one in found]) for key in first["details"]}
        forwards, seconds = (sum(one[key] for one in found) for key in ("forwards", "seconds"))
        made[name] = Timed(scored, forwards, seconds, details)
    return made


def _files(dataset: str, scorer: str, save: Path) -> list[dict[str, Any]]:
    pattern = Task(dataset, scorer, 0, 0).file.replace(".000.json", ".*.json")
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(save.glob(pattern))]


def _rows(dataset: str, scorer: str, save: Path) -> set[int]:
    return {row for part in _files(dataset, scorer, save) for row in part["rows"]}


def tables(dataset: str, scorers: Sequence[str], save: Path) -> str:
    """Scorers that are through on all documents; below, those that are not, on the documents that they have."""
    scored = {name: _rows(dataset, name, save) for name in scorers}
    whole = [name for name, rows in scored.items() if rows == scored["per_label"]]
    text = table(dataset, whole, save, sorted(scored["per_label"]))
    for name, rows in scored.items():
        if name in whole:
            continue
        if len(rows) < FEWEST:
            text += f"\n`{name}` was not measured on {dataset}.\n"
        else:
            text += f"\n`{name}` was stopped after {len(rows)} documents. On these:\n"
            text += table(dataset, [*(one for one in BESIDE if one in whole), name], save, sorted(rows))
    return text


def table(dataset: str, scorers: Sequence[str], save: Path, rows: Sequence[int]) -> str:
    """A row for each scorer: F1 over seeds, the difference from per_label seed by seed, and the cost."""
    start = joined(dataset, "per_label", save, rows)
    base, pool = list(by_seed(start)), start["all"].scored
    lines = [
        f"| {dataset}, {len(pool)} documents | micro-F1 | macro-F1 | micro-F1 above `per_label` | at 0: micro | macro |"
        " forwards | documents a second | times the time |",
        "|---|" + "---:|" * 8,
    ]
    notes = []
    for scorer in scorers:
        parts, files = joined(dataset, scorer, save, rows), _files(dataset, scorer, save)
        found = list(by_seed(parts))
        spreads = [Spread.of([pair[way] for pair in found]) for way in (0, 1)]
        pairs = zip(found, base, strict=True)
        above = Spread.of([{"micro_f1": one["micro_f1"] - other["micro_f1"]} for (one, _), (other, _) in pairs])
        documents = sum(len(part["rows"]) for part in files)
        forwards = np.mean([timed.forwards for timed in parts.values()]) / documents
        times = next(iter(parts.values())).seconds / sum(part["per_label_seconds"] for part in files)
        cells = [
            *(percent(spreads[0], metric) for metric in ("micro_f1", "macro_f1")),
            percent(above, "micro_f1", sign="+") if scorer != "per_label" else "",
            *(percent(spreads[1], metric) for metric in ("micro_f1", "macro_f1")),
            f"{forwards:.1f}",
            f"{documents / next(iter(parts.values())).seconds:.3g}",
            f"{times:.1f}" if scorer != "per_label" else "1.0",
        ]
        lines.append(f"| `{scorer}` | " + " | ".join(cells) + " |")
        if details := next(iter(parts.values())).details:
            means = {key: np.mean([timed.details[key].mean() for timed in parts.values()]) for key in details}
            notes.append(f"- `{scorer}`, means over documents: " + ", ".join(f"{k} {v:.3g}" for k, v in means.items()))
    prior = Spread.of([label_prior(trial.validation, trial.test).metrics for trial in trials({"pool": pool}, SEEDS)])
    cells = [*(percent(prior, metric) for metric in ("micro_f1", "macro_f1")), "", "", "", "0.0", "", ""]
    lines.append("| the label prior, no text read | " + " | ".join(cells) + " |")
    return "\n".join(["", *lines, "", *notes, ""])


def by_seed(parts: dict[str, Timed]) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Calibrated metrics and those at 0 of every seed."""
    for seed in SEEDS:
        scored = (parts["all"] if "all" in parts else parts[str(seed)]).scored
        yield decided(trials({"pool": scored}, [seed])[0], KIND)


def percent(spread: Spread, metric: str, sign: str = "") -> str:
    return f"{100 * spread.mean[metric]:{sign}.1f} ± {100 * spread.sd[metric]:.1f}"


if __name__ == "__main__":
    main()
