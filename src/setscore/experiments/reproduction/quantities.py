"""Measuring a cell: from runs, documents and settings to a number, with a bootstrap interval where there is one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setscore.calibration.paper import PaperCalibration
from setscore.errors import SetScoreError
from setscore.experiments.evaluation import Spread
from setscore.experiments.posteriors import Mixture, choose
from setscore.experiments.reproduction import figures
from setscore.experiments.reproduction.bench import Bench, MissingError
from setscore.experiments.reproduction.registry import Quantity, blends, cells_of, needs, quantity_of
from setscore.experiments.reproduction.settings import STATED, setting
from setscore.experiments.runs.folder import Drawn, Run
from setscore.metrics import bootstrap, compare, decision_metrics
from setscore.records import BoolArray
from setscore.shortlist import Shortlist
from setscore.theory import counter_example, local_update, pseudo_likelihood, shortlist_ceilings, sweep

PERCENT = {"micro": "micro_f1", "macro": "macro_f1", "exact_match": "exact_match"}
PLAIN = ("ece", "ece_raw", "brier")


@dataclass(frozen=True)
class Measured:
    """A value (a number, a list, or a word), its interval if it has one, and what is to be said about it."""

    value: Any
    low: float | None = None
    high: float | None = None
    note: str = ""


class StatedError(SetScoreError):
    """A cell with nothing to measure."""


def measure(quantity: Quantity, bench: Bench) -> Measured:
    """The value of a quantity. MissingError and StatedError say why there is none."""
    return MEASURES[quantity.kind](quantity, bench)


def _runs(quantity: Quantity, bench: Bench) -> list[Run]:
    return [bench.run(need) for need in needs(quantity)]


def _score(quantity: Quantity, bench: Bench) -> Measured:
    runs, measure_ = _runs(quantity, bench), quantity["measure"]
    if over := quantity.get("over"):
        return _over_seeds(runs[0], PERCENT[measure_], over)
    if measure_ == "truncated":
        return Measured(100 * float(runs[0].first.test.truncated.mean()))
    if measure_ == "least_whole":
        return Measured(min(100 * (1 - float(run.first.test.truncated.mean())) for run in runs))
    if measure_.startswith("every_candidate"):
        return _every_candidate(runs[0].first, PERCENT[measure_.removeprefix("every_candidate_")])
    if len(runs) > 1:
        values = [run.first.metrics[measure_] for run in runs]
        return Measured([min(values), max(values)], note=f"over {len(runs)} runs")
    return _metric(_headline(runs[0]), measure_)


def _headline(run: Run) -> Drawn:
    """Seed 13 where there are several; else the one there is."""
    return next((one for one in run.seeds if one.seed == 13), run.first)


def _metric(found: Drawn, name: str) -> Measured:
    key = PERCENT.get(name, name)
    if key not in found.metrics:
        raise MissingError("this method has decisions and no probabilities.")
    scale = 100 if name in PERCENT else 1
    interval = found.intervals.get(key)
    bounds = {} if interval is None else {"low": scale * interval["low"], "high": scale * interval["high"]}
    chosen = f"template {found.template}; " if found.sweep else ""
    return Measured(scale * found.metrics[key], **bounds, note=f"{chosen}{found.choice}")


def _over_seeds(run: Run, key: str, over: str) -> Measured:
    spread = Spread.of([one.metrics for one in run.seeds])
    if over == "sd":
        return Measured(100 * spread.sd[key], note=f"{len(run.seeds)} seeds, divided by n - 1")
    low, high = (float(np.mean([one.intervals[key][end] for one in run.seeds])) for end in ("low", "high"))
    return Measured(100 * spread.mean[key], 100 * low, 100 * high, f"{len(run.seeds)} seeds")


def _every_candidate(found: Drawn, key: str) -> Measured:
    """Every label that was asked is predicted."""
    everything = np.isfinite(found.test.log_odds)
    return Measured(100 * decision_metrics(found.test.gold, everything)[key], note="every candidate is predicted")


def _difference(quantity: Quantity, bench: Bench) -> Measured:
    """First minus second on the same documents, with a paired interval."""
    first, second = (_headline(run) for run in _runs(quantity, bench))
    what = quantity["measure"]
    if first.test.ids != second.test.ids:
        raise MissingError("the two runs have different documents.")
    gold, one, other = first.test.gold, first.decisions, second.decisions
    if what.startswith("label "):
        place = _label_place(first, what.removeprefix("label "))
        found = compare(gold[:, place], other[:, place], one[:, place])["micro_f1"]
    else:
        found = compare(gold, other, one)[PERCENT[what]]
    return Measured(100 * found.difference, 100 * found.low, 100 * found.high, f"paired, p = {found.p_value:.3f}")


def _label_place(found: Drawn, name: str) -> list[int]:
    if name not in found.test.labels:
        raise MissingError(f"{name!r} is not among the {len(found.test.labels)} labels of {found.test.name}.")
    return [found.test.labels.index(name)]


def _label(quantity: Quantity, bench: Bench) -> Measured:
    (run,) = _runs(quantity, bench)
    found = _headline(run)
    place = _label_place(found, quantity["name"])
    interval = bootstrap(found.test.gold[:, place], found.decisions[:, place])["micro_f1"]
    return Measured(100 * interval.value, 100 * interval.low, 100 * interval.high)


def _headroom(quantity: Quantity, bench: Bench) -> Measured:
    """With the paper's grid: one threshold from validation documents, or one per label from the test documents."""
    (run,) = _runs(quantity, bench)
    found = _headline(run)
    way, metric = quantity["measure"].split("_")
    if way == "honest":
        fitted = PaperCalibration(strategy="global").fit(found.validation.log_odds, found.validation.gold)
        note = "one threshold, from validation documents"
    else:
        fitted = PaperCalibration(strategy="per_label").fit(found.test.log_odds, found.test.gold)
        note = "oracle: thresholds saw the test documents"
    return _bootstrapped(found.test.gold, fitted.predict(found.test.log_odds), PERCENT[metric], note)


