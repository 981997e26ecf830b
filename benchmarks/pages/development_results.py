"""The page docs/results/development.md from the numbers of one evaluation.

    setscore evaluate all --backbone setscore-mini --data-dir DATA --save scores --json results.json \\
        --calibration auto,paper,levelled,platt,shrunk,isotonic,temperature
    python benchmarks/pages/development_results.py results.json --scores scores > docs/results/development.md

`--scores` adds the table of conformal guarantees, from the saved scores. Several JSON files, each with some of the
datasets, are joined.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import f1_pair, options, table
from benchmarks.pages.weights import shipped, stated
from benchmarks.saved import saved_pool
from setscore.calibration import ConformalCalibration
from setscore.datasets.dataset import draw_rows
from setscore.experiments import Scored, paper
from setscore.experiments.evaluation import VALIDATION_SIZE
from setscore.experiments.scored import UNFITTED

FIRST_WEIGHTS = Path(__file__).with_name("first_weights.json")
OURS = ("auto", "auto + own-cosine", "paper", UNFITTED)
GAPS = (
    ("auto minus paper, micro", "auto", "paper"),
    ("auto minus threshold 0.5, micro", "auto", UNFITTED),
    ("oracle per label, micro, minus paper", "oracle per label, micro", "paper"),
    ("auto minus label prior, micro", "auto", "label prior"),
)
FREE = "training-free"
PROMISED = (0.8, 0.9)  # recalls
DRAWS = 20
MODEL = "setscore-mini"
Found = Mapping[str, Mapping[str, Mapping[str, float]]]  # dataset, row, metric

HEAD = """# Results on the development slices

Made by

```text
setscore evaluate all --backbone setscore-mini --data-dir DATA --save scores --json results.json \\
    --calibration auto,paper,levelled,platt,shrunk,isotonic,temperature
python benchmarks/pages/development_results.py results.json --scores scores > docs/results/development.md
```

`setscore-mini`, the smaller embedded model (the default is now `setscore-small`), zero-shot, and calibrated only
(`head="none"`); 200 validation documents drawn with seeds 13, 17 and 23, measured on the rest of the
development documents. Micro / macro F1 in percent, means over the three seeds. Oracle rows choose their thresholds on
the documents they are measured on and are never results. `threshold 0.5` is the model
before any labelled document was seen, `label prior` reads no text, `cosine` is all-MiniLM-L6-v2.

{weights}

The calibrations were designed while looking at these development documents, `auto`'s candidates and its rule of doubt
among them, so the differences between calibrations are flattered by that choice. The official test documents were not
read.
"""

BESIDE = """
## Beside the paper

The paper's numbers are on its test slices, ours on development documents of the same sets, so a point or two says
nothing. Its rows use its own calibrator (`paper` here); the best cell is that of micro and of macro apart, over all
methods and question templates. Its ECtHR is task A, so nothing of it stands beside ecthr-b. Threshold 0.5: before any
labelled document was seen. First weights: those of the prototype that the package began with.
"""
GAP = """
The oracle cuts each label's own log-odds. Where auto gains more over `paper` than the oracle does, auto has passed it:
it may look at the document's other labels too, which no threshold per label can. There is no gap left to close then.
"""
ECE = """
## Expected calibration error

Over all pairs of document and label, 15 bins of equal width. Raw: the model's own probabilities, sigmoid of the
log-odds. Then after each calibration, and as the classifier gives them before any labelled document was seen.
"""
GUARANTEES = """
## Guarantees

