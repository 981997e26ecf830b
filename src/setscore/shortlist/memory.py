"""What a shortlist remembers of a few documents: which labels are near to everything, and who had which labels.

Near to everything. Some label texts are near to any document (hubs), others to none. The cosine is read against the
mean of a label's highest cosines with the slice, as cross-domain similarity local scaling does (Conneau et al., 2018):

    s_i(x) = 2 cos(x, i) - mean of the TOP highest cosines of label i         needs no gold labels

Who had which. Documents that are alike have labels alike, rare ones too:

    g_i(x) = sum_d w_d(x) y_di,    w_d(x) in proportion to exp(SHARP cos(x, d))       needs gold labels
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setscore.encoders import Vectors
from setscore.errors import SetScoreError
from setscore.records import BoolArray, FloatArray

TOP = 10
SHARP = 40.0
SAME = 1 - 1e-4  # a cosine from which two documents are one: nobody is a neighbour of himself


@dataclass(frozen=True, eq=False)
class Memory:
    """hubs     [m]: the mean of each label's highest cosines
    vectors  [n, d]: unit vectors of the documents
    rows, columns  places of their gold labels; none where there were no gold labels
    """

    hubs: Vectors
    vectors: Vectors
    rows: Vectors
    columns: Vectors

    @classmethod
    def of(cls, cosines: FloatArray, vectors: Vectors, gold: BoolArray | None) -> "Memory":
        """From cosines [n, m] of documents and labels, and the documents' vectors."""
        highest = np.sort(np.where(np.isfinite(cosines), cosines, 0.0), axis=0)[-TOP:].mean(axis=0)
        rows, columns = np.nonzero(np.zeros(cosines.shape, dtype=np.bool_) if gold is None else gold)
        return cls(*(np.asarray(part, dtype=np.float32) for part in (highest, vectors, rows, columns)))

    def nearness(self, cosines: FloatArray) -> FloatArray:
        """Cosines [m] with what makes a hub taken off."""
        return np.asarray(2 * cosines - self.hubs)

    def neighbours(self, vector: Vectors) -> FloatArray:
        """How much the documents like this one [d] had each label [m]; 0 where none had it."""
        found = np.zeros(len(self.hubs))
        if not len(self.rows):
            return found
        cosines = (self.vectors @ vector).astype(np.float64)
        weights = np.where(cosines < SAME, np.exp(SHARP * (cosines - 1)), 0.0)
        total = weights.sum()
        np.add.at(found, self.columns.astype(np.int64), weights[self.rows.astype(np.int64)] / (total or 1.0))
        return found

    def plain(self) -> dict[str, Any]:
        """As JSON values: shapes, and bytes of 16-bit floats (32-bit where they are places)."""
        kinds = {"hubs": "<f4", "vectors": "<f2", "rows": "<f4", "columns": "<f4"}
        return {
            name: {"shape": getattr(self, name).shape, "kind": kind, "base64": _text(getattr(self, name), kind)}
            for name, kind in kinds.items()
        }

    @classmethod
    def restore(cls, plain: Mapping[str, Any]) -> "Memory":
        """What `plain` gave."""
        made = cls(**{name: _array(entry) for name, entry in plain.items()})
        if made.hubs.ndim != 1 or made.vectors.ndim != 2 or made.rows.shape != made.columns.shape:
            raise SetScoreError("what the shortlist remembers is damaged: its arrays do not fit together.")
        return made


def _text(values: Vectors, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode("ascii")


def _array(entry: Mapping[str, Any]) -> Vectors:
    data = base64.b64decode(entry["base64"], validate=True)
    return np.frombuffer(data, dtype=entry["kind"]).reshape(entry["shape"]).astype(np.float32)
