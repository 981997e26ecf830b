"""`setscore diagnose`: what may be wrong with a backbone, a wording or a label, on labelled documents."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from setscore.backbones import Backbone, load_backbone
from setscore.cli import options
from setscore.cli.console import remark, results
from setscore.datasets import Dataset
from setscore.errors import SetScoreError
from setscore.experiments import diagnosis
from setscore.experiments.diagnosis_pictures import draw_label_bias, draw_label_rates, draw_slot_bias
from setscore.experiments.pictures import check_plots
from setscore.prompts import Template
from setscore.records import FloatArray
from setscore.scorers import PerLabelScorer

DOCUMENTS = 100  # without --limit
MASS_DOCUMENTS = 20  # whose whole vocabulary is looked at


@options.grouped
def diagnose(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(help="A dataset (see `setscore datasets`).", show_default=False)
    ] = None,
    documents: options.Documents,
    own: options.Own,
    backbone: options.Backbone = "setscore-mini",
    against: Annotated[
        str | None, typer.Option(help="A second backbone for the same prompts, such as the base of an instruct one.")
    ] = None,
    template: options.Template = "express",
    templates: Annotated[
        str, typer.Option(help="More questions by name, separated by commas, to see what the wording changes.")
    ] = "article-about,comment-topic",
    attention: options.Attention = "auto",
    verbalizer: options.Verbalizer = "yes/no",
    orders: Annotated[int, typer.Option(min=2, help="Orders of the labels in the all-masked prompt.")] = 4,
    pictures: Annotated[Path | None, typer.Option(help="A folder for pictures (extra plots).")] = None,
) -> None:
    """Look for biases of slots, labels and wordings on labelled documents. All log-odds are raw, not calibrated.

    Slot bias: with all labels in one prompt, does a place say yes whichever label stands there? Per-label questions
    cannot have it. Label bias: what does a label's name alone say, for an empty document? Positive rates: how often is
    each label predicted, and how often is it gold? Wording: what do other questions change? And p(yes) + p(no), where
    the backbone offers it: does the model want to answer at all?

    Examples:

        setscore diagnose reuters --data-dir DATA --pictures pictures

        setscore diagnose --file labelled.csv --labels labels.yaml --limit 50

        setscore diagnose goemotions --backbone llada-8b-instruct --against llada-8b-base
    """
    if pictures is not None:
        check_plots()
    wordings = [template, *(part.strip() for part in templates.split(",") if part.strip())]
    for wording in wordings:
        Template.of(wording)
    model = load_backbone(backbone, attention=attention, verbalizer=verbalizer)
    dataset = _dataset(names, documents, own)
    title = f"{dataset.name}, {len(dataset)} documents, {len(dataset.labels)} labels, {backbone}"
    results.print(escape(title), style="bold")
    _slots(model, dataset, orders, pictures, title)
    _labels(model, dataset, Template.of(template), pictures, title)
    _wordings(model, dataset, wordings)
    _mass(model, dataset, Template.of(template))
    if against is not None:
        other = load_backbone(against, attention=attention, verbalizer=verbalizer)
        _probes([model, other], dataset, Template.of(template))
    for note in dataset.notes:
        remark(note)


def _dataset(names: list[str] | None, documents: options.Documents, own: options.Own) -> Dataset:
    if own.file is not None:
        if names:
            raise SetScoreError("--file stands alone: remove the names of datasets.")
        dataset = own.load()
    else:
        if names and len(names) > 1:
            raise SetScoreError(f"one dataset is diagnosed at a time, got {len(names)}.")
        ((_, load),) = documents.prepared(names, instead="--file FILE").items()
        parts = load().parts
        dataset = parts["pool"] if "pool" in parts else parts["test"]
    most = documents.limit or DOCUMENTS
    return dataset.head(most) if most < len(dataset) else dataset


def _slots(model: Backbone, dataset: Dataset, orders: int, pictures: Path | None, title: str) -> None:
    try:
        found = diagnosis.slot_bias(model, dataset.texts, dataset.labels, orders=orders)
    except SetScoreError as error:
        remark(f"slot bias is left out: {error}")
        return
    names = dataset.labels.names
    table = _table(
        "Slot bias of the all-masked prompt", "slot", "label", "log-odds", "positive", "all orders", "effect"
    )
    for slot, name in enumerate(names):
        cells = (found.mean[0, slot], 100 * found.rate[0, slot], 100 * found.rate[:, slot].mean(), found.effect[slot])
        table.add_row(
            str(slot + 1), escape(name), f"{cells[0]:.2f}", f"{cells[1]:.1f}%", f"{cells[2]:.1f}%", f"{cells[3]:+.2f}"
        )
    results.print(table)
    slot = found.strongest
    there, elsewhere = found.moved(slot)
    results.print(
        f"Slot {slot + 1} has the strongest effect, {found.effect[slot]:+.2f} log-odds; the spread over slots is"
        f" {found.spread:.2f}. Labels that visit it are positive in {100 * there:.1f}% there and"
        f" {100 * elsewhere:.1f}% elsewhere.",
        soft_wrap=True,
    )
    if pictures is not None:
        draw_slot_bias(pictures / f"{dataset.name}-slots.png", found, names, f"Slot bias\n{title}")


def _labels(model: Backbone, dataset: Dataset, template: Template, pictures: Path | None, title: str) -> None:
    empty = diagnosis.empty_document_bias(model, template, dataset.labels)
    scores = PerLabelScorer(template).score(model, dataset.texts, dataset.labels)
    if cut := int(scores.truncated.sum()):
        remark(f"{cut} of {len(dataset)} documents were truncated: only their beginning was read.")
    log_odds = scores.log_odds
    ways = {"log-odds > 0": log_odds > 0, "same count": log_odds >= _matched(log_odds, int(dataset.gold.sum()))}
    rates = {name: diagnosis.label_rates(dataset.gold, decided) for name, decided in ways.items()}
    names, (plain, matched) = dataset.labels.names, rates.values()
    table = _table("Labels, asked one by one", "label", "empty document", "positive", "same count", "gold")
    for i, name in enumerate(names):
        cells = [f"{100 * values[i]:.1f}%" for values in (plain.predicted, matched.predicted, plain.gold)]
        table.add_row(escape(name), f"{empty[i]:.2f}", *cells)
    results.print(table)
    results.print(
        f"Mean absolute difference from gold: {100 * plain.deviation:.2f}% at log-odds above 0,"
        f" {100 * matched.deviation:.2f}% with as many positives as gold labels.",
        soft_wrap=True,
    )
    if pictures is not None:
        draw_label_rates(
            pictures / f"{dataset.name}-rates.png",
            {"log-odds > 0": plain, "as many positives as gold": matched},
            names,
            f"Positive rates\n{title}",
        )
        draw_label_bias(pictures / f"{dataset.name}-labels.png", empty, names, f"Label bias\n{title}")


def _matched(log_odds: FloatArray, positives: int) -> float:
    """The global cut with as many positives as there are gold labels."""
    return float(np.sort(log_odds.ravel())[::-1][max(0, positives - 1)])


def _wordings(model: Backbone, dataset: Dataset, templates: list[str]) -> None:
    found = diagnosis.template_sensitivity(model, dataset.texts, dataset.labels, dataset.gold, templates)
    table = _table("Wording", "template", "log-odds", "positive", "flips", "rank correlation", "micro-F1", "macro-F1")
    for one in found:
        shares = [f"{100 * value:.1f}%" for value in (one.rate, one.flips)]
        f1 = [f"{100 * value:.1f}" for value in (one.micro_f1, one.macro_f1)]
        table.add_row(escape(one.template), f"{one.mean:.2f}", *shares, f"{one.correlation:.3f}", *f1)
    results.print(table)


def _mass(model: Backbone, dataset: Dataset, template: Template) -> None:
    mass = diagnosis.answer_mass(model, template, dataset.texts[:MASS_DOCUMENTS], dataset.labels.labels)
    if mass is None:
        remark(f"p(yes) + p(no) is left out: {model.spec.name} reads only the two answers.")
    else:
        results.print(f"p(yes) + p(no): {mass.mean():.4f} on average, {mass.min():.4f} at least.")


def _probes(models: list[Backbone], dataset: Dataset, template: Template) -> None:
    found = [diagnosis.probe(one, dataset.texts, dataset.labels, dataset.gold, template) for one in models]
    table = _table("The same prompts", "backbone", "|log-odds|", "separation", "yes + no", "slot spread", "first slot")
    for one in found:
        mass = "" if one.mass is None else f"{one.mass:.3f}"
        spread = "" if one.slot_spread is None else f"{one.slot_spread:.2f}"
        first = "" if one.first_slot is None else f"{100 * one.first_slot:.1f}%"
        table.add_row(escape(one.backbone), f"{one.sharpness:.2f}", f"{one.separation:.2f}", mass, spread, first)
    results.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in ("label", "template", "backbone") else "right")
    return table
