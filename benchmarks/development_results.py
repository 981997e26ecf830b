"""The page docs/results.md from the numbers of one evaluation.

    setscore evaluate all --data-dir DATA --save scores --json results.json \
        --calibration auto,paper,levelled,platt,shrunk,isotonic,temperature
    python benchmarks/development_results.py results.json --scores scores > docs/results.md

`--scores` adds the table of conformal guarantees, from the saved scores. Several JSON files, each with some of the
datasets, are joined.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from setscore.calibration import ConformalCalibration
from setscore.datasets.dataset import draw_rows
from setscore.experiments import Scored
from setscore.experiments.evaluation import UNFITTED

HEAD = """# Results on the development slices

Made by

```text
setscore evaluate all --data-dir DATA --save scores --json results.json \\
    --calibration auto,paper,levelled,platt,shrunk,isotonic,temperature
python benchmarks/development_results.py results.json --scores scores > docs/results.md
```

The embedded model, zero-shot; 200 validation documents drawn with seeds 13, 17 and 23, measured on the rest of the
development documents. Micro / macro F1 in percent, means over the three seeds. Oracle rows choose their thresholds on
the documents they are measured on and are never results. [Evaluating](evaluating.md) says what each row is.

The calibrations were designed while looking at these development documents, `auto`'s candidates and its rule of doubt
among them, so the differences between calibrations are flattered by that choice. The official test documents were not
read.
"""


# The paper's tables, micro / macro F1: LLaDA-8B-Instruct with per-label questions, and the best training-free cell of
# each set, micro and macro taken apart. `first`: this page as of the prototype's weights.
PAPER = {
    "LLaDA-8B-Instruct, per label (paper)": {
        "goemotions": "26.6 / 22.4", "reuters": "60.6 / 67.2", "eurlex": "11.9 / 9.2", "ecthr-b": "48.8 / 43.3",
        "jigsaw": "37.9 / 20.5", "aapd": "8.5 / 8.4",
    },
    "best training-free cell (paper)": {
        "goemotions": "29.5 / 25.6", "reuters": "80.5 / 68.8", "eurlex": "11.9 / 9.5", "ecthr-b": "48.8 / 45.8",
        "jigsaw": "45.1 / 28.5", "aapd": "11.3 / 8.4",
    },
    "first weights, auto": {
        "goemotions": "33.9 / 16.1", "reuters": "62.4 / 53.0", "eurlex": "40.1 / 8.7", "ecthr-b": "36.6 / 20.9",
        "jigsaw": "35.7 / 27.3", "aapd": "41.7 / 27.3",
    },
    "first weights, paper": {
        "goemotions": "24.4 / 20.2", "reuters": "58.0 / 52.7", "eurlex": "22.0 / 15.3", "ecthr-b": "32.4 / 29.1",
        "jigsaw": "31.4 / 30.5", "aapd": "30.4 / 28.9",
    },
}  # fmt: skip
BESIDE = """
## Beside the paper

The paper's numbers are on its test slices, ours on development documents of the same sets, so a point or two says
nothing. Its rows use its own calibrator (`paper` here). Threshold 0.5: before any labelled document was seen. First
weights: those of the prototype that the package began with.
"""


GAP = """
The oracle cuts each label's own log-odds. Where auto gains more over `paper` than the oracle does, auto has passed it:
it may look at the document's other labels too, which no threshold per label can. There is no gap left to close then.
"""


def percent(value: dict[str, float]) -> str:
    return f"{100 * value['mean']:.1f}"


def cell(row: dict) -> str:
    metrics = row["metrics"]
    return f"{percent(metrics['micro_f1'])} / {percent(metrics['macro_f1'])}"


def page(datasets: dict[str, dict]) -> str:
    names = list(datasets)
    table = {name: {row["name"]: row for row in found["rows"]} for name, found in datasets.items()}
    order = list(dict.fromkeys(row for found in table.values() for row in found))
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    lines += [
        f"| {row} | " + " | ".join(cell(table[name][row]) if row in table[name] else "" for name in names) + " |"
        for row in order
    ]
    lines += ["", "| | " + " | ".join(names) + " | mean |", "|---|" + "---:|" * (len(names) + 1)]
    for title, minuend, subtrahend in (
        ("auto minus paper, micro", "auto", "paper"),
        ("auto minus threshold 0.5, micro", "auto", UNFITTED),
        ("oracle per label, micro, minus paper", "oracle per label, micro", "paper"),
        ("auto minus label prior, micro", "auto", "label prior"),
    ):
        if not all({minuend, subtrahend} <= set(table[name]) for name in names):
            continue
        gaps = [
            100
            * (table[n][minuend]["metrics"]["micro_f1"]["mean"] - table[n][subtrahend]["metrics"]["micro_f1"]["mean"])
            for n in names
        ]
        lines.append(f"| {title} | " + " | ".join(f"{gap:+.1f}" for gap in gaps) + f" | {sum(gaps) / len(gaps):+.1f} |")
    return HEAD + "\n" + "\n".join(lines) + "\n" + GAP


ECE = """
## Expected calibration error

