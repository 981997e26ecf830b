"""What one would get without the model: the labels' own rates, every label, and the cosine of a sentence encoder.

All of them are fitted on the same validation documents and measured on the same test documents as the model.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from setscore.calibration.thresholds import best_thresholds
from setscore.datasets import Dataset
from setscore.encoders import ENCODER, Encode, load_encoder
from setscore.ensemble import cosines
from setscore.experiments.evaluation import evaluate
from setscore.experiments.saved import keep, known, weights_of
from setscore.experiments.scored import Kind, Outcome, Scored, measure
from setscore.records import Progress
from setscore.store import Store


def label_prior(validation: Scored, test: Scored) -> Outcome:
    """Each label's rate as its probability for every document; the threshold by validation micro-F1. Reads no text."""
    rates = validation.gold.mean(axis=0)
    seen = np.broadcast_to(rates, validation.gold.shape).copy()
    thresholds = best_thresholds(seen, validation.gold, np.ones_like(validation.gold), "micro_f1")
    probabilities = np.broadcast_to(rates, test.gold.shape).copy()
    chosen = [name for name, taken in zip(test.labels, rates >= thresholds, strict=True) if taken]
    return measure(
        "label prior",
        "yardstick",
        f"threshold {thresholds[0]:.3g} by micro-F1: every document gets {', '.join(chosen) or 'no label'}",
        test,
        decisions=probabilities >= thresholds,
        probabilities=probabilities,
    )


def every_label(test: Scored) -> Outcome:
    """Every label for every document; of a shortlist every label that was asked."""
    everything = np.isfinite(test.log_odds)
    return measure(
        "every label" if everything.all() else "every candidate",
        "yardstick",
        "nothing is chosen",
        test,
        decisions=everything,
        probabilities=everything.astype(np.float64),
    )


def score_cosine(
    dataset: Dataset,
    encode: Encode | None = None,
    *,
    store: Store | None = None,
    place: tuple[str, str] = ("", ""),
    encoder: str = ENCODER,
    title: str = "cosine",
    purpose: str = "the cosine yardstick",
    progress: Progress | None = None,
) -> Scored:
    """The cosine between document and label text (its description where there is one), in the place of log-odds.

    `encode` takes the place of the sentence encoder, which reads the first 256 tokens. With a store the table is kept
    there, under the experiment and the part in `place`.
    """
    identity = {"title": title, "encoder": "given" if encode else weights_of(encoder)}
    config = identity | {"fingerprint": dataset.fingerprint}
    scored = None if store is None else known(store, dataset, config)
    if scored is None:
        using = encode or load_encoder(encoder, purpose=purpose)
        if progress is not None:
            progress(f"{purpose}: embedding", 0, len(dataset))
        scored = Scored.of(dataset, cosines(dataset.texts, dataset.labels, using), config)
    if store is not None:
        keep(store, *place, scored)
    return scored


def cosine(validation: Scored, test: Scored, kinds: Sequence[Kind]) -> list[Outcome]:
    """The same calibrations as the model's.

    A cosine is no log-odds, so a logistic regression on all validation pairs makes it one first: slope times cosine
    plus bias, the same for every label, which leaves every order as it was.
    """
    from sklearn.linear_model import LogisticRegression

    to_log_odds = LogisticRegression(C=1e6)  # two numbers from thousands of pairs need no regularisation
    if validation.gold.any() and not validation.gold.all():
        to_log_odds.fit(validation.log_odds.reshape(-1, 1), validation.gold.ravel())
        slope, bias = float(to_log_odds.coef_[0, 0]), float(to_log_odds.intercept_[0])
    else:
        slope, bias = 1.0, 0.0  # nothing to learn from
    fitted, measured = (replace(part, log_odds=slope * part.log_odds + bias) for part in (validation, test))
    found = evaluate(fitted, measured, kinds, with_oracles=False)
    return [replace(one, name=f"cosine, {one.name}", kind="yardstick", metrics=one.without_raw()) for one in found]
