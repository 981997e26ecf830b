"""What one would get without the model: the labels' own rates, every label, and the cosine of a sentence encoder.

All of them are fitted on the same validation documents and measured on the same test documents as the model.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from setscore.calibration.objectives import best_thresholds
from setscore.datasets import Dataset
from setscore.encoders import ENCODER, Encode, load_encoder
from setscore.ensemble import cosines
from setscore.experiments.evaluation import Kind, Row, evaluate, measure
from setscore.experiments.scored import FILE, Scored, Tell, embedded_weights


def label_prior(validation: Scored, test: Scored) -> Row:
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


def every_label(test: Scored) -> Row:
    """Every label for every document."""
    everything = np.ones_like(test.gold)
    return measure(
        "every label",
        "yardstick",
        "nothing is chosen",
        test,
        decisions=everything,
        probabilities=everything.astype(np.float64),
    )


def score_cosine(
    dataset: Dataset,
    encode: Encode | None = None,
    folder: str | Path | None = None,
    *,
    encoder: str = ENCODER,
    purpose: str = "the cosine yardstick",
    tell: Tell | None = None,
) -> Scored:
    """The cosine between document and label text (its description where there is one), in the place of log-odds.

    `encode` takes the place of the sentence encoder, which reads the first 256 tokens. Before documents are embedded
    `tell` hears of it.
    """
    config = {"backbone": encoder if encode is None else "encoder", "fingerprint": dataset.fingerprint}
    if encode is None and (weights := embedded_weights(encoder)):
        config["weights"] = weights
    if folder is not None and (Path(folder) / FILE).exists():
        saved = Scored.load(folder)
        if saved.config == config:
            return replace(saved, groups=dataset.groups)
    encode = encode or load_encoder(encoder, purpose=purpose)
    if tell is not None:
        tell(purpose, 0, len(dataset), "embedding")
    nothing = np.zeros(len(dataset), dtype=np.bool_)
    parts = (dataset.name, dataset.split, dataset.labels.names, dataset.ids)
    values = cosines(dataset.texts, dataset.labels, encode), dataset.gold
    scored = Scored(*parts, *values, nothing, dataset.notes, config, dataset.groups)
    if folder is not None:
        scored.save(folder)
    return scored


def cosine(validation: Scored, test: Scored, kinds: Sequence[Kind]) -> list[Row]:
    """Rows of the same calibrations as the model's.

    A cosine is no log-odds, so a logistic regression on all validation pairs makes it one first: slope times cosine
    plus bias, the same for every label, which leaves every order as it was.
    """
    to_log_odds = LogisticRegression(C=1e6)  # two numbers from thousands of pairs need no regularisation
    if validation.gold.any() and not validation.gold.all():
        to_log_odds.fit(validation.log_odds.reshape(-1, 1), validation.gold.ravel())
        slope, bias = float(to_log_odds.coef_[0, 0]), float(to_log_odds.intercept_[0])
    else:
        slope, bias = 1.0, 0.0  # nothing to learn from
    fitted, measured = (replace(part, log_odds=slope * part.log_odds + bias) for part in (validation, test))
    rows = [row for row in evaluate(fitted, measured, kinds) if row.kind == "model"]
    return [replace(row, name=f"cosine, {row.name}", kind="yardstick", metrics=row.without_raw()) for row in rows]