`ConformalCalibration` promises a recall. Fitted on 200 documents drawn with each of 20 seeds, measured on the rest:
the mean recall of documents with a true label, and in brackets how many labels it predicts for a document.
"""


def page(datasets: Mapping[str, dict]) -> str:
    """The page without what needs saved scores."""
    found = {
        name: {row["name"]: {key: value["mean"] for key, value in row["metrics"].items()} for row in one["rows"]}
        for name, one in datasets.items()
    }
    models = [row["name"] for row in next(iter(datasets.values()))["rows"] if row["kind"] == "model"]
    head = HEAD.replace("{weights}", stated(MODEL, shipped(MODEL)))
    return head + all_rows(found) + "\n" + gaps(found) + GAP + calibration_errors(found, models) + beside(found)


def all_rows(found: Found) -> str:
    names = dict.fromkeys(name for rows in found.values() for name in rows)
    return f"\n{table(['', *found], [[name, *pairs(found, name)] for name in names])}\n"


def pairs(found: Found, name: str) -> list[str]:
    """Micro / macro F1 of a row on every dataset; empty where it was not measured."""
    return [f1_pair(rows[name]) if name in rows else "" for rows in found.values()]


def gaps(found: Found) -> str:
    """How much micro-F1 one row has more than another, where all datasets have both."""
    lines = []
    for title, more, less in GAPS:
        if all({more, less} <= set(rows) for rows in found.values()):
            each = [100 * (rows[more]["micro_f1"] - rows[less]["micro_f1"]) for rows in found.values()]
            lines.append([title, *(f"{gap:+.1f}" for gap in [*each, sum(each) / len(each)])])
    return f"{table(['', *found, 'mean'], lines)}\n"


def calibration_errors(found: Found, models: Sequence[str]) -> str:
    raw = ["raw", *(f"{rows[models[0]]['ece_raw']:.3f}" for rows in found.values())]
    fitted = [[name, *(f"{rows[name]['ece']:.3f}" for rows in found.values())] for name in models]
    return f"{ECE}\n{table(['', *found], [raw, *fitted])}\n"


def beside(found: Found) -> str:
    """Ours, the paper's, and those of the first weights."""
    lines = [[name, *pairs(found, name)] for name in OURS if all(name in rows for rows in found.values())]
    lines.append(["LLaDA-8B-Instruct, per label (paper)", *(printed(name) for name in found)])
    lines.append(["best training-free cell (paper)", *(best_printed(name) for name in found)])
    for title, cells in json.loads(FIRST_WEIGHTS.read_text(encoding="utf-8")).items():
        lines.append([title, *(cells.get(name, "") for name in found)])
    return f"{BESIDE}\n{table(['', *found], lines)}\n"


def printed(dataset: str) -> str:
    """The paper's per-label row; empty where it has none for this dataset."""
    return f1_or_empty([paper.printed("main", "llada_instruct_per_label", dataset, one) for one in ("micro", "macro")])


def f1_or_empty(pair: Sequence[float | None]) -> str:
    return "" if None in pair else "{:.1f} / {:.1f}".format(*pair)


def best_printed(dataset: str) -> str:
    """The highest micro and the highest macro of any method that needs no training, under any question template."""
    methods = paper.facts()["methods"]
    cells = [cell for cell in paper.cells().values() if cell.dataset == dataset and cell.printed is not None]
    free = [cell for cell in cells if cell.table in ("main", "full_matrix") and methods[cell.row]["group"] == FREE]
    free += [cell for cell in cells if cell.table == "prompt_sweep"]
    best = [max((cell.printed for cell in free if cell.measure == one), default=None) for one in ("micro", "macro")]
    return f1_or_empty(best)


def guarantees(folder: Path, names: Sequence[str]) -> str:
    lines = []
    for level in PROMISED:
        cells = []
        for name in names:
            found = [recall_on_fresh(saved_pool(folder, name), level, seed) for seed in range(DRAWS)]
            cells.append("{:.3f} ({:.1f})".format(*np.mean(found, axis=0)))
        lines.append([level, *cells])
    return f"{GUARANTEES}\n{table(['promised recall', *names], lines)}\n"


def recall_on_fresh(scored: Scored, level: float, seed: int) -> tuple[float, float]:
    """Recall and labels per document on documents that were not drawn."""
    drawn, rest = draw_rows(len(scored.gold), min(VALIDATION_SIZE, len(scored.gold) // 2), seed)
    model = ConformalCalibration(level=level).fit(scored.log_odds[drawn], scored.gold[drawn])
    gold, predicted = scored.gold[rest], model.predict(scored.log_odds[rest])
    labelled = gold.any(axis=1)
    return float(((gold & predicted).sum(1)[labelled] / gold.sum(1)[labelled]).mean()), float(predicted.sum(1).mean())


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--scores", type=Path)
    arguments = parser.parse_args(given)
    datasets: dict[str, dict] = {}
    for path in arguments.results:
        datasets |= json.loads(path.read_text(encoding="utf-8"))["datasets"]
    print(page(datasets), end="")
    if arguments.scores:
        print(guarantees(arguments.scores, list(datasets)), end="")


if __name__ == "__main__":
    main()
