"""The whole recipe, from general data to a packaged model and its card: `make models DATA=folder`.

    python -m recipes.run --data DATA --evaluation EVAL --model small

Needs one GPU; `--smoke` makes a toy on the CPU in some minutes, to see that every stage works. A stage whose result is
there is not done again, and training goes on where it was stopped: start it again after any interruption, on another
machine too if OUT or the folder of `--keep` goes along. The stages: base (the encoder to start from), prepare, encode,
validate (the documents to measure runs on), train and average (the rounds of config.yaml, some runs at once: while one
compiles, others train), export, sanity, card. `--start first=WEIGHTS` takes weights made before in place of that round,
and `--until first` stops when it is done: a machine with a GPU is needed for encode and the rounds alone. mini is
taught by small, which is made first. With `--gguf`, a Qwen2 model in that form is a tutor: it learns what was judged
and written by hand, which takes it some minutes, and answers about many more texts (recipes/tutor).
`recipes.readback` reads float weights out of a package whose own are not at hand, to start a later round from.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml

from recipes import HERE, ROOT
from recipes.bases import JUDGE, judge
from recipes.files import json_lines

Stage = tuple[str, Path, list[str]]
ROWS = 600  # written, and judged, that a run is measured on: of those kept apart
WEIGHTS = "weights.safetensors"  # of a run, and of the model
TOKENIZER = ROOT / "src" / "setscore" / "models" / "setscore-mini" / "tokenizer.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="general training data")
    parser.add_argument("--evaluation", type=Path, help="evaluation data: overlap check, validation documents")
    parser.add_argument("--topics", type=Path, default=HERE / "topics.yaml", help="more phrases that could be labels")
    parser.add_argument("--written", type=Path, default=HERE / "written", help="default: recipes/written")
    parser.add_argument("--model", choices=("small", "mini"), default="small", help="default: small")
    parser.add_argument(
        "--start", type=named, metavar="ROUND=WEIGHTS", help="made before: that round and those before it are not made"
    )
    parser.add_argument(
        "--teacher", type=Path, help="weights of the larger model, for mini; default: those of build/small"
    )
    parser.add_argument(
        "--keep", type=Path, help="a folder that gets a copy of every result; what it has is not made again"
    )
    parser.add_argument("--gguf", type=Path, help="a larger language model, to be the tutor; default: none")
    parser.add_argument("--base", type=Path, help="the encoder's model.safetensors; default: fetched, see bases.py")
    parser.add_argument("--judge", type=Path, help=f"the encoder that judges phrases; default: {JUDGE}, a package")
    parser.add_argument("--validation", type=Path, help="labelled sets to measure runs on; default: of --evaluation")
    parser.add_argument("--out", type=Path, help="default: build/MODEL, with --smoke build/MODEL-smoke")
    parser.add_argument("--package", type=Path, help="where the model goes; default: OUT/package")
    parser.add_argument("--until", metavar="STAGE", help="the last stage or round to make, as in --until second")
    parser.add_argument("--at-once", type=int, default=4, help="training runs at the same time")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu trains for days")
    parser.add_argument("--smoke", action="store_true", help="a toy on the CPU")
    parser.add_argument("--every", type=int, default=2000, metavar="N", help="with --smoke: of the data every N-th row")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.device = "cpu"
    elif arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("no GPU was found. --smoke makes a toy without one; --device cpu trains for days.")
    arguments.out = arguments.out or Path("build", arguments.model + ("-smoke" if arguments.smoke else ""))
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.model == "mini":
        larger = arguments.out.with_name(arguments.out.name.replace("mini", "small")) / WEIGHTS
        arguments.teacher = arguments.teacher or larger
        if not arguments.teacher.exists():
            parser.error(f"{arguments.teacher} is not there: make small first, or name its weights (--teacher).")
    do = partial(perform, out=arguments.out, keep=arguments.keep)
    with ThreadPoolExecutor(arguments.at_once) as pool:
        planned = stages(arguments, yaml.safe_load((HERE / "config.yaml").read_text()))
        for together in up_to(planned, arguments.until):
            list(pool.map(do, together))


def named(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not (name and path):
        raise argparse.ArgumentTypeError(f"{text}: ROUND=WEIGHTS was expected, as in first=first.safetensors")
    return name, Path(path)


def up_to(planned: list[list[Stage]], last: str | None) -> list[list[Stage]]:
    """The stages until the one of that name, or the one that makes the result of the round of that name."""
    names = [{name for title, wanted, _ in together for name in (title, wanted.stem)} for together in planned]
    if last is None:
        return planned
    found = [number for number, each in enumerate(names) if last in each]
    if not found:
        raise SystemExit(f"--until {last}: there is no such stage; there are {', '.join(sorted(set().union(*names)))}.")
    return planned[: found[-1] + 1]


def perform(stage: Stage, *, out: Path, keep: Path | None) -> None:
    """A stage that is not done yet, neither here nor in the folder to keep results in."""
    name, wanted, command = stage
    kept = keep / wanted.relative_to(out) if keep and wanted.is_relative_to(out) else None
    if kept and kept.exists() and not wanted.exists():
        copy_results(kept, wanted)
    if wanted.exists():
        say(f"{name}: {wanted} is there")
        return
    say(f"{name}: {' '.join(command)}")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run([sys.executable, *command], check=True, env={**os.environ, "PYTHONPATH": path})
    if kept:
        copy_results(wanted, kept)


def copy_results(source: Path, target: Path) -> None:
    """The file, and of a run its log and figures; the file comes last and whole, because it says that all is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = [path for path in source.parent.glob("*.json*") if path != source]
    for path in [*beside, source]:
        half = target.parent / f"{path.name}.{target.stem}.part"  # results of one folder may be copied at once
        shutil.copyfile(path, half)
        half.replace(target.parent / path.name)