def _bootstrapped(gold: BoolArray, decisions: BoolArray, key: str, note: str) -> Measured:
    interval = bootstrap(gold, decisions)[key]
    return Measured(100 * interval.value, 100 * interval.low, 100 * interval.high, note)


def _blend(quantity: Quantity, bench: Bench) -> Measured:
    """A mixture whose weights and threshold validation documents chose; the oracle stands in the note."""
    if isinstance(quantity["dataset"], list):
        parts = [
            Quantity("blend", quantity.what, {"dataset": one, "measure": "weights"}) for one in quantity["dataset"]
        ]
        return Measured(max(_blend(part, bench).value[0] for part in parts))
    runs = [_headline(run) for run in _runs(quantity, bench)]
    blend = blends()[quantity.what]
    known = {name: _posteriors(run, "validation") for name, run in zip(blend.members, runs, strict=True)}
    chosen = choose(known, runs[0].validation.gold, blend.steps)
    if quantity["measure"] == "weights":
        return Measured(list(chosen.weights), note=chosen.sentence())
    test = {name: _posteriors(run, "test") for name, run in zip(blend.members, runs, strict=True)}
    key = PERCENT[quantity["measure"].removeprefix("reuters_")]
    gold = runs[0].test.gold
    return _bootstrapped(
        gold, chosen.decide(test), key, f"{chosen.sentence()}; {_oracle(test, gold, blend.steps, key)}"
    )


def _oracle(test: Mapping[str, Any], gold: BoolArray, steps: int, key: str) -> str:
    best: Mixture = choose(test, gold, steps)
    reached = 100 * decision_metrics(gold, best.decide(test))[key]
    return f"oracle on the test documents {reached:.1f} with {best.sentence()}"


def _posteriors(found: Drawn, part: str) -> Any:
    """Probabilities after the member's own calibration, fitted on its validation documents."""
    fitted = PaperCalibration().fit(found.validation.log_odds, found.validation.gold)
    return fitted.transform(getattr(found, part).log_odds)


def _recall(quantity: Quantity, bench: Bench) -> Measured:
    """The paper's retriever on all measured documents; it learns from none."""
    documents, k = bench.test("eurlex"), int(quantity.what)
    try:
        kept = Shortlist(k, "cosine").select(documents.texts, documents.labels)
    except SetScoreError as error:
        raise MissingError(str(error)) from error
    found = shortlist_ceilings(documents.gold, kept)
    note = f"{len(documents)} documents; by chance {100 * found.chance:.1f}"
    if quantity["measure"] == "recall":
        return Measured(100 * found.document_recall, note=f"{note}; of all gold labels {100 * found.retention:.1f}")
    return Measured(100 * found.micro_f1, note=f"{note}; from the share of all gold labels")


