"""What labelled documents taught a classifier: measured on documents that it had not seen, as a curve, and in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setscore import fitting
from setscore.backbones import embed_documents, load_backbone
from setscore.calibration.base import assign_folds
from setscore.classifier import SetScoreClassifier
from setscore.errors import SetScoreError, counted
from setscore.experiments.evaluation import changed
from setscore.experiments.pictures import new_figure, save_figure
from setscore.experiments.scored import Kind, Outcome, Scored, measure_model
from setscore.fitting import Aim, Fitted, Known
from setscore.metrics import decision_metrics
from setscore.predictions import LEARNED
from setscore.records import BoolArray, FloatArray, IntArray, LabelSet

FEW_EXAMPLES = 5  # below which what a label learned is not to be trusted
DRAWS, SEED = 3, 13
LEAST_CURVE = 20  # documents from which a curve can be drawn
LEAST_TOLD = 50  # documents from which its last step is more than noise, and is told in words
SHOWN = 12  # labels that a line names
CALIBRATED_ONLY, HONEST = "calibration only, cross-validated", "learned, cross-validated"
CHOICES = {
    "levelled": "how often each label applies, and how high the other labels of a document stand, were fitted",
    "platt": "how often each label applies was fitted",
    "shrunk": "a threshold for each label was fitted, held near the common one",
    "temperature": "one temperature and one threshold for all labels were fitted",
    "unfitted": "nothing could be learned from these documents: everything is as before",
}


@dataclass(frozen=True)
class Point:
    """Micro and macro F1 of fits on so many documents, measured on the others: means over draws."""

    documents: int
    micro_f1: float
    macro_f1: float


@dataclass(frozen=True, eq=False)
class Learner:
    """What `fit` needs beside scores, vectors and gold labels: the vectors [m, d] of the labels' texts, and its aim."""

    labels: FloatArray
    aim: Aim

    @classmethod
    def of(cls, classifier: SetScoreClassifier, labels: LabelSet, kind: Kind) -> "Learner":
        """What `classifier` would learn for these labels with the calibration `kind`."""
        model = changed(classifier, labels=labels, calibration=kind)
        backbone = load_backbone(model.backbone, attention=model.attention, verbalizer=model.verbalizer)
        return cls(embed_documents(backbone, labels.texts), model.aim())


def learned(validation: Scored, test: Scored, learner: Learner) -> Outcome:
    """What `fit` learns from `validation`, measured on `test`; both come with vectors."""
    both = [validation, test]
    if any(one.vectors is None for one in both):
        raise SetScoreError("a read-out learns from vectors, and these scores have none: score with embed=True.")
    known = [Known({fitting.MODEL: one.log_odds}, one.gold, np.asarray(one.vectors)) for one in both]
    everything = known[0].and_more(known[1])
    rows, asked = np.split(np.arange(len(everything)), [len(validation)])
    probabilities, decisions = answers(everything, learner.labels, learner.aim, rows, asked)
    choice = f"a read-out learned from {counted(len(validation), 'document')}"
    return measure_model(LEARNED, choice, test, decisions=decisions, probabilities=probabilities, undecided=None)


