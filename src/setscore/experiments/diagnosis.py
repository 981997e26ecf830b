"""What may be wrong with a backbone, a wording or a label, measured on one's own documents.

Log-odds here are raw, before any calibration; "positive" means above 0. Gold labels are None where there are none: then
what needs them is None as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setscore.backbones import Backbone, MassReader
from setscore.errors import SetScoreError
from setscore.experiments.attention import rank_correlation
from setscore.metrics import decision_metrics
from setscore.prompts import Template
from setscore.records import BoolArray, FloatArray, LabelSet, Progress
from setscore.scorers import PerLabelScorer, Reading
from setscore.scorers.per_label import document_room, split_document
from setscore.scorers.unary import UnaryScorer

MASS_DOCUMENTS = 20  # whose whole vocabulary is looked at
ABOVE, MATCHED = "log-odds > 0", "as many positives as gold"


def _told(progress: Progress | None, what: str, total: int, before: int = 0) -> Progress | None:
    """For a scorer's progress: the same under another name, after `before` documents of `total`."""
    if progress is None:
        return None
    progress(what, before, total)
    return lambda _, done, __: progress(what, before + done, total)


@dataclass(frozen=True)
class SlotBias:
    """What a place in the all-masked suffix does to whichever label stands there (the paper's Figure 2).

    orders         [P, m] the label at each slot; the first is the given order, the others are turned by a step
    mean, rate     [P, m] by slot: mean log-odds and share of positives over the documents
    effect         [m] by slot: what the slot adds to log-odds, beyond what its labels have elsewhere; adds up to 0
    label_effect   [m] by label: its mean log-odds without the slots' effects
    """

    orders: np.ndarray
    mean: FloatArray
    rate: FloatArray
    effect: FloatArray
    label_effect: FloatArray

    @property
    def spread(self) -> float:
        """Between the highest and the lowest effect of a slot; 0 for a scorer that does not know places."""
        return float(np.ptp(self.effect))

    @property
    def label_spread(self) -> float:
        """The same between labels, the slots' effects taken away: what the prompt knows of the labels themselves."""
        return float(np.ptp(self.label_effect))

    @property
    def strongest(self) -> int:
        return int(np.argmax(np.abs(self.effect)))

    def moved(self, slot: int) -> tuple[float, float]:
        """Mean share of positives of the labels that visit a slot: while they stand there, and while they do not."""
        there = self.rate[:, slot].mean()
        visitors = set(self.orders[:, slot].tolist())
        elsewhere = np.isin(self.orders, list(visitors))
        elsewhere[:, slot] = False
        return float(there), float(self.rate[elsewhere].mean()) if elsewhere.any() else float("nan")


