"""The paper's statements as pure functions (Sections 3.3 and 4, and the proofs in its appendix).

Matrices are [n_documents, n_labels]. `eta` holds the true probabilities Pr(Y_i = 1 | X = x), `probabilities` the
estimated ones, `thresholds` [n_labels] the tau_i. Documents are equally likely: a mean over rows is the expectation.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray

ScoresInOrder = Callable[[Sequence[int]], npt.ArrayLike]  # an order of the labels to their scores, by position
Local = Callable[[int, BoolArray], tuple[float, float]]  # label i and an assignment y to l_i(0; y_-i), l_i(1; y_-i)
Update = Callable[[Local, BoolArray, int], BoolArray]  # one coordinate of an assignment renewed


# Permutation invariance


def order_deviation(score: ScoresInOrder, orders: Iterable[Sequence[int]]) -> float:
    """How far a label's score moves with its place: max over orders pi and places j of |u^pi_j - u_pi(j)|.

    Theorem (permutation invariance). If u_i(x) = F(psi(x, lambda_i)) for a prompt psi of one label and a deterministic
    F, then u^pi_j = u_pi(j) for every order pi: this is 0, and with thresholds that belong to labels the predicted set
    does not depend on the order.
    """
    pairs = [(np.asarray(order), np.asarray(score(order), dtype=np.float64)) for order in orders]
    if not pairs:
        raise SetScoreError("there are no orders to compare; give at least one.")
    plain = np.asarray(score(range(len(pairs[0][0]))), dtype=np.float64)
    return max(float(np.abs(found - plain[order]).max()) for order, found in pairs)


def is_permutation_invariant(score: ScoresInOrder, orders: Iterable[Sequence[int]], tolerance: float = 0.0) -> bool:
    """Whether no label's score moves by more than `tolerance` in any of the orders."""
    return order_deviation(score, orders) <= tolerance


# Threshold-matched weighted Hamming loss


def weighted_hamming_loss(gold: BoolArray, predicted: BoolArray, thresholds: npt.ArrayLike) -> float:
    """1/m sum_i (tau_i 1{y_i = 0, yhat_i = 1} + (1 - tau_i) 1{y_i = 1, yhat_i = 0}), the mean over documents.

    With tau = 1/2 it is half of the ordinary Hamming loss.
    """
    tau = np.asarray(thresholds, dtype=np.float64)
    return float((tau * (~gold & predicted) + (1 - tau) * (gold & ~predicted)).mean())


def weighted_hamming_risk(eta: FloatArray, predicted: BoolArray, thresholds: npt.ArrayLike) -> float:
    """The expectation of that loss when Y_i is drawn with probability eta_i: tau (1 - eta) for yes, (1 - tau) eta."""
    tau = np.asarray(thresholds, dtype=np.float64)
    return float(np.where(predicted, tau * (1 - eta), (1 - tau) * eta).mean())


def bayes_decision(eta: FloatArray, thresholds: npt.ArrayLike) -> BoolArray:
    """The decision of least risk: y*_i = 1 where eta_i >= tau_i."""
    decided: BoolArray = eta >= np.asarray(thresholds, dtype=np.float64)
    return decided


def excess_risk(eta: FloatArray, probabilities: FloatArray, thresholds: npt.ArrayLike) -> float:
    """R(yhat) - R* of the rule "yes where the estimated probability reaches tau"; never below 0."""
    best, found = (bayes_decision(values, thresholds) for values in (eta, probabilities))
    tau = np.asarray(thresholds, dtype=np.float64)
    return float(np.where(best != found, np.abs(eta - tau), 0.0).mean())


def excess_risk_bound(eta: FloatArray, probabilities: FloatArray) -> float:
    """Theorem: R(yhat) - R* <= 1/m sum_i E|p_i(X) - eta_i(X)|, whatever the thresholds.

    Tight: where every estimate lies on the threshold and eta below it, both sides are the mean of tau - eta.
    """
    return float(np.abs(probabilities - eta).mean())


def hamming_excess_risk(eta: FloatArray, probabilities: FloatArray) -> float:
    """R_H(yhat) - R_H* in ordinary Hamming risk, of the rule "yes where the estimate reaches 1/2": R_H = 2 R_1/2."""
    return 2 * excess_risk(eta, probabilities, 0.5)