def say(line: str) -> None:
    """In one piece: other stages write at the same time."""
    print(f"{line}\n", end="", flush=True)


def stages(arguments: argparse.Namespace, config: dict[str, Any]) -> list[list[Stage]]:
    """Name, the file that shows that it is done, and the command, in order; those of one list may run at once."""
    out, judging = arguments.out, arguments.judge or judge()
    wanted = config["models"][arguments.model]["base"]
    base = arguments.base or (judging if wanted == JUDGE else out / f"{wanted}.safetensors")
    package = arguments.package or out / "package"
    store, encoded, weights = out / "prepared.npz", out / "encoded", out / WEIGHTS
    texts = scale_texts(arguments.data, out / "scale_texts.jsonl", (8, 2) if arguments.smoke else (160, 40))
    common = {"--store": store, "--encoded": encoded, "--base": base, "--tokenizer": TOKENIZER}
    rounds = to_make(config["models"][arguments.model]["rounds"], arguments.start)
    evaluation = {"--evaluation": arguments.evaluation} if arguments.evaluation else {}
    every = {"--every": arguments.every} if arguments.smoke else {}
    tutor = {"--tutor": out / "tutor"} if arguments.gguf else {}
    first = [
        stage("prepare", store, {"--data": arguments.data, "--tokenizer": TOKENIZER, "--out": store, **evaluation,
                                 "--summary": out / "summary.json", "--topics": arguments.topics,
                                 "--written": arguments.written,
                                 "--apart": out / "judged.json", **tutor, **every}),
        stage("encode", encoded / "cosines.npy", {"--store": store, "--base": judging, "--targets": base,
                                                  "--out": encoded}),
    ]  # fmt: skip
    if not arguments.start and base == out / f"{wanted}.safetensors":
        title, made, (*command, option, path) = stage("bases", base, {"--out": base})
        first.insert(0, (title, made, [*command, wanted, option, path]))
    if arguments.evaluation and not arguments.validation:
        arguments.validation = out / "validation.json"
        measured = {"--data-dir": arguments.evaluation, "--judged": out / "judged.json", "--out": arguments.validation,
                    "--written": arguments.written}  # fmt: skip
        few = {"--documents": 10, "--rows": 40} if arguments.smoke else {"--rows": ROWS}
        first.append(stage("validate", arguments.validation, {**measured, **few}))
    if arguments.gguf:
        first += tutoring(arguments, config["models"][arguments.model]["tutor"], store, judging)
        common["--tutored"] = out / "tutored.npz"
    trained = training(arguments, config, rounds, common)
    last: list[Stage] = []
    export = {"--weights": weights, "--tokenizer": TOKENIZER, "--texts": texts, "--out": package}
    parity = ROOT / "tests" / "data" / "fp32_log_odds.json" if arguments.package else out / "parity.json"
    flips = {"--flips": 1} if arguments.smoke else {}  # a toy's log-odds all lie near 0
    last.append(stage("export", package / "manifest.json", {**export, "--parity": parity, **flips}))
    sane = {"--weights": weights, "--tokenizer": TOKENIZER, "--data": arguments.data, "--out": out / "sanity.json"}
    if arguments.smoke:
        sane["--passages"] = 5
    last.append(stage("sanity", out / "sanity.json", sane))
    card = package / "README.md"
    last.append(stage("card", card, {"--run": out, "--model": arguments.model, "--parity": parity, "--out": card}))
    return [*([one] for one in first), *trained, *([one] for one in last)]


def tutoring(arguments: argparse.Namespace, tutor: dict[str, Any], store: Path, judging: Path) -> list[Stage]:
    """A larger model learns and answers; only the last two stages need a GPU, and the GGUF file the first two."""
    out, folder = arguments.out, arguments.out / "tutor"
    tokens, packed, device = folder / "tokens.npz", folder / "weights.safetensors", {"--device": arguments.device}
    gguf, measured = {"--gguf": arguments.gguf}, {}
    if arguments.validation:
        measured = {"--validation": arguments.validation}
    layers, minutes = (2, 1) if arguments.smoke else (tutor["layers"], tutor["minutes"])
    few = {"--rows": 2} if arguments.smoke else {}
    return [
        stage("tutor.tokens", tokens, {**gguf, "--folder": folder, **measured}),
        stage("tutor.weights", packed, {**gguf, "--layers": layers, "--out": packed}),
        stage("tutor.near", folder / "near.npz", {"--store": store, "--base": judging, "--folder": folder, **device}),
        stage(
            "tutor.learn",
            out / "tutored.npz",
            {"--folder": folder, "--out": out / "tutored.npz", "--minutes": minutes, **few, **measured, **device},
        ),
    ]


