"""The page docs/scorer-results.md from comparisons of scorers.

    setscore evaluate goemotions --data-dir DATA --limit 240 --calibration auto --json goemotions.json \\
        --scorer per_label,unary,permutation,jsr,...
    python benchmarks/scorer_results.py goemotions.json ... --full small.json ... > docs/scorer-results.md

`--full` are comparisons on fewer documents, for scorers that cost too much on all of them.
"""

import argparse
import json
from pathlib import Path
from typing import Any

HEAD = """# Every scorer on two development sets

The embedded model, shared attention, two CPU cores; half of the documents are drawn for calibration with seeds 13, 17
and 23, F1 is measured on the other half. Micro / macro F1 in percent, mean over the seeds with its standard deviation;
"at 0" decides where the log-odds are above 0, without any labelled document. The command, for each dataset:

```text
setscore evaluate DATASET --data-dir DATA --limit {limit} --calibration auto --json FILE \\
    --scorer {scorers}
```
"""
FULL = """
Full-gain refinement asks about forty times as much as the rest, so it was compared on {limit} documents:
"""


def table(name: str, scorers: dict[str, Any]) -> str:
    lines = [f"| {name} | micro-F1 | macro-F1 | at 0: micro | macro | forwards | times per_label's time |"]
    lines.append("|---|" + "---:|" * 6)
    fastest = scorers["per_label"]["documents_per_second"]
    for scorer, found in scorers.items():
        cells = [
            spread(found[kind][metric]) for kind in ("metrics", "uncalibrated") for metric in ("micro_f1", "macro_f1")
        ]
        cells += [f"{found['forwards']:.1f}", f"{fastest / found['documents_per_second']:.1f}"]
        lines.append(f"| `{scorer}` | " + " | ".join(cells) + " |")
    notes = [
        f"`{scorer}`, means over documents: "
        + ", ".join(f"{key} {value:.3g}" for key, value in found["details"].items())
        for scorer, found in scorers.items()
        if found["details"]
    ]
    return "\n".join(["", *lines, "", *(f"- {note}" for note in notes)]) + "\n"


def spread(value: dict[str, float]) -> str:
    return f"{100 * value['mean']:.1f} ± {100 * value['sd']:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=240, help="of the documents, as given to evaluate")
    parser.add_argument("--full", type=Path, nargs="*", default=[])
    parser.add_argument("--full-limit", type=int, default=60)
    arguments = parser.parse_args()
    found = [json.loads(path.read_text(encoding="utf-8"))["datasets"] for path in arguments.results]
    names = ",".join(next(iter(found[0].values())))
    print(HEAD.format(limit=arguments.limit, scorers=names), end="")
    print("".join(table(name, scorers) for datasets in found for name, scorers in datasets.items()), end="")
    if arguments.full:
        print(FULL.format(limit=arguments.full_limit), end="")
    for path in arguments.full:
        datasets = json.loads(path.read_text(encoding="utf-8"))["datasets"]
        print("".join(table(name, scorers) for name, scorers in datasets.items()), end="")


if __name__ == "__main__":
    main()
