"""The numbers of the paper's figures: slots, predicted shares, seconds and memory, and the check of int4 weights."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from setscore.backbones import Backbone, load_backbone
from setscore.errors import SetScoreError
from setscore.experiments.protocol import PAPER
from setscore.experiments.reproduction.bench import Bench, MissingError
from setscore.experiments.reproduction.registry import Need, Quantity, methods
from setscore.experiments.runs.folder import Drawn, Run, milliseconds
from setscore.prompts import Template
from setscore.records import Query

PRICE = 0.8  # dollars for an hour of the paper's GPU
GB = 1e9
SMOKE_PAIRS = 6
MARGIN = 0.01  # of a share: nearer to gold than this is neither too many nor too few


def shortlist_size(dataset: str) -> int | None:
    """k of the paper's shortlist; None where all labels are asked."""
    found = PAPER.shortlist(dataset)
    return None if found is None else int(found.partition(":")[2])


def first_slot(found: Drawn) -> dict[str, Any]:
    """The first answer slot of the all-masked prompt: whose it is, and what it says before any calibration."""
    first = found.test.log_odds[:, 0]
    return {
        "slot1_label": found.test.labels[0],
        "slot1_positive_rate": 100 * float((first > 0).mean()),
        "slot1_mean_log_odds": float(first.mean()),
        "slot1_gold_rate": 100 * float(found.test.gold[:, 0].mean()),
    }


def positive_rates(base: Drawn, instruct: Drawn) -> dict[str, Any]:
    """How often each label is predicted beside how often it is gold, in percent; signed, label by label."""
    gold, names = base.test.gold.mean(axis=0), np.array(base.test.labels)
    off = {name: run.decisions.mean(axis=0) - gold for name, run in (("base", base), ("instruct", instruct))}
    return {
        "mean_abs_deviation_base": 100 * float(np.abs(off["base"]).mean()),
        "mean_abs_deviation_instruct": 100 * float(np.abs(off["instruct"]).mean()),
        "base_over_predicts": names[off["base"] > MARGIN].tolist(),
        "base_under_predicts": names[off["base"] < -MARGIN].tolist(),
        "instruct_largest_mismatch": str(names[int(np.argmax(np.abs(off["instruct"])))]),
    }


def cost(quantity: Quantity, runs: Mapping[Need, Run]) -> Any:
    """What the text says about time, memory and money."""
    what = quantity.what
    if what == "memory":
        return max(run.cost["memory"] for run in runs.values()) / GB
    each = {need: latency(run) for need, run in runs.items()}
    values = list(each.values())
    if what == "seconds":
        return values[0] / 1000
    if what == "price":
        return float(np.mean(values)) / 1000 / 3600 * PRICE * quantity["documents"]
    if what == "relative":
        long = [value for need, value in each.items() if need.dataset == "eurlex"]
        short = [value for need, value in each.items() if need.dataset != "eurlex"]
        return float(np.mean(long) / np.mean(short))
    if what == "range":
        return [min(values), max(values)]
    return max(values) if what == "most" else float(np.mean(values))


def latency(run: Run) -> float:
    """Milliseconds for a document; what a store knew says nothing about time."""
    found = milliseconds(run)
    if found is None:
        raise MissingError("everything was known before this run, so nothing was timed. Time it with a new --out.")
    return found


def machine(run: Run) -> str:
    about = run.environment
    return str(about["gpu"] or about["processor"] or about["machine"])


def int4_check(bench: Bench) -> dict[str, float]:
    """On how many pairs int4 weights decide as bf16 ones do, and how much faster they are on long documents."""
    place = bench.choice.place(methods()["llada2_mini_int4"].weights)
    base, _, given = place.partition("?")
    if "dtype=int4" not in given:
        raise MissingError(f"{place} is not run in int4, so there is nothing to check.")
    documents = bench.test("reuters")
    longest = sorted(documents.texts, key=len)[-SMOKE_PAIRS:]
    template = Template.of("express")
    queries = [
        template.query(text[:2000], documents.labels.texts[place % len(documents.labels)])
        for place, text in enumerate(longest)
    ]
    try:
        seconds, answers = zip(*(_timed(load_backbone(name), queries) for name in (place, base)), strict=True)
    except SetScoreError as error:
        raise MissingError(str(error)) from error
    same = int(sum((one > 0) == (other > 0) for one, other in zip(*answers, strict=True)))
    return {"smoke_test_pairs": same, "int4_speedup_long_prompts": seconds[1] / seconds[0]}


def _timed(backbone: Backbone, queries: list[Query]) -> tuple[float, list[float]]:
    backbone.log_odds(queries[:1])
    begun = time.perf_counter()
    answers = [float(answer[0]) for answer in backbone.log_odds(queries)]
    return time.perf_counter() - begun, answers
