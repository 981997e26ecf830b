"""Values in JSON files with a format name; written whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from setscore.errors import DataFileError


def write_json(path: str | Path, form: str, content: dict[str, Any]) -> None:
    """Writes beside the target and renames, so that a full disk or a kill leaves no half file."""
    path = Path(path)
    text = json.dumps({"format": form, **content}, indent=2, ensure_ascii=False) + "\n"
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    except OSError as error:
        raise DataFileError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise DataFileError(f"{path} cannot be written: {error.strerror}.") from error


def read_json(path: str | Path, form: str) -> dict[str, Any]:
    """The content of a file that `write_json` wrote in the same format."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFileError(f"{path} cannot be read as JSON: {error}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != form:
        raise DataFileError(f"{path} has the format {found!r}; this version of SetScore reads {form!r}.")
    return dict(content)