def slot_bias(
    backbone: Backbone,
    texts: Sequence[str],
    labels: LabelSet,
    *,
    orders: int = 4,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> SlotBias:
    """The all-masked suffix in several orders: if positives stay at a slot while labels move, the slot is biased.

    Orders are turns of the given one, so that labels visit different slots; with as many orders as labels each label
    visits each slot once. Slot and label effects are separated by least squares. One turn is by a single place: else
    slots and labels could fall into groups that never meet, and their effects could not be told apart.
    """
    m = len(labels)
    if m < 2 or orders < 2:
        raise SetScoreError(f"slot bias needs at least 2 labels and 2 orders, got {m} and {orders}.")
    steps = sorted({1, *(round(number * m / min(orders, m)) for number in range(min(orders, m)) if number != 1)})
    turned = np.array([np.roll(np.arange(m), step) for step in steps])
    scorer = UnaryScorer(reading=reading or Reading())
    what, total = f"all labels in one prompt, {len(turned)} orders", len(turned) * len(texts)
    found = []
    for number, order in enumerate(turned):
        told = _told(progress, what, total, number * len(texts))
        inventory = LabelSet(tuple(labels.labels[i] for i in order), labels.label_text)
        found.append(scorer.score(backbone, texts, inventory, progress=told).log_odds)
    mean, rate = (np.array([part.mean(axis=0) for part in parts]) for parts in (found, [u > 0 for u in found]))
    effect, label_effect = _effects(turned, mean)
    return SlotBias(turned, mean, rate, effect, label_effect)


def _effects(orders: np.ndarray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least squares of mean[p, slot] = effect[slot] + label_effect[orders[p, slot]], effects adding up to 0."""
    m = orders.shape[1]
    rows = np.arange(orders.size)
    design = np.zeros((orders.size, 2 * m))
    design[rows, np.tile(np.arange(m), len(orders))] = 1
    design[rows, m + orders.ravel()] = 1
    solution = np.linalg.lstsq(design, mean.ravel(), rcond=None)[0]
    effect = solution[:m]
    return effect - effect.mean(), solution[m:] + effect.mean()


@dataclass(frozen=True)
class LabelRates:
    """How often each label is predicted and gold [m] (the paper's figure for Reuters)."""

    predicted: FloatArray
    gold: FloatArray | None

    @property
    def deviation(self) -> float | None:
        """The mean absolute difference."""
        return None if self.gold is None else float(np.abs(self.predicted - self.gold).mean())


def label_rates(gold: BoolArray | None, decided: BoolArray) -> LabelRates:
    """How often each label is predicted and, where that is known, how often it is gold."""
    return LabelRates(decided.mean(axis=0), None if gold is None else gold.mean(axis=0))


def empty_document_bias(backbone: Backbone, template: Template, labels: LabelSet) -> FloatArray:
    """Log-odds [m] of each label for an empty document: what its words alone make the model say."""
    answers = backbone.log_odds([template.query("", text) for text in labels.texts])
    return np.array([float(answer[0]) for answer in answers])


def answer_mass(
    backbone: Backbone, template: Template, texts: Sequence[str], asked: Sequence[str]
) -> FloatArray | None:
    """p(yes) + p(no) [n, m] over the whole vocabulary, where a backbone offers it; long texts are cut.

    `asked` is what the questions say of the labels.
    """
    if not isinstance(backbone, MassReader):
        return None
    reading = Reading()
    empty = [template.query("", label) for label in asked]
    room = document_room(backbone, empty, reading.max_document_tokens)
    begun = [split_document(backbone, text, room=room, overlap=reading.overlap)[0] for text in texts]
    queries = [template.query(text, label) for text in begun for label in asked]
    found = [float(mass[0]) for mass in backbone.answer_mass(queries)]
    return np.array(found).reshape(len(texts), len(asked))


@dataclass(frozen=True)
class Wording:
    """One template beside the first: raw log-odds, decisions that flip, rank correlation, F1 at log-odds above 0."""

    template: str
    mean: float
    rate: float
    flips: float
    correlation: float
    micro_f1: float | None
    macro_f1: float | None


def wordings_of(templates: Sequence[str], log_odds: Sequence[FloatArray], gold: BoolArray | None) -> list[Wording]:
    """Log-odds [n, m] by template; the first is what the others are compared with."""
    made = []
    for name, u in zip(templates, log_odds, strict=True):
        f1 = {} if gold is None else decision_metrics(gold, u > 0)
        flips = float(((u > 0) != (log_odds[0] > 0)).mean())
        same = rank_correlation(log_odds[0], u)
        rate = float((u > 0).mean())
        made.append(Wording(name, float(u.mean()), rate, flips, same, f1.get("micro_f1"), f1.get("macro_f1")))
    return made


@dataclass(frozen=True)
class Probe:
    """One backbone on the prompts that others get too: are its answers sharper, or its slots less biased?

    sharpness    mean |log-odds| of per-label questions
    separation   mean log-odds of gold pairs minus that of the others; None without both
    mass         mean p(yes) + p(no), None where the backbone does not offer it
    slot_spread  of `SlotBias`, None where there is no slot bias to measure: one label, or too many for one prompt
    first_slot   share of positives at the first slot of the all-masked suffix, over orders; None likewise
    """

    backbone: str
    sharpness: float
    separation: float | None
    mass: float | None
    slot_spread: float | None
    first_slot: float | None


def probe(
    name: str, log_odds: FloatArray, gold: BoolArray | None, mass: FloatArray | None, slots: SlotBias | None
) -> Probe:
    """What was measured of one backbone, for a base and an instruct checkpoint side by side."""
    both = gold is not None and gold.any() and not gold.all()
    return Probe(
        name,
        sharpness=float(np.abs(log_odds).mean()),
        separation=float(log_odds[gold].mean() - log_odds[~gold].mean()) if gold is not None and both else None,
        mass=None if mass is None else float(mass.mean()),
        slot_spread=None if slots is None else slots.spread,
        first_slot=None if slots is None else float(slots.rate[:, 0].mean()),
    )


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Everything that is asked of one backbone.

    slots      None where there is no slot bias to measure; `no_slots` says why
    empty      [m] log-odds for an empty document
    log_odds   [n, m] of the per-label questions; `truncated` documents were read in part
    wordings   the template first, then others
    mass       [n, m] of the first documents, None where the backbone does not offer it
    """

    name: str
    slots: SlotBias | None
    no_slots: str
    empty: FloatArray
    log_odds: FloatArray
    truncated: int
    wordings: tuple[Wording, ...]
    mass: FloatArray | None
    gold: BoolArray | None

    @property
    def probe(self) -> Probe:
        return probe(self.name, self.log_odds, self.gold, self.mass, self.slots)

    @property
    def rates(self) -> dict[str, LabelRates]:
        """By the way of deciding: at log-odds above 0, and with one cut for as many positives as gold labels."""
        ways = {ABOVE: self.log_odds > 0}
        if self.gold is not None:
            count = max(1, int(self.gold.sum()))
            ways[MATCHED] = self.log_odds >= np.sort(self.log_odds, axis=None)[::-1][count - 1]
        return {name: label_rates(self.gold, decided) for name, decided in ways.items()}


def diagnose(
    backbone: Backbone,
    texts: Sequence[str],
    labels: LabelSet,
    gold: BoolArray | None,
    templates: Sequence[str],
    *,
    name: str = "",
    orders: int = 4,
    progress: Progress | None = None,
) -> Diagnosis:
    """All of it for one backbone; `templates` begin with the one in use."""
    slots, problem = None, ""
    try:
        slots = slot_bias(backbone, texts, labels, orders=orders, progress=progress)
    except SetScoreError as error:
        problem = str(error)
    template = Template.of(templates[0])
    done = _told(progress, f"label by label, {templates[0]}", len(texts))
    scores = PerLabelScorer(template).score(backbone, texts, labels, progress=done)
    others = []
    for other in templates[1:]:
        done = _told(progress, f"label by label, {other}", len(texts))
        others.append(PerLabelScorer(Template.of(other)).score(backbone, texts, labels, progress=done).log_odds)
    return Diagnosis(
        name or backbone.spec.name,
        slots,
        problem,
        empty_document_bias(backbone, template, labels),
        scores.log_odds,
        int(scores.truncated.sum()),
        tuple(wordings_of(templates, [scores.log_odds, *others], gold)),
        answer_mass(backbone, template, texts[:MASS_DOCUMENTS], labels.texts),
        gold,
    )
