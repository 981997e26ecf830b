"""What a store is: answers by key, claims on what is being asked, and finished tables."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from setscore.errors import SetScoreError
from setscore.records import FloatArray


class StoreWarning(UserWarning):
    """Something about a store that is not lost, but should be known."""


@dataclass(frozen=True)
class Entry:
    """Where a finished table belongs: an experiment, a method, and a part of the documents. `key` finds it.

    `about` says what it holds, as JSON values.
    """

    experiment: str
    method: str
    part: str
    key: str
    about: Mapping[str, Any]


class Store(Protocol):
    """Keeps what was answered. Every method may be called by several threads and processes at a time."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """The answers that are there."""
        ...

    def put(self, answers: Mapping[bytes, FloatArray]) -> None:
        """Keeps answers, all of them or none, and gives up the claims on them. What is there already stays."""
        ...

    def claim(self, keys: Sequence[bytes], most: int) -> list[bytes]:
        """The first `most` keys that have no answer and that nobody else is at. They are the caller's to find out."""
        ...

    def release(self, keys: Sequence[bytes]) -> None:
        """Gives up claims without an answer."""
        ...

    def put_table(self, entry: Entry, data: bytes) -> None:
        """Keeps a finished table and lists it as the newest of its experiment, method and part."""
        ...

    def table(self, key: str) -> tuple[Mapping[str, Any], bytes] | None:
        """What a table is about, and its data, if it is there."""
        ...

    def entries(self) -> list[Entry]:
        """The newest table of each experiment, method and part, in the order in which they were made."""
        ...


def digest(*parts: Any) -> bytes:
    """16 bytes that tell JSON values from any others."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).digest()


def check_finite(answers: Mapping[bytes, FloatArray]) -> None:
    """Nothing that is not a number is kept: it would be read back for ever."""
    bad = sum(not np.isfinite(answer).all() for answer in answers.values())
    if bad:
        raise SetScoreError(f"{bad} of {len(answers)} answers hold NaN or infinity, and are not stored.")
