"""What a diagnosis found, in plain words: one paragraph, a sentence for each thing that was looked at."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from setscore.backbones import BackboneSpec
from setscore.errors import counted, plural
from setscore.experiments.diagnosis import MATCHED, Diagnosis, Probe, SlotBias
from setscore.records import LabelSet

# Where a sentence changes its mind. A log-odds of 1 turns an even chance into 73%.
STRONG_SLOT = 1.0  # log-odds between the highest and the lowest slot,
STRONG_MOVE = 0.1  # or a share of positives that a slot adds
MANY = 1.5  # times as many positives as gold labels
LITTLE_MASS = 0.5
MANY_FLIPS = 0.05
NEARLY_ALL = 0.9  # of the documents,
NEAR_EVEN = 0.1  # or so little between a probability and 0.5, whatever the document;
LEAST_DOCUMENTS = 5  # with fewer, either may be chance
MOST_NAMED = 5  # labels in one sentence


def in_words(found: Diagnosis, labels: LabelSet, other: Diagnosis | None = None) -> str:
    """The summary of one backbone, and what sets it apart from another one."""
    sentences = [_level(found), *_silent(found, labels), *_eager(found, labels), *_even(found, labels)]
    sentences += [*_labels(found, labels), _slots(found), *_wording(found), _mass(found)]
    if other is not None:
        sentences.append(beside(found.probe, other.probe))
    return " ".join(sentences)


def without_competition(spec: BackboneSpec) -> str:
    """What sets these numbers apart from those of a classifier before `fit`."""
    added = f"({spec.competition:g} with {spec.name}; `classify --competition 0` leaves it out)"
    if not spec.competition:
        added = f"(with {spec.name} none unless --competition asks for it)"
    return f"Numbers here are without competition between labels, which `classify` adds before `fit` {added}."


def _level(found: Diagnosis) -> str:
    positives = (found.log_odds > 0).sum(axis=1).mean()
    said = f"With nothing calibrated, log-odds above 0, {found.name} says yes to {positives:.1f} labels a document"
    if found.gold is None:
        return f"{said}; without gold labels it is not known whether that is right."
    gold = found.gold.sum(axis=1).mean()
    if positives > MANY * gold:
        return f"{said} where {gold:.1f} are gold: too often, so calibrate before you decide."
    if gold > MANY * positives:
        return f"{said} where {gold:.1f} are gold: too rarely, so calibrate before you decide."
    return f"{said} where {gold:.1f} are gold."


def _silent(found: Diagnosis, labels: LabelSet) -> list[str]:
    """The labels that say yes to no document, those furthest from yes first: their words may mean nothing."""
    highest = found.log_odds.max(axis=0)
    silent = [int(i) for i in np.argsort(highest, kind="stable") if highest[i] <= 0]
    if not silent:
        return []
    none = f"yes to none of {counted(len(found.log_odds), 'document')}"
    shown = [(repr(labels.names[i]), f"{expit(highest[i]):.2f}") for i in silent]
    if len(silent) == 1:
        ((name, probability),) = shown
        return [f"{name} says {none}; its highest probability is {probability}."]
    listed = _listed([f"{name} ({probability})" for name, probability in shown])
    return [f"{len(silent)} labels say {none}, in brackets the highest probability of each: {listed}."]


def _eager(found: Diagnosis, labels: LabelSet) -> list[str]:
    """The labels that say yes to nearly every document and are not gold that often, the most frequent first."""
    documents = len(found.log_odds)
    if documents < LEAST_DOCUMENTS:
        return []
    yes = (found.log_odds > 0).sum(axis=0)
    gold = np.zeros_like(yes) if found.gold is None else found.gold.sum(axis=0)
    eager = [int(i) for i in np.argsort(-yes, kind="stable") if yes[i] >= NEARLY_ALL * documents > gold[i]]
    if not eager:
        return []
    known = [f"{yes[i]} of {documents}" + ("" if found.gold is None else f", gold {gold[i]}") for i in eager]
    listed = _listed([f"{labels.names[i]!r} ({told})" for i, told in zip(eager, known, strict=True)])
    says = f"{counted(len(eager), 'label')} {plural(len(eager), 'says', 'say')}"
    return [f"{says} yes to nearly every document: {listed}."]


def _even(found: Diagnosis, labels: LabelSet) -> list[str]:
    """The labels that no document moves away from 0.5: neither a yes nor a no of theirs means much."""
    if len(found.log_odds) < LEAST_DOCUMENTS:
        return []
    lowest, highest = (expit(edge) for edge in (found.log_odds.min(axis=0), found.log_odds.max(axis=0)))
    even = np.flatnonzero((lowest >= 0.5 - NEAR_EVEN) & (highest <= 0.5 + NEAR_EVEN)).tolist()
    if not even:
        return []
    listed = _listed([f"{labels.names[i]!r} ({lowest[i]:.2f} to {highest[i]:.2f})" for i in even])
    has = f"{counted(len(even), 'label')} {plural(len(even), 'has', 'have')}"
    return [f"{has} a probability near 0.5 whatever the document, so neither yes nor no means much: {listed}."]


def _listed(told: Sequence[str]) -> str:
    """The first labels, and how many more there are."""
    return ", ".join(told[:MOST_NAMED]) + (f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else "")


def _labels(found: Diagnosis, labels: LabelSet) -> list[str]:
    names, empty = labels.names, found.empty
    top = int(np.argmax(empty))
    made = [
        f"Without a document to read, {names[top]!r} comes nearest to yes: log-odds {empty[top]:+.1f}, against"
        f" {np.median(empty):+.1f} for the label in the middle."
    ]
    rates = found.rates.get(MATCHED)
    if rates is not None and rates.gold is not None:
        error = rates.predicted - rates.gold
        worst = int(np.argmax(np.abs(error)))
        said, gold = (f"{100 * rate[worst]:.0f}%" for rate in (rates.predicted, rates.gold))
        if said != gold:
            way = "too often" if error[worst] > 0 else "too rarely"
            made.append(
                f"If as many labels were given as are gold, {names[worst]!r} would be given {way}: {said} of documents,"
                f" gold {gold}."
            )
    return made


def strong(slots: SlotBias) -> bool:
    """Whether a slot's place decides: by log-odds, or by positives that stay there while labels move."""
    there, elsewhere = slots.moved(slots.strongest)
    return slots.spread >= STRONG_SLOT or abs(there - elsewhere) >= STRONG_MOVE


