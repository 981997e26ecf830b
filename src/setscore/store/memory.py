"""A store in memory."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from setscore.records import FloatArray
from setscore.store.base import Entry, check_finite


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
