"""config.json and the other settings of a checkpoint: read within limits, each value checked where it is asked for.

What is wrong is one line that names the file and the field, what was got and what is allowed.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from setscore.errors import BackboneError, DataFileError
from setscore.storage import load_json

MOST_SIZE = 2**24  # of a side of a matrix; no model comes near it, and what is computed from it stays a number
SHOWN = 60  # characters of a value that a message quotes


class Config(Mapping[str, Any]):
    """Settings by name; `file` is what messages call the place they come from."""

    def __init__(self, values: Mapping[str, Any], file: str | Path = "config.json") -> None:
        self._values, self.file = values, str(file)

    @classmethod
    def of(cls, values: "Mapping[str, Any] | Config") -> "Config":
        return values if isinstance(values, Config) else cls(values)

    @classmethod
    def read(cls, path: Path, what: str) -> "Config":
        """The object in a JSON file; `what` says in an error what the folder is not without it."""
        if not path.is_file():
            raise BackboneError(f"{path.parent} is no {what}: it has no {path.name}.")
        try:
            values = load_json(path)
        except DataFileError as error:
            raise BackboneError(f"{str(error).rstrip('.')}. Get the file again.") from error
        if not isinstance(values, dict):
            raise BackboneError(f"{path} is a JSON object, got {shown(values)}. Get the file again.")
        return cls(values, path)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def wrong(self, key: str, allowed: str) -> BackboneError:
        """The error for a value that is not what is allowed."""
        if key not in self:
            return BackboneError(f"{self.file} has no {key}, which is {allowed}. Get the file again.")
        return BackboneError(f"{self.file}: {key} is {allowed}, got {shown(self[key])}. Get the file again.")

    def size(self, key: str, default: int | None = None, *, least: int = 1, most: int = MOST_SIZE) -> int:
        """A whole number; `default` where it is absent or null."""
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def divisor(self, key: str, default: int | None = None, *, of: int, what: str) -> int:
        """A whole number that divides `of`, which messages call `what`."""
        value = self.size(key, default)
        if of % value:
            raise self.wrong(key, f"a divisor of {what}={of}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number above 0; `default` where it is absent or null."""
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise self.wrong(key, "a finite number above 0")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false; `default` where it is absent or null."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def section(self, key: str) -> "Config":
        """An object inside; an empty one where it is absent or null."""
        value = self.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, "an object or null")
        return Config(value or {}, f"{self.file}, {key}")

    def only(self, allowed: Mapping[str, Any]) -> None:
        """What our transformer cannot do is an error, not a silently different model; null stands for false."""
        for key, value in allowed.items():
            got = self.get(key, value)
            if got != value and not (got is None and value is False):
                raise BackboneError(
                    f"{self.file} says {key}={shown(got)}; this transformer only does {key}={shown(value)}."
                )


def read_config(folder: Path) -> Config:
    """config.json of a checkpoint's folder."""
    return Config.read(folder / "config.json", "checkpoint")


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
