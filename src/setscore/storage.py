"""Values in JSON files with a format name; written whole or not at all."""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from setscore.errors import DataFileError


def write_json(path: str | Path, form: str, content: dict[str, Any]) -> None:
    """Writes a JSON file whole or not at all."""
    text = json.dumps({"format": form, **content}, indent=2, ensure_ascii=False, default=_plain)
    write_bytes(Path(path), f"{text}\n".encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Writes beside the target and renames, so that a full disk or a kill leaves no half file."""
    # Not tempfile: its files are readable by their owner alone, and a server often runs as somebody else.
    temporary = path.parent / f"{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):  # it may never have come to be
            temporary.unlink()
        raise DataFileError(f"{path} cannot be written: {error.strerror}.") from error


def read_json(path: str | Path, form: str, *older: str) -> dict[str, Any]:
    """The content of a file that `write_json` wrote in the same format, or in one of the `older` ones."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataFileError(f"the file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataFileError(f"{path} cannot be read as JSON: {error}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found not in (form, *older):
        raise DataFileError(f"{path} has the format {found!r}; this version of SetScore reads {form!r}.")
    return dict(content)


@contextmanager
def reading_json(path: str | Path, form: str) -> Iterator[dict[str, Any]]:
    """`read_json` around the code that takes the content apart: whatever is missing there is the file's mistake."""
    content = read_json(path, form)
    try:
        yield content
    except (KeyError, TypeError, ValueError) as error:
        raise DataFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _plain(value: Any) -> Any:
    """NumPy's numbers, as a parameter search sets them, as JSON numbers; options that are dataclasses as objects."""
    if is_dataclass(value) and not isinstance(value, type):
        return value.plain() if hasattr(value, "plain") else vars(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written as JSON.")
