"""Our own board: the results in configs/results, from runs of the configs, and the page docs/board.md from them.

    setscore run configs/*.toml --data-dir DATA --out board
    python benchmarks/pages/board.py board

The first command needs the datasets' official files (docs/datasets.md); `setscore run configs/everyday-*.toml` needs
nothing. With --set dataset.limit=400 it takes minutes on a laptop, and the page says how many documents were drawn.
Without a folder the second command only writes the page again; `--check` writes nothing, and fails if the page or a
result is stale: a result is stale when its config, the package's defaults or the model's weights have changed.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import options, table
from setscore.backbones import load_backbone
from setscore.experiments.runs.config import RunConfig, load_config
from setscore.experiments.runs.folder import Run, read_run

ROOT = Path(__file__).parents[2]
CONFIGS, RESULTS, PAGE = ROOT / "configs", ROOT / "configs" / "results", ROOT / "docs" / "results" / "board.md"
METRICS = ("micro_f1", "macro_f1", "exact_match", "ece", "brier")
HEAD = """# The board

Our own models on the development documents of the paper's datasets, and on a small set of everyday notes, under this
package's defaults. Made by

```text
setscore run configs/*.toml --data-dir DATA --set dataset.limit=400 --out board
python benchmarks/pages/board.py board
```

from the configs in `configs/`; the numbers stand in `configs/results/`, and a test fails when they are stale. Without
`--set dataset.limit=400` all development documents are asked, which takes hours on a laptop. Labels are asked by their
descriptions. Validation documents are drawn with seeds 13, 17 and 23: 200, or half of what there is. F1 in percent,
mean ± standard deviation over the seeds. No test document of any dataset was read.
"""


def result(name: str, run: Run) -> dict[str, Any]:
    """What is kept of a run."""
    spread = run.spread()
    return {
        "config": name,
        "key": run.config.key(),
        "limit": run.config.dataset.limit,
        "protocol": run.config.protocol,
        "label_text": run.config.dataset.label_text,
        "backbone": run.config.method.backbone,
        "regime": run.first.regime,
        "identity": run.identity,
        "dataset": run.first.test.name,
        "documents": {str(one.seed): [len(one.validation), len(one.test)] for one in run.seeds},
        "mean": {key: round(spread.mean[key], 6) for key in METRICS},
        "sd": {key: round(spread.sd[key], 6) for key in METRICS},
        "setscore": run.environment["setscore"],
    }


def collect(folder: Path) -> None:
    """Writes the results of the runs in a folder."""
    RESULTS.mkdir(exist_ok=True)
    for place in sorted(folder.glob("*/metrics.json")):
        run = read_run(place.parent)
        name = _config_of(run)
        text = json.dumps(result(name, run), indent=2, ensure_ascii=False)
        (RESULTS / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def _config_of(run: Run) -> str:
    """The config that a run was made from: the longest name that its folder begins with."""
    names = [path.stem for path in CONFIGS.glob("*.toml") if run.folder.name.startswith(path.stem)]
    if not names:
        raise SystemExit(f"{run.folder} was made from no config in {CONFIGS}.")
    return max(names, key=len)


def results() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]


def config(found: Mapping[str, Any]) -> RunConfig:
    """The config of a result, with the documents that it was limited to."""
    limit = [] if found["limit"] is None else [f"dataset.limit={found['limit']}"]
    return load_config(CONFIGS / f"{found['config']}.toml", limit)


def stale() -> list[str]:
    """What no longer fits, as sentences."""
    problems = []
    for found in results():
        name = found["config"]
        if found["key"] != config(found).key():
            problems.append(f"{name}: the config, or a default of this package, has changed.")
        elif found["identity"] != load_backbone(found["backbone"]).identity:
            problems.append(f"{name}: {found['backbone']} has other weights now.")
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page(results()):
        problems.append(f"{PAGE.name} was not made from these results.")
    return problems


def page(found: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in sorted(found, key=lambda one: (one["dataset"], one["backbone"])):
        documents = next(iter(one["documents"].values()))
        scores = [f"{100 * one['mean'][key]:.1f} ± {100 * one['sd'][key]:.1f}" for key in METRICS[:3]]
        errors = [f"{one['mean'][key]:.3f}" for key in METRICS[3:]]
        rows.append(
            [one["dataset"], one["backbone"], one["regime"], f"{documents[0]} + {documents[1]}", *scores, *errors]
        )
    head = ["dataset", "model", "regime", "documents", "micro-F1", "macro-F1", "exact match", "ECE", "Brier"]
    return f"{HEAD}\n{table(head, rows)}\n\nDocuments: fitted on + measured on.\n"


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="runs of the configs")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is stale")
    arguments = parser.parse_args(given)
    if arguments.check:
        problems = stale()
        print("\n".join(problems) or "nothing is stale")
        raise SystemExit(bool(problems))
    if arguments.folder is not None:
        collect(arguments.folder)
    PAGE.write_text(page(results()), encoding="utf-8")


if __name__ == "__main__":
    main()