def to_make(rounds: dict[str, dict[str, Any]], start: tuple[str, Path] | None) -> dict[str, dict[str, Any]]:
    """The rounds behind the one that stands in `start`."""
    if start is None:
        return rounds
    if start[0] not in rounds:
        raise SystemExit(f"--start {start[0]}: there is no such round; there are {', '.join(rounds)}.")
    names = list(rounds)
    return {name: rounds[name] for name in names[names.index(start[0]) + 1 :]}


def training(
    arguments: argparse.Namespace, config: dict[str, Any], rounds: dict[str, dict[str, Any]], common: dict[str, Any]
) -> list[list[Stage]]:
    """The rounds of the model, in order: runs that may go at once, their means, and means of what was made before."""
    made = {"base": common["--base"], "small": arguments.teacher, **dict([arguments.start] if arguments.start else [])}
    found: list[list[Stage]] = []
    for together in waves(rounds):
        runs, means = [], []
        for name, each in together.items():
            result, parts = arguments.out / f"{name}.safetensors", each.get("mean")
            if missing := [part for part in parts or [each["from"]] if part not in made]:
                raise SystemExit(f"The round {name} needs {', '.join(missing)}, which --start left out.")
            if parts is None:
                seeds = each.get("seeds", config["seeds"])[: 1 if arguments.smoke else None]
                taught = {"--teacher": made[each["teacher"]]} if "teacher" in each else {}
                options = {**common, "--base": made[each["from"]], **taught}
                some = [train(arguments, options, f"{name}-{seed}", {**each, "seed": seed}) for seed in seeds]
                runs += some
                means.append(averaging([weights for _, weights, _ in some], [1.0] * len(some), result))
            else:
                shift = config["shift"] if result.name == WEIGHTS else 0.0
                means.append(averaging([made[part] for part in parts], list(parts.values()), result, shift))
        made |= {name: arguments.out / f"{name}.safetensors" for name in together}
        found += [runs, means] if runs else [means]
    return found


def waves(rounds: dict[str, dict[str, Any]]) -> list[dict[str, dict[str, Any]]]:
    """The rounds in order; neighbours that need nothing of each other are made together."""
    found: list[dict[str, dict[str, Any]]] = []
    for name, each in rounds.items():
        needed = each.get("mean") or {each["from"], each.get("teacher")}
        if found and found[-1].keys().isdisjoint(needed):
            found[-1][name] = each
        else:
            found.append({name: each})
    return found


def averaging(weights: Sequence[Path], shares: Sequence[float], mean: Path, shift: float = 0.0) -> Stage:
    title, _, command = stage("average", mean, {"--shift": shift, "--tokenizer": TOKENIZER, "--out": mean})
    return title, mean, [*command[:2], *map(str, weights), "--share", *map(str, shares), *command[2:]]


def train(arguments: argparse.Namespace, common: dict[str, Any], name: str, run: dict[str, Any]) -> Stage:
    """One run of train.py, in a folder of its name."""
    folder, steps = arguments.out / f"run-{name}", 3 if arguments.smoke else run["steps"]
    validation = {"--validation": arguments.validation} if arguments.validation else {}
    speed = ["--workers", "0"] if arguments.smoke else ["--compile", "--workers", "4"]
    where = {"--out": folder, "--device": arguments.device}
    options = {**common, **where, "--steps": steps, "--seed": run["seed"], **validation}
    title, wanted, command = stage("train", folder / WEIGHTS, options)
    tutored = run.get("tutored", []) if arguments.gguf else []
    extra = ["--set", *run["settings"], *run.get("also", []), *tutored, *(["rows=2"] if arguments.smoke else [])]
    return f"{title} {name}", wanted, [*command, *speed, *(extra if len(extra) > 1 else [])]


def stage(name: str, wanted: Path, options: dict[str, Any]) -> Stage:
    return name, wanted, ["-m", f"recipes.{name}", *(str(part) for pair in options.items() for part in pair)]


def scale_texts(data: Path, path: Path, counts: Sequence[int]) -> Path:
    """Prompts and reviews on which export.py sees how large activations are; drawn with a fixed seed, once."""
    if path.exists():
        return path
    generator = random.Random(13)
    prompts = [record["prompt"] for record in json_lines(data / "t0_sample.jsonl.xz", ["prompt"])]
    reviews = [record["text"] for record in json_lines(data / "imdb_sample.jsonl.xz", ["text"])]
    drawn = [
        text
        for texts, n in zip((prompts, reviews), counts, strict=True)
        for text in generator.sample(texts, min(n, len(texts)))
    ]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in drawn))
    return path


if __name__ == "__main__":
    main()
