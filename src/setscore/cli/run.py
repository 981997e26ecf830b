"""`setscore run`: one method on one dataset, from a config to a folder with everything that came of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from setscore.cli import options
from setscore.cli.console import literal, progress, remark, results, watch_steps
from setscore.errors import SetScoreError
from setscore.experiments.runs.needed import check_libraries

if TYPE_CHECKING:
    from setscore.experiments.runs.folder import Run

Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="A change to the config, KEY=VALUE; may be given several times.", show_default=False),
]


def run(
    *,
    configs: Annotated[list[Path] | None, typer.Argument(help="Configs in TOML.", show_default=False)] = None,
    changes: Set = None,
    out: Annotated[Path, typer.Option(help="A folder; every run gets one of its own in it.")] = Path("runs"),
    store: Annotated[
        Path | None, typer.Option(help="Where answers are kept; OUT/store unless given.", show_default=False)
    ] = None,
    data_dir: options.DataDir = None,
    allow: options.Allow = None,
) -> None:
    """Run a config: dataset, shortlist, scorer, calibration and metrics into one folder.

    The folder holds the resolved config, versions and machine, the identity of the model, scores, predictions
    (predictions.parquet, and predictions.npz as the paper saves them) and metrics.json with seconds, passes, tokens
    and memory. Answers are kept beside it: nothing is asked twice, an interrupted run continues, and a finished one
    is only read. Unknown keys of a config are refused. With --data-dir DATA the files of goemotions lie in
    DATA/goemotions.

    Examples:

        setscore run configs/everyday-small.toml

        setscore run configs/everyday-small.toml --set method.template=article-topic --set seeds=[13]

        setscore run configs/goemotions-small.toml --data-dir DATA --out results
    """
    check_libraries("setscore run")
    from setscore.experiments.runs.config import load_config
    from setscore.experiments.runs.folder import STORE, make_run

    if not configs:
        raise SetScoreError("no config was given. Give a TOML file, as in setscore run configs/everyday-small.toml.")
    given = [*(changes or ()), *([] if data_dir is None else [f"dataset.data_dir={data_dir.as_posix()!r}"])]
    loaded = {path: load_config(path, given, allow=tuple(allow or ())) for path in configs}
    made = []
    for path, config in loaded.items():
        with progress() as bar:
            told = watch_steps(bar, f"{path.stem} ", "document")
            folder = out / (path.stem if not changes else f"{path.stem}-{config.key()[:8]}")
            found, new = make_run(config, folder, store=store or out / STORE, progress=told)
        for text in found.remarks:
            remark(f"{path.stem}: {text}")
        remark(f"{found.folder}: {_cost(found) if new else 'finished before; read.'}")
        made.append(found)
    show_runs(made)


def _cost(run: "Run") -> str:
    cost = run.cost
    return f"{cost['asked']:.0f} asked in {cost['seconds']:.1f} s, {cost['memory'] / 1e6:.0f} MB at most."


def show_runs(runs: "list[Run]") -> None:
    """One row for each run."""
    table = Table(box=None, pad_edge=False)
    for column in ("run", "dataset", "protocol", "labels by", "micro-F1", "macro-F1", "ECE", "seeds"):
        numeric = column.endswith("F1") or column in ("ECE", "seeds")
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for run in runs:
        spread = run.spread()
        scores = []
        for metric in ("micro_f1", "macro_f1"):
            mean, sd = 100 * spread.mean[metric], 100 * spread.sd[metric]
            scores.append(f"{mean:.1f} ± {sd:.1f}" if sd >= 0 else f"{mean:.1f}")
        error = f"{spread.mean['ece']:.3f}" if "ece" in spread.mean else ""
        config = run.config
        name, dataset = literal(config.title or run.folder.name), run.first.test.name
        seeds = str(len(run.seeds))
        table.add_row(name, dataset, config.protocol, config.dataset.label_text, *scores, error, seeds)
    results.print(table)
    results.print("\nF1 in percent, mean ± standard deviation over seeds.", style="dim")
