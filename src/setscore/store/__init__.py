"""The store: answers by key, asked once, shared by processes and methods; and finished tables of them.

A key is a digest of everything that an answer depends on, so an answer is never out of date: other weights, another
question or another document have another key. What is there is never changed. A process that is about to find an answer
out says so with a claim; others leave it alone, and wait for the answer where nothing else is left to do.
"""

import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from setscore.errors import SetScoreError
from setscore.records import FloatArray
from setscore.store.base import Entry, Store, StoreWarning, digest
from setscore.store.memory import MemoryStore

__all__ = ["Entry", "MemoryStore", "Store", "StoreWarning", "answered", "digest", "open_store"]

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks at what another process is at
TOLD_AFTER = 5.0  # seconds of waiting

Ask = Callable[[Sequence[int]], Sequence[FloatArray]]  # the answers to the keys at these places


def open_store(source: Any, most: int | None = None) -> Store:
    """A store by the folder that holds it, which is made where it is not there; a Store is taken as it is.

    `most` are the bytes that a folder may hold; with more, answers are forgotten. Without it, 16 GiB.
    """
    if isinstance(source, str | os.PathLike):
        from setscore.store.folder import FolderStore

        return FolderStore.at(Path(source), most)
    if not hasattr(source, "claim"):
        raise SetScoreError(f"a store is a folder or a Store such as MemoryStore(), got {source!r}.")
    found: Store = source
    return found


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
