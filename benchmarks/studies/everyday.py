"""How good the classifier is before it has seen a single labelled document, on texts that were written for this.

    python benchmarks/studies/everyday.py [--backbone NAME] [--json FILE]
    python benchmarks/studies/everyday.py --only sample --competition 0.5 0.7

Nothing is fitted, and nothing may be tuned on these texts (tests/data). Four parts; one whose files are not there is
left out, and said to be:

    sample    50 documents, 12 labels, at threshold 0.5, beside two yardsticks that read no text: every label for every
              document, and the most frequent label for every document (chosen with the gold labels, so an oracle);
              --competition adds what other competitions between labels would decide than the model's own
    domains   micro and macro F1 by domain, their mean and the worst domain, and the calibration error of the
              probabilities: with the labels' descriptions and with their bare names
    pairs     two texts nearly alike: is the one that the label applies to ranked above the other, and are both decided
              right, by what makes the difference
    wordings  average precision of every wording of a label, and of the worst in parts of the best

Intervals are of 95%, by drawing documents, pairs or labels again.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.metrics import average_precision_score, f1_score, recall_score

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import estimates, written
from benchmarks.common import measured, options, table, tell, write_json
from benchmarks.estimates import Estimate
from setscore import LabelSet, SetScoreClassifier
from setscore.backbones import backbone_spec
from setscore.errors import SetScoreError

PARTS = ("sample", "domains", "pairs", "wordings")
F1, ECE = ("micro_f1", "macro_f1"), ("ece", "ece_raw")
Classify = Callable[[object], SetScoreClassifier]  # from labels


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--backbone", default="setscore-small", help="a name or place, as in `setscore models`")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--competition", type=float, nargs="*", default=[])
    parser.add_argument("--long-documents", default="auto", help="how texts are read, as `setscore classify` has it")
    parser.add_argument("--data", type=Path, default=written.DATA, help="the folder of the texts")
    parser.add_argument("--limit", type=int, help="documents of each set, pairs and labels, for a quick look")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    arguments = parser.parse_args(given)
    classify = partial(SetScoreClassifier, backbone=arguments.backbone, long_documents=arguments.long_documents)
    result = {}
    for part in arguments.only:
        try:
            result[part] = STUDIES[part](arguments, classify)
        except SetScoreError as error:
            parser.error(str(error))
    if arguments.json is not None:
        write_json(arguments.json, {"measured": measured(arguments.backbone)} | result)


# The sample


def study_sample(arguments: argparse.Namespace, classify: Classify) -> dict:
    documents = written.sample(arguments.data, arguments.limit)
    gold, result = documents.gold, {}
    for name, predicted in sample_decisions(arguments, classify, documents).items():
        micro, macro = (100 * f1_score(gold, predicted, average=a, zero_division=0) for a in ("micro", "macro"))
        found = 100 * recall_score(gold, predicted, average="micro")
        each = float(predicted.sum(axis=1).mean())
        result[name] = {"micro_f1": micro, "macro_f1": macro, "found": found, "cardinality": each}
    rows = [[name, *map("{:.1f}".format, (one["micro_f1"], one["macro_f1"])), f"{one['found']:.1f}%",
             f"{one['cardinality']:.2f}"] for name, one in result.items()]  # fmt: skip
    rows.append(["gold", "", "", "", f"{gold.sum(axis=1).mean():.2f}"])
    print(f"## {len(documents.texts)} everyday documents, {len(documents.labels)} labels\n")
    print(table(["", "micro-F1", "macro-F1", "found", "labels a document"], rows), flush=True)
    return result


def sample_decisions(
    arguments: argparse.Namespace, classify: Classify, documents: written.Documents
) -> dict[str, np.ndarray]:
    """Each way of the classifier and each yardstick, by its title."""
    texts, labels, name = documents.texts, documents.labels, arguments.backbone
    made = {}
    for attention in backbone_spec(name).attention:
        made[f"{name}, {attention} attention"] = classify(labels, attention=attention).predict(texts)
    made[f"{name}, blend=own-cosine"] = classify(labels, blend="own-cosine").predict(texts)
    made["every label"] = np.ones_like(documents.gold)
    made["the most frequent label (oracle)"] = np.zeros_like(documents.gold)
    made["the most frequent label (oracle)"][:, documents.gold.sum(axis=0).argmax()] = True
    for value in arguments.competition:
        made[f"{name}, competition {value:g}"] = classify(labels, competition=value).predict(texts)
    return made


def both_ways(title: str, columns: Sequence[str], measure: Callable[..., tuple[dict, list]]) -> dict:
    """A table with the labels' descriptions and one with their bare names. `measure` gives numbers and lines."""
    print(f"\n## {title}")
    result = {}
    for way, bare in (("with descriptions", False), ("with bare names", True)):
        result[way], lines = measure(bare=bare)
        print(f"\nLabels {way}:\n\n{table(['', *columns], lines)}", flush=True)
    return result


# Domains


def study_domains(arguments: argparse.Namespace, classify: Classify) -> dict:
    sets = written.domains(arguments.data, arguments.limit)
    if not sets:
        return left_out("domains", arguments.data / "everyday_<domain>.jsonl")
    title = f"{len(sets)} domains, {sum(len(one.texts) for one in sets)} documents"
    columns = ("micro-F1", "macro-F1", "calibration error", "of the raw answers")
    return both_ways(title, columns, partial(measured_domains, sets, classify))


