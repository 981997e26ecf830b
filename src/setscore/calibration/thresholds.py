"""Thresholds that maximise an objective: on labelled documents, exactly, or in the eyes of calibrated probabilities."""

import numpy as np
from scipy.special import expit, logit

from setscore.records import BoolArray, FloatArray

TINY = 1e-9
OBJECTIVES = ("micro_f1", "macro_f1", "balanced", "sample_f1", "cost")
# Chosen on parts of the 200-document validation slices (benchmarks/studies: calibrating.py, few_documents.py --within):
STEADY = 100.0  # gold labels for which the observed cut counts half,
OWN_CUT = 30.0  # documents for which a label's own cut counts half,
FEW_GOLD = 2.0  # gold labels for which an expected cut counts half,
USUAL_CUT = 0.25  # and half of a usual F1.

Gold = BoolArray | FloatArray


def best_thresholds(
    probabilities: FloatArray, gold: Gold, asked: BoolArray, objective: str, cost: tuple[float, float] = (1.0, 1.0)
) -> FloatArray:
    """One threshold per label [n_labels]: the same for all, but each label its own for "macro_f1" and "balanced".

    For all but "sample_f1" gold labels may be probabilities: then F1 is the one expected, about
    2 sum_K p / (|K| + sum p) for the pairs K that are predicted, and its best cut is half of the best F1 (Lipton, Elkan
    and Naryanaswamy, 2014).

    micro_f1   the cut over all pairs with the highest F1
    macro_f1   the same for each label; a label without gold documents gets the micro cut
    balanced   between these two, where the mean of micro and macro F1 no longer grows: a frequent label, which counts
               most in micro F1, near the common cut, a rare one near its own
    sample_f1  the cut with the highest mean F1 of documents
    cost       c_fp / (c_fp + c_fn): no data needed when probabilities are calibrated
    """
    labels = probabilities.shape[1]
    if objective == "cost":
        return np.full(labels, cost[0] / (cost[0] + cost[1]))
    if objective == "sample_f1":
        return np.full(labels, _best_sample_cut(probabilities, gold.astype(np.bool_), asked))
    overall = best_cut(probabilities[asked], gold[asked], float(gold.sum()))
    if objective == "micro_f1":
        return np.full(labels, overall)
    cuts = np.full(labels, overall)
    for i in range(labels):
        if gold[asked[:, i], i].any():
            cuts[i] = best_cut(probabilities[asked[:, i], i], gold[asked[:, i], i], float(gold[:, i].sum()))
    if objective == "macro_f1":
        return cuts
    # A pair gains 2p - F in micro F1, in units of all that is predicted or gold, and 2p - F_i in that of its label.
    sizes = gold.sum(axis=0) + (asked & (probabilities >= cuts)).sum(axis=0)
    common = labels * sizes / max(float(sizes.sum()), TINY)
    return np.asarray((common * overall + cuts) / (common + 1))


def steady_thresholds(
    probabilities: FloatArray, gold: BoolArray, asked: BoolArray, objective: str, cost: tuple[float, float] = (1.0, 1.0)
) -> FloatArray:
    """The same for calibrated probabilities: between the best cut on the gold labels and the one expected to be best.

    A small slice has few gold labels near the cut, and its best cut hangs on them. What is expected does not; but it is
    as wrong as the probabilities are. The mean of the two log-odds weighs the first by the number n of gold labels, of
    a label or of all, as n / (n + 100). For "sample_f1" and "cost" the gold labels alone decide.
    """
    observed = best_thresholds(probabilities, gold, asked, objective, cost)
    if objective in ("sample_f1", "cost"):
        return observed
    expected = best_thresholds(probabilities, np.where(asked, probabilities, gold), asked, objective)
    counts = (gold & asked).sum(axis=None if objective == "micro_f1" else 0)
    share = counts / (counts + STEADY)
    return np.asarray(expit(share * _log_odds(observed) + (1 - share) * _log_odds(expected)))


