"""Every scorer on the same documents: the tables of docs/results/scorers.md.

    python benchmarks/pages/scorer_results.py score --data-dir DATA --save FOLDER --jobs 16 \\
        --page docs/results/scorers.md
    python benchmarks/pages/scorer_results.py table --save FOLDER --page docs/results/scorers.md

`score` divides the documents of each dataset into shards, and gives each shard and scorer to a process of one thread. A
shard is a file in FOLDER, written whole: what is there is not scored again, so a run that was stopped goes on. Scorers
that start from another one learn on the validation documents of each seed, from that one's scores of all documents.
Then, or with `table` alone, the files are joined and the tables written between the page's two marks.

Time is measured inside each process, beside that of per_label on the same documents: only their ratio means something.
With --weights the training code computes the same prompts in fp32, on a GPU if there is one: refinement asks hundreds
of questions about a document, which take two cores hours and a GPU minutes.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import SEEDS, options, table
from benchmarks.pages.scorer_shards import KIND, Places, files_of, joined, recipe, rows_of, score_all
from setscore.errors import SetScoreError
from setscore.experiments.comparison import Timed, decided
from setscore.experiments.evaluation import Spread, trials
from setscore.experiments.yardsticks import label_prior

SCORERS = (
    "per_label", "unary", "unary?layout=paper", "unary?contexts=2", "permutation?orders=1", "permutation?orders=2",
    "permutation?orders=4", "permutation?orders=8", "subset", "bp", "milp", "jsr", "jsr?layout=paper", "gibbs",
    "jsr?rule=full",
)  # fmt: skip
DATASETS = ("reuters", "goemotions")
FEWEST = 60  # documents of which a scorer that was stopped is shown
BESIDE = ("per_label", "jsr")  # what it is shown beside
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"
COLUMNS = ("micro-F1", "macro-F1", "micro-F1 above `per_label`", "at 0: micro", "macro", "forwards",
           "documents a second", "times the time")  # fmt: skip


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
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
    arguments = parser.parse_args(given)
    if arguments.what == "score":
        if arguments.weights is not None:
            try:
                recipe()  # before any document is scored
            except SetScoreError as error:
                parser.error(str(error))
        places = Places(arguments.save, arguments.data_dir, arguments.weights, arguments.limit)
        score_all(arguments.datasets, arguments.scorers, arguments.shards, places, jobs=arguments.jobs)
    text = "".join(tables(name, arguments.scorers, arguments.save) for name in arguments.datasets)
    if arguments.page is None:
        print(text)
    else:
        page = arguments.page.read_text(encoding="utf-8")
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        arguments.page.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


def tables(dataset: str, scorers: Sequence[str], save: Path) -> str:
    """Scorers that are through on all documents; below, those that are not, on the documents that they have."""
    scored = {name: rows_of(dataset, name, save) for name in scorers}
    whole = [name for name, rows in scored.items() if rows == scored["per_label"]]
    text = table_of(dataset, whole, save, sorted(scored["per_label"]))
    for name, rows in scored.items():
        if name in whole:
            continue
        if len(rows) < FEWEST:
            text += f"\n`{name}` was not measured on {dataset}.\n"
        else:
            text += f"\n`{name}` was stopped after {len(rows)} documents. On these:\n"
            text += table_of(dataset, [*(one for one in BESIDE if one in whole), name], save, sorted(rows))
    return text


def table_of(dataset: str, scorers: Sequence[str], save: Path, rows: Sequence[int]) -> str:
    """A row for each scorer, and what the scorers report besides."""
    measured = [Measured.of(dataset, scorer, save, rows) for scorer in scorers]
    base = Measured.of(dataset, "per_label", save, rows)
    pool = base.parts["all"].scored
    prior = Spread.of([label_prior(trial.validation, trial.test).metrics for trial in trials({"pool": pool}, SEEDS)])
    lines = [[f"`{one.scorer}`", *one.cells(base)] for one in measured]
    lines.append(["the label prior, no text read", *both(prior), "", "", "", "0.0", "", ""])
    notes = [one.note() for one in measured if one.first.details]
    return "\n".join(["", table([f"{dataset}, {len(pool)} documents", *COLUMNS], lines), "", *notes, ""])


@dataclass(frozen=True)
class Measured:
    """A scorer on some documents of a dataset.

    parts    its scores by seed, or as "all"
    found    for every seed the metrics of calibrated decisions, and of those at log-odds of 0
    asked    documents that were scored in all, which the cost is of
    against  seconds that `per_label` took beside it, in the same processes
    """

    scorer: str
    parts: dict[str, Timed]
    found: list[tuple[dict[str, float], dict[str, float]]]
    asked: int
    against: float

    @classmethod
    def of(cls, dataset: str, scorer: str, save: Path, rows: Sequence[int]) -> "Measured":
        parts, files = joined(dataset, scorer, save, rows), files_of(dataset, scorer, save)
        asked, against = sum(len(part["rows"]) for part in files), sum(part["per_label_seconds"] for part in files)
        return cls(scorer, parts, list(by_seed(parts)), asked, against)

    @property
    def first(self) -> Timed:
        """The seed whose time counts: later ones find their questions answered."""
        return next(iter(self.parts.values()))

    def cells(self, base: "Measured") -> list[str]:
        """F1 over seeds, the difference from `base` seed by seed, and the cost."""
        calibrated, plain = (Spread.of([pair[way] for pair in self.found]) for way in (0, 1))
        pairs = zip(self.found, base.found, strict=True)
        above = Spread.of([{"micro_f1": one["micro_f1"] - other["micro_f1"]} for (one, _), (other, _) in pairs])
        forwards = np.mean([timed.forwards for timed in self.parts.values()]) / self.asked
        itself = self.scorer == base.scorer
        return [
            *both(calibrated), "" if itself else percent(above, "micro_f1", sign="+"), *both(plain), f"{forwards:.1f}",
            f"{self.asked / self.first.seconds:.3g}", "1.0" if itself else f"{self.first.seconds / self.against:.1f}",
        ]  # fmt: skip

    def note(self) -> str:
        means = {key: np.mean([one.details[key].mean() for one in self.parts.values()]) for key in self.first.details}
        return f"- `{self.scorer}`, means over documents: " + ", ".join(f"{k} {v:.3g}" for k, v in means.items())


def by_seed(parts: dict[str, Timed]) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Calibrated metrics and those at 0 of every seed."""
    for seed in SEEDS:
        scored = (parts["all"] if "all" in parts else parts[str(seed)]).scored
        yield decided(trials({"pool": scored}, [seed])[0], KIND)


def both(spread: Spread) -> list[str]:
    return [percent(spread, metric) for metric in ("micro_f1", "macro_f1")]


def percent(spread: Spread, metric: str, sign: str = "") -> str:
    return f"{100 * spread.mean[metric]:{sign}.1f} ± {100 * spread.sd[metric]:.1f}"


if __name__ == "__main__":
    main()