def measured_domains(sets: Sequence[written.Documents], classify: Classify, *, bare: bool) -> tuple[dict, list]:
    found = {one.name: measured_domain(one, classify, seed, bare=bare) for seed, one in enumerate(sets, estimates.SEED)}
    worst = min(found, key=lambda name: found[name]["micro_f1"].value)
    rows = found | {
        "mean": {key: estimates.average([one[key] for one in found.values()]) for key in (*F1, *ECE)},
        f"worst by micro-F1: {worst}": found[worst],
    }
    lines = [[name, *(one[key].show() for key in F1), *(one[key].show(3, scale=1) for key in ECE)]
             for name, one in rows.items()]  # fmt: skip
    return {name: plain(one) for name, one in rows.items()}, lines


def measured_domain(documents: written.Documents, classify: Classify, seed: int, *, bare: bool) -> dict[str, Estimate]:
    """Of the decisions and probabilities before `fit`, and of the model's own answers, sigmoid(log-odds)."""
    labels = LabelSet.of(documents.labels.names) if bare else documents.labels
    found = classify(labels).classify(documents.texts).checked()
    return estimates.f1(documents.gold, found.decisions, seed) | {
        "ece": estimates.ece(documents.gold, found.probabilities, seed),
        "ece_raw": estimates.ece(documents.gold, expit(found.scores.log_odds), seed),
    }


# Pairs


def study_pairs(arguments: argparse.Namespace, classify: Classify) -> dict:
    pairs = written.pairs(arguments.data, arguments.limit)
    if not pairs:
        return left_out("pairs", arguments.data / "pairs.jsonl")
    columns = ("pairs", "ranked right, %", "both decided right, %")
    return both_ways(f"{len(pairs)} pairs of texts nearly alike", columns, partial(measured_pairs, pairs, classify))


def measured_pairs(pairs: Sequence[written.Pair], classify: Classify, *, bare: bool) -> tuple[dict, list]:
    """All of them, then by what makes the difference."""
    judgements = np.array([judged(pair, classify, bare=bare) for pair in pairs])
    result, lines = {}, []
    for how in ("all", *sorted({pair.how for pair in pairs})):
        mine = judgements[[how in ("all", pair.how) for pair in pairs]]
        ranked, decided = (estimates.mean(column) for column in mine.T)
        result[how] = plain({"ranked": ranked, "decided": decided}) | {"pairs": len(mine)}
        lines.append([how, len(mine), ranked.show(), decided.show()])
    return result, lines


def judged(pair: written.Pair, classify: Classify, *, bare: bool) -> tuple[bool, bool]:
    """Whether the text that the label applies to has the higher log-odds, and whether both texts are decided right."""
    found = classify([pair.label] if bare else {pair.label: pair.description}).classify([pair.yes, pair.no]).checked()
    yes, no = found.scores.log_odds[:, 0]
    return bool(yes > no), bool(found.decisions[0, 0] and not found.decisions[1, 0])


# Wordings


def study_wordings(arguments: argparse.Namespace, classify: Classify) -> dict:
    several = written.wordings(arguments.data, arguments.limit)
    if not several:
        return left_out("wordings", arguments.data / "wordings.yaml")
    found = {one.label: precisions(one, classify) for one in several}
    print(f"\n## {len(several)} labels in {len(several[0].wordings)} wordings\n")
    lines = [
        [label, *(f"{100 * value:.1f}" for value in values), f"{min(values) / max(values):.2f}"]
        for label, values in found.items()
    ]
    numbers = range(1, 1 + max(len(values) for values in found.values()))
    print(table(["", *(f"wording {number}" for number in numbers), "worst / best"], lines))
    summary = {
        "average_precision": estimates.mean([np.mean(values) for values in found.values()]),
        "worst": estimates.mean([min(values) for values in found.values()]),
        "worst_to_best": estimates.mean([min(values) / max(values) for values in found.values()]),
    }
    shown = {key: one.show() for key, one in summary.items()} | {"ratio": summary["worst_to_best"].show(2, scale=1)}
    print(
        f"\nMeans over labels: average precision {shown['average_precision']}, of the worst wording {shown['worst']},"
        f" worst / best {shown['ratio']}.",
        flush=True,
    )
    return {"labels": found, **plain(summary)}


def precisions(one: written.Wordings, classify: Classify) -> list[float]:
    """Average precision of each wording, asked as a bare name: log-odds do not depend on what else is asked."""
    scores = classify(one.wordings).decision_function([*one.yes, *one.no])
    gold = [True] * len(one.yes) + [False] * len(one.no)
    return [float(average_precision_score(gold, column)) for column in scores.T]


def plain(row: dict[str, Estimate]) -> dict:
    return {key: value.plain() for key, value in row.items()}


def left_out(part: str, path: Path) -> dict:
    tell(f"{part}: left out, there is no {path}.")
    return {}


STUDIES = {"sample": study_sample, "domains": study_domains, "pairs": study_pairs, "wordings": study_wordings}


if __name__ == "__main__":
    main()