def _fact(quantity: Quantity, bench: Bench) -> Measured:
    dataset, what = quantity["dataset"], quantity.what
    if what == "train":
        return Measured(bench.train_size(dataset))
    documents = bench.test(dataset)
    if what.startswith("rate "):
        name = what.removeprefix("rate ")
        return Measured(100 * float(documents.gold[:, documents.labels.names.index(name)].mean()))
    shortlist = figures.shortlist_size(dataset)
    found = {"labels": len(documents.labels), "test": len(documents), "k": shortlist}
    return Measured(found.get(what, documents.cardinality))


def _setting(quantity: Quantity, bench: Bench) -> Measured:  # noqa: ARG001
    if quantity.what in STATED:
        raise StatedError(STATED[quantity.what])
    return Measured(setting(quantity.what))


def _theory(quantity: Quantity, bench: Bench) -> Measured:  # noqa: ARG001
    start = np.array([False, True])
    before, after = (
        pseudo_likelihood(counter_example, one) for one in (start, sweep(local_update, counter_example, start, [0]))
    )
    return Measured({"pl_before": before, "pl_after": after, "decrease": before - after}[quantity.what])


def _slot(quantity: Quantity, bench: Bench) -> Measured:
    (run,) = _runs(quantity, bench)
    return Measured(
        figures.first_slot(_headline(run))[quantity.what], note="the first label of the inventory, before calibration"
    )


def _rate(quantity: Quantity, bench: Bench) -> Measured:
    base, instruct = (_headline(run) for run in _runs(quantity, bench))
    return Measured(figures.positive_rates(base, instruct)[quantity.what])


def _cost(quantity: Quantity, bench: Bench) -> Measured:
    if quantity.what.startswith("int4 "):
        return Measured(figures.int4_check(bench)[quantity.what.removeprefix("int4 ")])
    runs = {need: bench.run(need) for need in needs(quantity)}
    return Measured(figures.cost(quantity, runs), note=figures.machine(next(iter(runs.values()))))


def _cells(quantity: Quantity, bench: Bench) -> Measured:
    groups = [[measure(quantity_of(cell), bench).value for cell in group] for group in cells_of(quantity)]
    names = [[cell.name for cell in group] for group in cells_of(quantity)]
    if quantity["by"] == "best":
        return Measured(
            _best(groups[0], names[0], bench), note="the pair of the template with the highest of this measure"
        )
    return Measured(OPERATIONS[quantity["by"]](groups))


def _best(values: Sequence[float], names: Sequence[str], bench: Bench) -> list[float]:
    """Micro and macro of the row with the highest value."""
    from setscore.experiments import paper

    row = names[int(np.argmax(values))].rpartition("/")[0]
    return [float(measure(quantity_of(paper.cell(f"{row}/{one}")), bench).value) for one in ("micro", "macro")]


def _stated(quantity: Quantity, bench: Bench) -> Measured:  # noqa: ARG001
    raise StatedError(quantity.what)


Groups = Sequence[Sequence[Any]]


def _range(values: Sequence[float]) -> list[float]:
    return [min(values), max(values)]


def _halves(groups: Groups) -> str:
    shares = [100 * one / other for one, other in zip(*groups, strict=True)]
    return f"{shares[0]:.0f}% of micro and {shares[1]:.0f}% of macro"


OPERATIONS: dict[str, Callable[[Groups], Any]] = {
    "same": lambda groups: groups[0][0],
    "list": lambda groups: list(groups[0]),
    "minus": lambda groups: groups[0][0] - groups[1][0],
    "pair_minus": lambda groups: [one - other for one, other in zip(*groups, strict=True)],
    "range_minus": lambda groups: _range([one - other for one, other in zip(*groups, strict=True)]),
    "ratio": lambda groups: groups[0][0] / groups[1][0],
    "percent_more": lambda groups: 100 * (groups[0][0] / groups[1][0] - 1),
    "positive": lambda groups: [sum(value > 0 for value in groups[0]), len(groups[0])],
    "less_than_half": _halves,
}


MEASURES: dict[str, Callable[[Quantity, Bench], Measured]] = {
    "score": _score,
    "difference": _difference,
    "label": _label,
    "headroom": _headroom,
    "blend": _blend,
    "recall": _recall,
    "fact": _fact,
    "setting": _setting,
    "theory": _theory,
    "slot": _slot,
    "rate": _rate,
    "cost": _cost,
    "cells_of": _cells,
    "stated": _stated,
}
