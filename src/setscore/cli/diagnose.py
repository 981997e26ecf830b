"""`setscore diagnose`: what may be wrong with a backbone, a wording or a label, on one's own documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from setscore.backbones import Backbone, load_backbone
from setscore.backbones.specs import DEFAULT_MODEL
from setscore.cli import options
from setscore.cli.console import literal, progress, remark, results, watch_steps
from setscore.datasets import Columns
from setscore.datasets.own import has_gold
from setscore.datasets.wordings import read_wordings
from setscore.errors import SetScoreError, counted, truncation
from setscore.experiments import diagnosis
from setscore.experiments.diagnosis import Diagnosis, Probe
from setscore.experiments.diagnosis_pictures import draw_label_bias, draw_label_rates, draw_slot_bias
from setscore.experiments.diagnosis_words import in_words, without_competition
from setscore.experiments.pictures import check_plots
from setscore.experiments.wordings import compare_wordings
from setscore.prompts import Template
from setscore.records import BoolArray, LabelSet

DOCUMENTS = 100  # without --limit
NOT_WITH_WORDINGS = ("against", "templates", "orders", "pictures")
ALONE = "Each question counts alone, without competition; yes: documents with a probability of 0.5 or more."
AVERAGE_PRECISION = (
    " Average precision, in percent like F1: how well documents with the label come before the others, wherever a"
    " threshold lies. With few documents, small differences are chance."
)


@dataclass(frozen=True, eq=False)
class Material:
    """What is looked at; gold is None where the documents have no labels."""

    name: str
    texts: Sequence[str]
    labels: LabelSet
    gold: BoolArray | None
    notes: Sequence[str] = ()


@options.grouped
def diagnose(
    *,
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(help="A dataset (see `setscore datasets`).", show_default=False)
    ] = None,
    documents: options.Documents,
    own: options.Own,
    backbone: options.Backbone = DEFAULT_MODEL,
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
    wordings: Annotated[
        Path | None,
        typer.Option(
            help="Compare wordings instead: a .yaml or .json file with lists of descriptions by label.",
            show_default=False,
        ),
    ] = None,
    pictures: Annotated[Path | None, typer.Option(help="A folder for pictures (extra plots).")] = None,
) -> None:
    """Look for biases of slots, labels and wordings, and say first what was found.

    Log-odds are raw: not calibrated, and without competition between labels.

    Documents need no gold labels, so --file may be a .txt with one a line; what needs them is left out then.
    Slot bias: with all labels in one prompt, does a place say yes whichever label stands there? Per-label questions
    cannot have it. Label bias: what does a label's name alone say, for an empty document? Positive rates: how often is
    each label predicted, and how often is it gold? Wording: what do other questions change? And p(yes) + p(no), where
    the backbone offers it: does the model want to answer at all? With --against, a second one gets the same prompts.
    With --wordings there is one table instead: how well each description of a label, its name alone and the one in use
    tell your labelled documents apart.

    Examples:

        setscore diagnose reuters --data-dir DATA --pictures pictures

        setscore diagnose --file documents.txt --labels labels.yaml --limit 50

        setscore diagnose --file labelled.csv --labels labels.yaml --wordings wordings.yaml

        setscore diagnose goemotions --backbone llada-8b-instruct --against llada-8b-base
    """
    if wordings is not None:
        if named := options.given(context, NOT_WITH_WORDINGS):
            raise SetScoreError(f"--wordings prints one table of its own; remove {', '.join(named)} or --wordings.")
        material, question = _material(names, documents, own, None), Template.of(template)
        given = read_wordings(wordings, material.labels)
        model = load_backbone(backbone, attention=attention, verbalizer=verbalizer)
        _compare_wordings(model, question, material, given, name=backbone)
        return
    if pictures is not None:
        check_plots()
    questions = list(dict.fromkeys([template, *(part.strip() for part in templates.split(",") if part.strip())]))
    for one in questions:
        Template.of(one)
    loaded = {
        name: load_backbone(name, attention=attention, verbalizer=verbalizer) for name in _names(backbone, against)
    }
    material = _material(names, documents, own, DOCUMENTS)
    found = []
    with progress() as bar:
        for number, (name, model) in enumerate(loaded.items()):
            asked = questions if number == 0 else questions[:1]
            told = watch_steps(bar, f"{name}: ", "document")
            parts = (material.texts, material.labels, material.gold, asked)
            found.append(diagnosis.diagnose(model, *parts, name=name, orders=orders, progress=told))
    first = found[0]
    sizes = f"{counted(len(material.texts), 'document')}, {counted(len(material.labels), 'label')}"
    title = f"{material.name}, {sizes}, {backbone}"
    results.print(literal(title), style="bold")
    results.print(literal(in_words(first, material.labels, found[1] if against else None)), soft_wrap=True)
    results.print(literal(without_competition(loaded[backbone].spec)), soft_wrap=True)
    _show_slots(first, material.labels)
    _show_labels(first, material.labels)
    _show_wordings(first)
    if first.mass is not None:
        results.print(f"\np(yes) + p(no): {first.mass.mean():.4f} on average, {first.mass.min():.4f} at least.")
    if against is not None:
        _show_probes([one.probe for one in found])
    _remarks(first, material)
    if pictures is not None:
        _draw(first, material, pictures, title)


def _names(backbone: str, against: str | None) -> list[str]:
    if backbone == against:
        raise SetScoreError(f"--against is {against}, the backbone itself. Name another one to compare it with.")
    return [backbone] if against is None else [backbone, against]


def _material(names: list[str] | None, documents: options.Documents, own: options.Own, usual: int | None) -> Material:
    """The documents: as many as --limit says, or else as usual."""
    most = documents.limit or usual
    if own.file is not None:
        if names:
            raise SetScoreError("--file stands alone: remove the names of datasets.")
        named = own.labels_column != options.Own.labels_column  # who names a column wants it to be there
        if not named and not has_gold(own.file, own.text_column, own.labels_column):
            return _without_gold(own, most)
        dataset = own.load()
    else:
        if names and len(names) > 1:
            raise SetScoreError(f"one dataset is diagnosed at a time, got {len(names)}.")
        ((_, load),) = own.worded(documents.prepared(names, instead="--file FILE")).items()
        parts = load().parts
        dataset = parts["pool"] if "pool" in parts else parts["test"]
    dataset = dataset.head(most) if most is not None and most < len(dataset) else dataset
    return Material(dataset.name, dataset.texts, dataset.labels, dataset.gold, dataset.notes)


def _without_gold(own: options.Own, most: int | None) -> Material:
    """The first documents of a file without gold labels."""
    if own.file is None or own.labels is None:
        raise SetScoreError("--file needs the inventory of labels as well. Add --labels FILE.")
    texts, notes = options.read_texts(own.file, Columns(own.text_column, own.id_column), most)
    return Material(own.file.name, texts, own.inventory(), None, notes)


def _compare_wordings(
    model: Backbone, template: Template, material: Material, given: Mapping[str, Sequence[str]], *, name: str
) -> None:
    with progress() as bar:
        told = watch_steps(bar, f"{name}: ", "document")
        parts = (material.texts, material.labels, material.gold)
        found, truncated = compare_wordings(model, template, *parts, wordings=given, progress=told)
    results.print(literal(f"{material.name}, {counted(len(material.texts), 'document')}, {name}"), style="bold")
    gold = () if material.gold is None else ("gold", "F1 at 0.5", "average precision")
    table = _table("Wordings, the one in use first", "label", "wording", "yes", *gold)
    for number, one in enumerate(found):
        first = number == 0 or found[number - 1].label != one.label
        counts = [str(value) for value in (one.yes, one.gold) if value is not None]
        shares = [f"{100 * value:.1f}" for value in (one.f1, one.average_precision) if value is not None]
        table.add_row(literal(one.label) if first else "", literal(one.text), *counts, *shares)
    results.print(table)
    results.print(f"\n{ALONE}{AVERAGE_PRECISION if gold else ''}", style="dim")
    _remark_material(material, truncated)


def _show_slots(found: Diagnosis, labels: LabelSet) -> None:
    slots = found.slots
    if slots is None:
        return
    table = _table(
        "Slot bias of the all-masked prompt", "slot", "label", "log-odds", "positive", "all orders", "effect"
    )
    for slot, name in enumerate(labels.names):
        cells = (slots.mean[0, slot], 100 * slots.rate[0, slot], 100 * slots.rate[:, slot].mean(), slots.effect[slot])
        table.add_row(
            str(slot + 1), literal(name), f"{cells[0]:.2f}", f"{cells[1]:.1f}%", f"{cells[2]:.1f}%", f"{cells[3]:+.2f}"
        )
    results.print(table)
    slot = slots.strongest
    there, elsewhere = slots.moved(slot)
    results.print(
        f"Slot {slot + 1} has the strongest effect, {slots.effect[slot]:+.2f} log-odds; the spread over slots is"
        f" {slots.spread:.2f}, over labels {slots.label_spread:.2f}. Labels that visit it are positive in"
        f" {100 * there:.1f}% there and {100 * elsewhere:.1f}% elsewhere.",
        soft_wrap=True,
    )


def _show_labels(found: Diagnosis, labels: LabelSet) -> None:
    rates = found.rates
    plain, matched = rates[diagnosis.ABOVE], rates.get(diagnosis.MATCHED)
    columns = {"positive": plain.predicted}
    if matched is not None and plain.gold is not None:
        columns |= {"same count": matched.predicted, "gold": plain.gold}
    table = _table("Labels, asked one by one", "label", "empty document", *columns)
    for i, name in enumerate(labels.names):
        table.add_row(
            literal(name), f"{found.empty[i]:.2f}", *(f"{100 * column[i]:.1f}%" for column in columns.values())
        )
    results.print(table)
    if matched is not None:
        results.print(
            f"Mean absolute difference from gold: {100 * (plain.deviation or 0):.2f}% at log-odds above 0,"
            f" {100 * (matched.deviation or 0):.2f}% with as many positives as gold labels.",
            soft_wrap=True,
        )


def _show_wordings(found: Diagnosis) -> None:
    f1 = () if found.gold is None else ("micro-F1", "macro-F1")
    table = _table("Wording", "template", "log-odds", "positive", "flips", "rank correlation", *f1)
    for one in found.wordings:
        shares = [f"{100 * value:.1f}%" for value in (one.rate, one.flips)]
        scores = [f"{100 * value:.1f}" for value in (one.micro_f1, one.macro_f1) if value is not None]
        table.add_row(literal(one.template), f"{one.mean:.2f}", *shares, f"{one.correlation:.3f}", *scores)
    results.print(table)


def _show_probes(found: Sequence[Probe]) -> None:
    table = _table("The same prompts", "backbone", "|log-odds|", "separation", "yes + no", "slot spread", "first slot")
    for one in found:
        separation = "" if one.separation is None else f"{one.separation:.2f}"
        mass = "" if one.mass is None else f"{one.mass:.3f}"
        spread = "" if one.slot_spread is None else f"{one.slot_spread:.2f}"
        first = "" if one.first_slot is None else f"{100 * one.first_slot:.1f}%"
        table.add_row(literal(one.backbone), f"{one.sharpness:.2f}", separation, mass, spread, first)
    results.print(table)


def _remarks(found: Diagnosis, material: Material) -> None:
    """What was left out or cut, on standard error."""
    if material.gold is None:
        remark("without gold labels: rates beside gold, F1 of wordings and the separation of backbones are left out.")
    if found.slots is None:
        remark(f"slot bias is left out: {found.no_slots}")
    if found.mass is None:
        remark(f"p(yes) + p(no) is left out: {found.name} reads only the two answers.")
    _remark_material(material, found.truncated)


def _remark_material(material: Material, truncated: int) -> None:
    if truncated:
        remark(truncation(truncated, len(material.texts)))
    for note in material.notes:
        remark(note)


def _draw(found: Diagnosis, material: Material, folder: Path, title: str) -> None:
    names = material.labels.names
    if found.slots is not None:
        draw_slot_bias(folder / f"{material.name}-slots.png", found.slots, names, f"Slot bias\n{title}")
    draw_label_rates(folder / f"{material.name}-rates.png", found.rates, names, f"Positive rates\n{title}")
    draw_label_bias(folder / f"{material.name}-labels.png", found.empty, names, f"Label bias\n{title}")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in ("label", "wording", "template", "backbone") else "right")
    return table