def answers(
    known: Known, labels: FloatArray, aim: Aim, rows: IntArray, asked: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Probabilities and decisions [n, m] for the documents `asked` of a fit on those at `rows`."""
    calibration, blend, readout = fitting.conclude(known.take(rows), labels, aim)
    others = known.take(asked)
    log_odds = fitting.mixed(others.members, blend)
    if readout is not None:
        log_odds = readout.log_odds(log_odds, others.vectors)
    return calibration.decide(log_odds)


def cross_validated_fit(scored: Scored, known: Known, labels: FloatArray, aim: Aim) -> Outcome:
    """The whole fit, measured on documents that it has not seen, over five folds."""
    fold = assign_folds(len(known))
    decisions, probabilities = np.zeros(known.gold.shape, dtype=np.bool_), np.zeros(known.gold.shape)
    for number in range(fold.max() + 1):
        rows, asked = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        probabilities[asked], decisions[asked] = answers(known, labels, aim, rows, asked)
    choice = f"cross-validated over {fold.max() + 1} folds"
    return measure_model(LEARNED, choice, scored, decisions=decisions, probabilities=probabilities, undecided=None)


def learning_curve(known: Known, labels: FloatArray, aim: Aim) -> list[Point]:
    """Fits on 5, 10, 20, .. documents up to three quarters of them, each on three draws; none of too few documents."""
    most = len(known) * 3 // 4
    if len(known) < LEAST_CURVE:
        return []
    sizes = [size for size in (5 * 2**step for step in range(12)) if size < most]
    return [_point(known, labels, aim, size) for size in [*sizes, most]]


def _point(known: Known, labels: FloatArray, aim: Aim, size: int) -> Point:
    found = []
    for number in range(DRAWS):
        order = np.random.default_rng([SEED, number]).permutation(len(known))  # the smaller draw is part of the larger
        _, decisions = answers(known, labels, aim, order[:size], order[size:])
        metrics = decision_metrics(known.gold[order[size:]], decisions)
        found.append((metrics["micro_f1"], metrics["macro_f1"]))
    micro, macro = np.mean(found, axis=0).tolist()
    return Point(size, micro, macro)


def draw_curve(path: Path, points: Sequence[Point], title: str) -> None:
    """F1 by the number of labelled documents; needs matplotlib."""
    figure, axes = new_figure(title, "labelled documents", "F1")
    sizes = [point.documents for point in points]
    axes.plot(sizes, [point.micro_f1 for point in points], marker="o", label="micro-F1")
    axes.plot(sizes, [point.macro_f1 for point in points], marker="o", label="macro-F1")
    axes.set(xscale="log", xlim=(min(sizes) * 0.9, max(sizes) * 1.1), xticks=sizes, xticklabels=sizes)
    axes.minorticks_off()
    save_figure(figure, axes, path)


def in_words(fitted: Fitted, points: Sequence[Point]) -> Iterator[str]:
    """What was learned, what more documents would bring, and which labels have too few examples to be trusted."""
    yield _learned(fitted)
    if fitted.known is None:
        return
    if len(points) > 1 and len(fitted.known) >= LEAST_TOLD:
        yield _more(points, len(fitted.known))
    counts = fitted.known.gold.sum(axis=0)
    if few := [(name, int(n)) for name, n in zip(fitted.labels.names, counts, strict=True) if n < FEW_EXAMPLES]:
        named = ", ".join(f"{name} ({n})" for name, n in few[:SHOWN])
        more = f" and {len(few) - SHOWN} more" if len(few) > SHOWN else ""
        yield f"fewer than {FEW_EXAMPLES} examples, so not to be trusted yet: {named}{more}."


def label_changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each label what is found and what is wrongly said of it, before and now; what changed most comes first."""
    found = []
    for was, now in zip(before, after, strict=True):
        hits, wrong = zip(*(_hits(one) for one in (was, now)), strict=True)
        change = abs(hits[1] - hits[0]) + abs(wrong[1] - wrong[0])
        examples = f"{was['label']}: of {counted(int(was['gold']), 'example')} {hits[1]} found (before {hits[0]})"
        found.append((change, f"{examples}, wrongly said of {counted(wrong[1], 'document')} (before {wrong[0]})"))
    return [text for _, text in sorted(found, key=lambda one: -one[0])]


def _hits(row: Mapping[str, Any]) -> tuple[int, int]:
    """How often a label was found, and how often it was wrongly said."""
    hits = round(row["recall"] * row["gold"])
    return hits, int(row["predicted"]) - hits


def _learned(fitted: Fitted) -> str:
    if fitted.readout is None:
        found: Any = fitted.calibration
        chosen = getattr(found, "chosen_", found)
        return f"{CHOICES.get(chosen.name, chosen.choice_)}."
    aim = getattr(fitted.calibration, "objective", "")
    common, biases, own = fitted.readout.shares
    held = {
        "what all labels share; there is too little to tell them apart": common,
        "how often each label applies; weights of its own would not hold yet": biases,
        "what documents with each label look like": own,
    }
    most = max(held, key=held.__getitem__)
    aims = {"balanced": "both F1s alike", "micro_f1": "micro-F1", "macro_f1": "macro-F1"}
    how = "mostly" if held[most] > 0.5 else "partly"
    return f"learned {how} {most} ({held[most]:.0%} of the evidence). Decisions aim at {aims.get(aim, aim)}."


def _more(points: Sequence[Point], documents: int) -> str:
    last, before = points[-1], points[-2]
    gained = 100 * (last.micro_f1 - before.micro_f1)
    step = f"from {before.documents} to {last.documents} documents micro-F1 went {gained:+.1f}"
    rate = gained / max(np.log2(last.documents / before.documents), 1e-9)
    if rate < 0.5:
        return f"{step}: more documents of this kind would bring little."
    least, most = round(rate / 2), max(round(rate), 1)
    points_more = counted(most, "point") if least == most else f"{least} to {counted(most, 'point')}"
    return f"{step}: {counted(documents, 'more document')} may bring about {points_more}."