Over all pairs of document and label, 15 bins of equal width. Raw: the model's own probabilities, sigmoid of the
log-odds. Then after each calibration, and as the classifier gives them before any labelled document was seen.
"""


def calibration_errors(datasets: dict[str, dict]) -> str:
    lines = ["| | " + " | ".join(datasets) + " |", "|---|" + "---:|" * len(datasets)]
    models = {n: {r["name"]: r["metrics"] for r in d["rows"] if r["kind"] == "model"} for n, d in datasets.items()}
    raw = [next(iter(found.values()))["ece_raw"]["mean"] for found in models.values()]
    lines.append("| raw | " + " | ".join(f"{value:.3f}" for value in raw) + " |")
    for name in next(iter(models.values())):
        lines.append(f"| {name} | " + " | ".join(f"{m[name]['ece']['mean']:.3f}" for m in models.values()) + " |")
    return ECE + "\n" + "\n".join(lines) + "\n"


def beside(datasets: dict[str, dict]) -> str:
    """Ours and the paper's, micro / macro F1."""
    lines = ["| | " + " | ".join(datasets) + " |", "|---|" + "---:|" * len(datasets)]
    measured = [{row["name"]: row for row in found["rows"]} for found in datasets.values()]
    for row in ("auto", "auto + own-cosine", "paper", UNFITTED):
        if all(row in rows for rows in measured):
            lines.append(f"| {row} | " + " | ".join(cell(rows[row]) for rows in measured) + " |")
    lines += [
        f"| {row} | " + " | ".join(cells.get(name, "") for name in datasets) + " |" for row, cells in PAPER.items()
    ]
    return BESIDE + "\n" + "\n".join(lines) + "\n"


GUARANTEES = """
## Guarantees

`ConformalCalibration` promises a recall. Fitted on 200 documents drawn with each of 20 seeds, measured on the rest:
the mean recall of documents with a true label, and in brackets how many labels it predicts for a document.
"""


def guarantees(folder: Path, names: list[str]) -> str:
    lines = ["| promised recall | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for level in (0.8, 0.9):
        cells = []
        for name in names:
            scored = Scored.load(folder / f"{name}-development" / "pool")
            found = [recall_on_fresh(scored, level, seed) for seed in range(20)]
            recall, size = np.mean(found, axis=0)
            cells.append(f"{recall:.3f} ({size:.1f})")
        lines.append(f"| {level} | " + " | ".join(cells) + " |")
    return GUARANTEES + "\n" + "\n".join(lines) + "\n"


def recall_on_fresh(scored: Scored, level: float, seed: int) -> tuple[float, float]:
    """Recall and labels per document on documents that were not drawn."""
    drawn, rest = draw_rows(len(scored.gold), 200, seed)
    model = ConformalCalibration(level=level).fit(scored.log_odds[drawn], scored.gold[drawn])
    gold, predicted = scored.gold[rest], model.predict(scored.log_odds[rest])
    labelled = gold.any(axis=1)
    return float(((gold & predicted).sum(1)[labelled] / gold.sum(1)[labelled]).mean()), float(predicted.sum(1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--scores", type=Path)
    arguments = parser.parse_args()
    datasets: dict[str, dict] = {}
    for path in arguments.results:
        datasets |= json.loads(path.read_text(encoding="utf-8"))["datasets"]
    print(page(datasets), end="")
    print(calibration_errors(datasets), end="")
    print(beside(datasets), end="")
    if arguments.scores:
        print(guarantees(arguments.scores, list(datasets)), end="")


if __name__ == "__main__":
    main()
