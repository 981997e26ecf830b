"""What a tutor answered (recipes/tutor): documents of the store with labels and the tutor's log-odds."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from recipes.store import Ints, Ragged


@dataclass(frozen=True)
class Tutored:
    document: Ints  # [E] document numbers
    labels: Ragged  # [E] label numbers
    odds: Ints  # of every label of every example

    def __getitem__(self, number: int) -> tuple[int, dict[int, float]]:
        """A document, and the probabilities of labels."""
        cells = slice(self.labels.offsets[number], self.labels.offsets[number + 1])
        chances = 1 / (1 + np.exp(-self.odds[cells].astype(np.float64)))
        answers = zip(self.labels[number].tolist(), chances.tolist(), strict=True)
        return int(self.document[number]), dict(answers)

    def about(self, document: int) -> dict[int, float]:
        """The probabilities of labels of a document; none where the tutor was not asked about it."""
        number = self._places.get(document)
        return {} if number is None else self[number][1]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {int(document): number for number, document in enumerate(self.document)}

    def save(self, path: Path) -> None:
        np.savez_compressed(
            path, document=self.document, labels=self.labels.values, offsets=self.labels.offsets, odds=self.odds
        )

    @classmethod
    def load(cls, path: Path) -> "Tutored":
        with np.load(path, allow_pickle=False) as saved:
            return cls(saved["document"], Ragged(saved["labels"], saved["offsets"]), saved["odds"])
