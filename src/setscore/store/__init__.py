"""The store: answers by key, asked once, shared by processes and methods; and finished tables of them.

A key is a digest of everything that an answer depends on, so an answer is never out of date: other weights, another
question or another document have another key. What is there is never changed. A process that is about to find an answer
out says so with a claim; others leave it alone, and wait for the answer where nothing else is left to do.
"""

import hashlib
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from setscore.errors import SetScoreError
from setscore.records import FloatArray

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks at what another process is at
TOLD_AFTER = 5.0  # seconds of waiting

Ask = Callable[[Sequence[int]], Sequence[FloatArray]]  # the answers to the keys at these places


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


class MemoryStore:
    """A store that ends with its process. With more than `most` answers it begins anew."""

    def __init__(self, most: int = 400_000) -> None:
        self.most = most
        self._answers: dict[bytes, FloatArray] = {}
        self._claimed: set[bytes] = set()
        self._tables: dict[str, tuple[Mapping[str, Any], bytes]] = {}
        self._entries: dict[tuple[str, str, str], Entry] = {}
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, object]) -> "MemoryStore":
        return self  # scikit-learn's `clone` copies every parameter; a copy would ask everything again

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryStore, (self.most,)  # another process begins with nothing

    def get(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        with self._lock:
            return {key: self._answers[key] for key in keys if key in self._answers}

    def put(self, answers: Mapping[bytes, FloatArray]) -> None:
        check_finite(answers)
        with self._lock:
            if len(self._answers) + len(answers) > self.most:  # some hundred megabytes
                self._answers.clear()
            for key, answer in answers.items():
                self._answers.setdefault(key, answer.copy())
            self._claimed.difference_update(answers)

    def claim(self, keys: Sequence[bytes], most: int) -> list[bytes]:
        with self._lock:
            free = [key for key in keys if key not in self._answers and key not in self._claimed][:most]
            self._claimed.update(free)
            return free

    def release(self, keys: Sequence[bytes]) -> None:
        with self._lock:
            self._claimed.difference_update(keys)

    def put_table(self, entry: Entry, data: bytes) -> None:
        with self._lock:
            self._tables.setdefault(entry.key, (entry.about, data))
            self._entries.pop((entry.experiment, entry.method, entry.part), None)
            self._entries[entry.experiment, entry.method, entry.part] = entry

    def table(self, key: str) -> tuple[Mapping[str, Any], bytes] | None:
        with self._lock:
            return self._tables.get(key)

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._entries.values())


def open_store(source: Any) -> Store:
    """A store by the folder that holds it, which is made where it is not there; a Store is taken as it is."""
    if isinstance(source, str | os.PathLike):
        from setscore.store.folder import FolderStore

        return FolderStore.at(Path(source))
    if not hasattr(source, "claim"):
        raise SetScoreError(f"a store is a folder or a Store such as MemoryStore(), got {source!r}.")
    found: Store = source
    return found


def digest(*parts: Any) -> bytes:
    """16 bytes that tell JSON values from any others."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).digest()


def check_finite(answers: Mapping[bytes, FloatArray]) -> None:
    """Nothing that is not a number is kept: it would be read back for ever."""
    bad = sum(not np.isfinite(answer).all() for answer in answers.values())
    if bad:
        raise SetScoreError(f"{bad} of {len(answers)} answers hold NaN or infinity, and are not stored.")


def answered(store: Store, keys: Sequence[bytes], ask: Ask, block: int) -> list[FloatArray]:
    """The answers to `keys`, in their order: from the store, or by `ask`, at most `block` of them at a time.

    What was asked is stored before more is asked. What another process is at is waited for; if that process ends
    without an answer, it is asked here.
    """
    places = {key: place for place, key in reversed(list(enumerate(keys)))}  # the first place of each
    wanted = sorted(places, key=places.__getitem__)
    found = store.get(wanted)
    waiting = _Waiting()
    while missing := [key for key in wanted if key not in found]:
        mine = store.claim(missing, block)
        if mine:
            found |= _asked(store, mine, ask, [places[key] for key in mine])
            waiting = _Waiting()
        else:
            waiting.pause()
        found |= store.get([key for key in missing if key not in found])
    return [found[key].copy() for key in keys]


def _asked(store: Store, keys: Sequence[bytes], ask: Ask, places: Sequence[int]) -> dict[bytes, FloatArray]:
    try:
        answers = dict(zip(keys, ask(places), strict=True))
        store.put(answers)
    except BaseException:
        with suppress(SetScoreError):  # whatever went wrong first is what must be told
            store.release(keys)
        raise
    return answers


class _Waiting:
    """Longer and longer pauses, and one line when they become long."""

    def __init__(self) -> None:
        self._begun, self._next, self._told = time.monotonic(), FIRST_PAUSE, False

    def pause(self) -> None:
        time.sleep(self._next)
        self._next = min(2 * self._next, LONGEST_PAUSE)
        if not self._told and time.monotonic() - self._begun > TOLD_AFTER:
            self._told = True
            message = "another process is asking the same questions; its answers are waited for."
            warnings.warn(StoreWarning(message), stacklevel=4)