def _slots(found: Diagnosis) -> str:
    slots = found.slots
    if slots is None:
        return "Slot bias was not measured."
    slot = slots.strongest
    if not strong(slots) and slots.spread > slots.label_spread:
        return (
            f"With all labels in one prompt the answers follow the place more than the label: slots differ by"
            f" {slots.spread:.2f} log-odds, labels by {slots.label_spread:.2f}. It turns few decisions, but ask label"
            " by label."
        )
    if not strong(slots):
        return (
            f"With all labels in one prompt no place stands out: slots differ by {slots.spread:.2f} log-odds at most."
        )
    there, elsewhere = slots.moved(slot)
    return (
        f"With all labels in one prompt the place counts: slot {slot + 1} adds {slots.effect[slot]:+.1f} log-odds to"
        f" whichever label stands there ({100 * there:.0f}% positive, {100 * elsewhere:.0f}% elsewhere), so ask label"
        " by label."
    )


def _wording(found: Diagnosis) -> list[str]:
    first, *others = found.wordings
    if not others:
        return []
    most = max(others, key=lambda one: one.flips)
    verb = "matters" if most.flips >= MANY_FLIPS else "matters little"
    made = [f"How the question is put {verb}: {most.template!r} flips {100 * most.flips:.1f}% of the decisions."]
    best = max(found.wordings, key=lambda one: one.micro_f1 or 0.0)
    if best is not first and best.micro_f1 is not None and first.micro_f1 is not None:
        made.append(
            f"{best.template!r} has the best micro-F1 at log-odds above 0, {100 * best.micro_f1:.1f} against"
            f" {100 * first.micro_f1:.1f}."
        )
    return made


def _mass(found: Diagnosis) -> str:
    if found.mass is None:
        return "How much of its vocabulary the two answers are is not known: it reads only them."
    mass = float(found.mass.mean())
    if mass < LITTLE_MASS:
        return (
            f"The two answers together have only {100 * mass:.0f}% of the probability: the model would rather say"
            " something else, so try another verbalizer or its chat template."
        )
    return f"The two answers together have {100 * mass:.0f}% of the probability."


def beside(one: Probe, other: Probe) -> str:
    """The paper's open question about base and instruct checkpoints: sharper answers, or calmer slots?"""
    sharper, duller = (one, other) if one.sharpness >= other.sharpness else (other, one)
    said = (
        f"On the same prompts {sharper.backbone} is the sharper one (|log-odds| {sharper.sharpness:.2f} against"
        f" {duller.sharpness:.2f})"
    )
    if one.separation is not None and other.separation is not None:
        ahead, behind = (one, other) if one.separation >= other.separation else (other, one)
        said += (
            f"; {ahead.backbone} parts gold from other labels better ({ahead.separation:.2f}, {behind.separation:.2f})"
        )
    if one.slot_spread is not None and other.slot_spread is not None:
        calm, rough = (one, other) if one.slot_spread <= other.slot_spread else (other, one)
        said += f"; {calm.backbone} has the calmer slots ({calm.slot_spread:.2f} log-odds, {rough.slot_spread:.2f})"
    return said + "."