def hamming_excess_risk_bound(eta: FloatArray, probabilities: FloatArray) -> float:
    """Corollary (tau = 1/2): R_H(yhat) - R_H* <= 2/m sum_i E|p_i(X) - eta_i(X)|.

    Tight: where every estimate is 1/2 and eta below it, both sides are the mean of 1 - 2 eta.
    """
    return 2 * excess_risk_bound(eta, probabilities)


def excess_risk_bound_logits(eta_logits: FloatArray, log_odds: FloatArray, temperature: float = 1.0) -> float:
    """The same in logits: 1/m sum_i E[ |u_i / T - u*_i| / 4 ], because the sigmoid's slope is at most 1/4.

    u*_i = logit(eta_i), so eta lies in (0, 1). Tight in the limit of logits near 0.
    """
    return float(np.abs(log_odds / temperature - eta_logits).mean() / 4)


def decision_is_safe(eta: FloatArray, probabilities: FloatArray, thresholds: npt.ArrayLike) -> BoolArray:
    """Where the error is below the Bayes margin, |p - eta| < |eta - tau|: there the decision is the Bayes rule's."""
    safe: BoolArray = np.abs(probabilities - eta) < np.abs(eta - np.asarray(thresholds, dtype=np.float64))
    return safe


# Shortlists


@dataclass(frozen=True)
class Ceilings:
    """What shortlists keep of the gold labels, and what no predictor can exceed that says no to every other label.

    retention        rho: the share of all gold labels, pooled over documents, that the shortlists keep
    label_retention  [n_labels] rho_i: the same for one label; NaN for a label that is never gold
    document_recall  the mean over documents with gold labels of the share kept (what retrieval papers report)
    chance           what a random shortlist of the same sizes keeps on average: its mean size by the number of labels
    asked            labels on a shortlist, a mean over documents
    dropped          pairs of document and label that are on none, and so count as negative
    micro_f1         2 rho / (1 + rho)
    macro_f1         the mean of 2 rho_i / (1 + rho_i) over labels that are ever gold
    hamming          1/m sum_i Pr(Y_i = 1, i not in the shortlist): Hamming loss that the retriever alone causes

    Without a gold label nothing can be lost: shares and ceilings are 1.
    """

    retention: float
    label_retention: FloatArray
    document_recall: float
    chance: float
    asked: float
    dropped: int
    micro_f1: float
    macro_f1: float
    hamming: float

    @property
    def micro_recall(self) -> float:
        """rho itself."""
        return self.retention

    def worst_labels(self, names: Sequence[str], most: int = 5) -> list[tuple[str, float]]:
        """The labels that the shortlists lose most often, with the share that they keep."""
        order = np.argsort(np.where(np.isnan(self.label_retention), 2.0, self.label_retention), kind="stable")[:most]
        return [(names[i], float(self.label_retention[i])) for i in order if self.label_retention[i] < 1]

    def sentence(self) -> str:
        """One line for a report."""
        return (
            f"{self.asked:.1f} labels a document were asked; the shortlist keeps {100 * self.retention:.1f}% of the"
            f" gold labels (chance {100 * self.chance:.1f}%), so micro-F1 is at most {100 * self.micro_f1:.1f} and"
            f" macro-F1 {100 * self.macro_f1:.1f}. {self.dropped} pairs were not asked and count as negative."
        )


def shortlist_ceilings(gold: BoolArray, shortlist: BoolArray) -> Ceilings:
    """Theorem (shortlist ceilings). Each is reached by predicting exactly the gold labels in the shortlist."""
    if gold.shape != shortlist.shape:
        raise SetScoreError(
            f"gold labels have the shape {gold.shape}, the shortlist {shortlist.shape}; they must agree."
        )
    kept, wanted = (gold & shortlist), gold.sum(axis=0)
    retention = float(kept.sum() / gold.sum()) if gold.any() else 1.0
    with np.errstate(invalid="ignore"):
        by_label: FloatArray = kept.sum(axis=0) / wanted
    rows = gold.any(axis=1)
    return Ceilings(
        retention=retention,
        label_retention=by_label,
        document_recall=float((kept.sum(axis=1)[rows] / gold.sum(axis=1)[rows]).mean()) if rows.any() else 1.0,
        chance=float(shortlist.mean()),
        asked=float(shortlist.sum(axis=1).mean()),
        dropped=int((~shortlist).sum()),
        micro_f1=f1_ceiling(retention),
        macro_f1=float(np.mean([f1_ceiling(rho) for rho in by_label[wanted > 0]])) if rows.any() else 1.0,
        hamming=float((gold & ~shortlist).mean()),
    )