def expected_thresholds(  # noqa: PLR0917
    probabilities: FloatArray,
    gold: BoolArray,
    asked: BoolArray,
    objective: str,
    cost: tuple[float, float] = (1.0, 1.0),
    doubt: float = 0.0,
) -> tuple[FloatArray, float]:
    """The thresholds that calibrated probabilities expect to be best [n_labels], and the common one, for new labels.

    How far a label may go its own way hangs on the n documents it was asked of: its cut counts n / (n + 30), the common
    one the rest. Its gold documents are not what counts: a label without any is rare, and one cut for all would never
    find it. What is expected hangs on the documents too: with k gold labels in all, cuts count k / (k + 2). The rest is
    halfway between a usual cut and the log-odds `doubt`, of which more than 0 is too much: a cut above 0.5 is never
    best for F1. For "sample_f1" and "cost" it is as in `best_thresholds`.
    """
    if objective in ("sample_f1", "cost"):
        cuts = best_thresholds(probabilities, gold, asked, objective, cost)
        return cuts, float(cuts[0])
    likely = np.where(asked, probabilities, gold)
    common, own = (best_thresholds(probabilities, likely, asked, kind) for kind in ("micro_f1", objective))
    counts = asked.sum(axis=0)
    share, gold_labels = counts / (counts + OWN_CUT), (gold & asked).sum()
    believed, start = gold_labels / (gold_labels + FEW_GOLD), (min(doubt, 0.0) + logit(USUAL_CUT)) / 2
    own, common = (believed * _log_odds(cut) + (1 - believed) * start for cut in (own, common))
    return np.asarray(expit(share * own + (1 - share) * common)), float(expit(common[0]))


def _log_odds(cuts: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(cuts, TINY, 1 - TINY)))


def best_cut(scores: FloatArray, gold: Gold, positives: float) -> float:
    """The cut in [0, 1] with the highest F1: every distinct score is tried; of equals the highest cut.

    `positives` counts all gold labels, those never asked included, because they are missed at every cut.
    """
    if positives == 0 or not gold.any():
        return 0.5
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(gold[order], dtype=np.float64)
    last_of_ties = np.append(ranked[1:] != ranked[:-1], True)
    f1 = 2 * hits / (np.arange(1, len(ranked) + 1) + positives)
    best = int(np.argmax(np.where(last_of_ties, f1, -1.0)))
    below = ranked[best + 1] if best + 1 < len(ranked) else 0.0
    return halfway(float(ranked[best]), float(below))


def halfway(taken: float, below: float) -> float:
    """Between the last score taken and the next one, so that rounding cannot move the cut."""
    middle = (taken + below) / 2
    return middle if middle > below else taken  # between two neighbouring floats there is no middle


def _best_sample_cut(probabilities: FloatArray, gold: BoolArray, asked: BoolArray) -> float:
    """Sweeps the cut down over all pairs; each step changes the F1 of one document only."""
    rows, columns = np.nonzero(asked)
    if not gold.any() or not len(rows):
        return 0.5
    scores = probabilities[rows, columns]
    order = np.argsort(-scores, kind="stable")
    size, hits = gold.sum(axis=1).astype(np.float64), np.zeros(len(gold))
    chosen, f1, total = np.zeros(len(gold)), np.zeros(len(gold)), 0.0
    best, cut = -1.0, 0.5
    for place, k in enumerate(order):
        row = rows[k]
        chosen[row] += 1
        hits[row] += gold[row, columns[k]]
        new = 2 * hits[row] / (chosen[row] + size[row])
        total += new - f1[row]
        f1[row] = new
        following = scores[order[place + 1]] if place + 1 < len(order) else 0.0
        if total > best and (place + 1 == len(order) or following != scores[k]):
            best, cut = total, halfway(float(scores[k]), float(following))
    return cut
