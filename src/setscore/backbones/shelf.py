"""Loaded models, kept for whoever asks next: as many as there is room for, the least recently used goes first.

A classifier asks for its backbone at every call. Two of them that take turns, or an ensemble, must not load their
weights again each time.
"""

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeVar

from setscore.errors import BackboneError

MOST = 8  # models at a time, however small they are
SPARE = 2  # a model stays beside another one only where this many times the other's memory is free

Model = TypeVar("Model")


class NoRoomError(BackboneError):
    """A model does not fit into the memory that is free."""


@dataclass(frozen=True)
class _Kept:
    model: Any
    device: str


class Shelf:
    """Models by key, the least recently used first; one is loaded at a time, whichever thread asks."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = RLock()

    def get(self, key: Hashable, load: Callable[[], Model], *, device: str) -> Model:
        """The model of this key, loaded unless it is here; others on its device go if `load` finds no room."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                model: Model = self._kept[key].model
                return model
            while len(self._kept) >= MOST:
                self._kept.popitem(last=False)
                gc.collect()
            model = self._loaded(load, device)
            self._kept[key] = _Kept(model, device)
            return model

    def _loaded(self, load: Callable[[], Model], device: str) -> Model:
        while True:
            try:
                return load()
            except NoRoomError:
                if not self.drop_oldest(device):
                    raise
            # Out here the error is gone, and with it the half-loaded model that its traceback kept.
            gc.collect()

    def make_room(self, device: str, needed: int, free: Callable[[], int]) -> None:
        """Lets go of the oldest models on a device until there is ample room for one that needs so many bytes."""
        if free() < SPARE * needed:
            gc.collect()  # models of transformers hold references to themselves, and some may be forgotten already
        while free() < SPARE * needed and self.drop_oldest(device):
            pass

    def drop_oldest(self, device: str, *, keep: int = 0) -> bool:
        """Forgets the least recently used model on a device; False where no more than `keep` are left there.

        Whoever uses it goes on with it: its memory is free when the last one lets go.
        """
        with self._lock:
            keys = [key for key, kept in self._kept.items() if kept.device == device]
            if len(keys) <= keep:
                return False
            del self._kept[keys[0]]
        gc.collect()
        return True

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


SHELF = Shelf()  # of this process