def f1_ceiling(retention: float) -> float:
    """F1 <= 2 rho / (1 + rho) for a retention rho in [0, 1]: perfect precision, and recall rho."""
    return 2 * retention / (1 + retention)


def hamming_decomposition(gold: BoolArray, predicted: BoolArray, shortlist: BoolArray) -> tuple[float, float]:
    """Hamming loss as the retriever's part, gold labels outside the shortlist, plus the scorer's part inside it."""
    if (predicted & ~shortlist).any():
        raise SetScoreError("a label outside the shortlist is predicted; the decomposition holds only without that.")
    return float((gold & ~shortlist).mean()), float(((gold != predicted) & shortlist).mean())


# Joint set refinement


def pseudo_likelihood(local: Local, assignment: BoolArray) -> float:
    """PL(y | x) = sum_i l_i(y_i; x, y_-i): a surrogate, not the joint log-likelihood."""
    return float(sum(local(i, assignment)[int(assignment[i])] for i in range(len(assignment))))


def local_update(local: Local, assignment: BoolArray, label: int) -> BoolArray:
    """Eq. 3: y_i becomes argmax_b l_i(b; x, y_-i), unchanged on a tie. It may lower the pseudo-likelihood."""
    no, yes = local(label, assignment)
    return _with(assignment, label, bool(assignment[label]) if yes == no else yes > no)


def full_gain_update(local: Local, assignment: BoolArray, label: int) -> BoolArray:
    """y_i becomes argmax_b PL(.., b, ..), unchanged on a tie.

    Proposition. No update lowers PL; every change raises it, so sweeps end, and where a sweep changes nothing the
    assignment is a coordinate-wise optimum.
    """
    other = _with(assignment, label, not assignment[label])
    return other if pseudo_likelihood(local, other) > pseudo_likelihood(local, assignment) else assignment


def sweep(update: Update, local: Local, assignment: BoolArray, order: Sequence[int] | None = None) -> BoolArray:
    """Every label updated once, in `order`."""
    for label in range(len(assignment)) if order is None else order:
        assignment = update(local, assignment, label)
    return assignment


def is_coordinatewise_optimum(local: Local, assignment: BoolArray) -> bool:
    """Whether no single change of a label raises the pseudo-likelihood."""
    return all(full_gain_update(local, assignment, i) is assignment for i in range(len(assignment)))


def counter_example(label: int, assignment: BoolArray) -> tuple[float, float]:
    """The paper's two labels on which a local update lowers the pseudo-likelihood.

    From y = (0, 1) the local update of the first label gives (1, 1), and PL falls from -1.1 to -10.1; the full-gain
    update stays.
    """
    if label == 0:
        return -1.0, -0.1
    return -0.2, -10.0 if assignment[0] else -0.1


def table_local(log_odds: FloatArray) -> Local:
    """Local conditionals from a table [2^m, m] of log-odds, a row for each assignment as a binary number.

    l_i(1) = log sigmoid(u) and l_i(0) = log sigmoid(-u). The value must not depend on y_i itself: it is read with
    y_i = 0.
    """
    powers = 1 << np.arange(log_odds.shape[1])

    def local(label: int, assignment: BoolArray) -> tuple[float, float]:
        u = log_odds[int(_with(assignment, label, False) @ powers), label]
        return float(np.log(expit(-u))), float(np.log(expit(u)))

    return local


def _with(assignment: BoolArray, label: int, value: bool) -> BoolArray:
    changed = assignment.copy()
    changed[label] = value
    return changed
