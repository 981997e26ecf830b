"""Our own board: the results in configs/results, from runs of the configs, and docs/results/board.md from them.

    python benchmarks/pages/board.py --data-dir DATA --limit 200

runs every config whose result is missing or stale, keeps each result as soon as it is there, and writes the page. It
needs the datasets' official files (docs/reference/files.md); without --data-dir the sets of one's own are run, which
need nothing. Answers are kept in the folder of --out: a command that was interrupted goes on when it is given again.
With --limit 200 it takes minutes on a laptop, and the table says how many documents were drawn; without, hours.

--page only writes the page again. --check writes nothing, and fails if the page or a result is stale or missing: a
result is stale when its config, the package's defaults or the model's weights have changed.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import options, table, tell
from setscore.backbones import load_backbone
from setscore.experiments.runs.config import RunConfig, load_config
from setscore.experiments.runs.folder import STORE, Run, make_run

ROOT = Path(__file__).parents[2]
CONFIGS, RESULTS, PAGE = ROOT / "configs", ROOT / "configs" / "results", ROOT / "docs" / "results" / "board.md"
METRICS = ("micro_f1", "macro_f1", "exact_match", "ece", "brier")
HEAD = """# The board

Our own models on the development documents of the paper's datasets, and on a small set of everyday notes, under this
package's defaults. Made by

```text
python benchmarks/pages/board.py --data-dir DATA --limit {limit}
```

from the configs in `configs/`; the numbers stand in `configs/results/`, and a test fails when they are stale. Without
`--limit` all development documents are asked, which takes hours on a laptop. Validation documents are drawn with seeds
13, 17 and 23: 200, or half of what there is. F1 in percent, mean ± standard deviation over the seeds. No test document
of any dataset was read.
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


def make(configs: Sequence[Path], data_dir: Path | None, limit: int | None, out: Path) -> None:
    """Runs what has no fresh result, one config after the other, and keeps each result as soon as it is there."""
    known = {one["config"]: one for one in results()}
    for number, path in enumerate(configs, 1):
        wanted, before = load_config(path, _changes(path, data_dir, limit)), known.get(path.stem)
        if before is not None and before["limit"] == wanted.dataset.limit and not outdated(before):
            tell(f"{number} of {len(configs)}, {path.stem}: has a fresh result")
            continue
        run, new = make_run(wanted, out / f"{path.stem}-{wanted.key()[:8]}", store=out / STORE)
        tell(f"{number} of {len(configs)}, {path.stem}: {run.cost['seconds']:.0f} s{'' if new else ', made before'}")
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(result(path.stem, run), indent=2, ensure_ascii=False)
        (RESULTS / f"{path.stem}.json").write_text(f"{text}\n", encoding="utf-8")


def _changes(path: Path, data_dir: Path | None, limit: int | None) -> list[str]:
    """A dataset has a folder and a limit; a file of one's own is beside its config and read whole."""
    if load_config(path).dataset.file is not None:
        return []
    place = [] if data_dir is None else [f"dataset.data_dir={data_dir.as_posix()!r}"]
    return place + ([] if limit is None else [f"dataset.limit={limit}"])


def results() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]


def config(found: Mapping[str, Any]) -> RunConfig:
    """The config of a result, with the documents that it was limited to."""
    limit = [] if found["limit"] is None else [f"dataset.limit={found['limit']}"]
    return load_config(CONFIGS / f"{found['config']}.toml", limit)


def outdated(found: Mapping[str, Any]) -> str:
    """Why a result no longer fits, as a sentence; nothing where it does."""
    name = found["config"]
    if found["key"] != config(found).key():
        return f"{name}: the config, or a default of this package, has changed."
    if found["identity"] != load_backbone(found["backbone"]).identity:
        return f"{name}: {found['backbone']} has other weights now."
    return ""


def stale() -> list[str]:
    """What no longer fits or is not there, as sentences."""
    found = results()
    problems = [text for one in found if (text := outdated(one))]
    missing = {path.stem for path in CONFIGS.glob("*.toml")} - {one["config"] for one in found}
    problems += [f"{name}: there is no result." for name in sorted(missing)]
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page(found):
        problems.append(f"{PAGE.name} was not made from these results.")
    return problems


def page(found: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in sorted(found, key=lambda one: (one["dataset"], one["backbone"])):
        documents = next(iter(one["documents"].values()))
        scores = [f"{100 * one['mean'][key]:.1f} ± {100 * one['sd'][key]:.1f}" for key in METRICS[:3]]
        errors = [f"{one['mean'][key]:.3f}" for key in METRICS[3:]]
        about = [one["dataset"], one["backbone"], one["protocol"], one["label_text"], one["regime"]]
        rows.append([*about, f"{documents[0]} + {documents[1]}", *scores, *errors])
    about = ["dataset", "model", "protocol", "labels by", "regime", "documents"]
    head = [*about, "micro-F1", "macro-F1", "exact match", "ECE", "Brier"]
    limit = max((one["limit"] or 0 for one in found), default=0) or "N"
    return f"{HEAD.format(limit=limit)}\n{table(head, rows, left=5)}\n\nDocuments: fitted on + measured on.\n"


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--data-dir", type=Path, help="the datasets' files; without it only sets of one's own are run")
    parser.add_argument("--limit", type=int, help="only so many documents of each dataset; the table says how many")
    parser.add_argument("--only", default="*", help="configs that fit a pattern, as in '*-mini'")
    parser.add_argument("--out", type=Path, default=Path("board"), help="a folder for runs and answers")
    parser.add_argument("--page", action="store_true", help="run nothing; only write the page again")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is stale")
    arguments = parser.parse_args(given)
    if arguments.check:
        problems = stale()
        print("\n".join(problems) or "nothing is stale")
        raise SystemExit(bool(problems))
    if not arguments.page:
        configs = [path for path in sorted(CONFIGS.glob("*.toml")) if fnmatch(path.stem, arguments.only)]
        if arguments.data_dir is None:
            configs = [path for path in configs if load_config(path).dataset.file is not None]
        make(configs, arguments.data_dir, arguments.limit, arguments.out)
    PAGE.write_text(page(results()), encoding="utf-8")


if __name__ == "__main__":
    main()
