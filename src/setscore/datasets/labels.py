"""Label inventories from files and from the command line."""

import csv
import json
from pathlib import Path
from typing import Any

import yaml

from setscore.errors import DataFileError, LabelError
from setscore.records import Label, LabelSet

LABEL_FILES = (".txt", ".csv", ".yaml", ".yml", ".json")


def parse_labels(text: str) -> LabelSet:
    """From the name of a file, or names separated by commas."""
    if Path(text).suffix.lower() in LABEL_FILES:
        return read_labels(text)
    return LabelSet.of([name.strip() for name in text.split(",")])


def read_labels(path: str | Path) -> LabelSet:
    """From a file:

    .txt          a name a line
    .csv          columns `name` and, if there are any, `description`; a file with one column needs no header
    .yaml, .json  a list of names, a mapping from names to descriptions, or a list of {name, description}
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8-sig")
        entries = _parse(path.suffix.lower(), content)
    except OSError as error:
        raise DataFileError(f"the label file {path} cannot be read: {error.strerror}.") from error
    except (ValueError, yaml.YAMLError, csv.Error) as error:
        if isinstance(error, LabelError | DataFileError):
            raise
        raise DataFileError(f"the label file {path} is broken: {error}") from error
    try:
        return LabelSet.of(entries)
    except LabelError as error:
        raise LabelError(f"{path}: {error}") from error


def _parse(suffix: str, content: str) -> Any:
    if suffix == ".txt":
        return [line.strip() for line in content.splitlines() if line.strip()]
    if suffix == ".csv":
        return _from_csv(content)
    if suffix in (".yaml", ".yml"):
        return _from_structure(yaml.safe_load(content))
    if suffix == ".json":
        return _from_structure(json.loads(content))
    raise DataFileError(f"a label file ends in {', '.join(LABEL_FILES)}; got {suffix or 'no ending'!r}.")


def _from_csv(content: str) -> list[Label]:
    rows = [row for row in csv.reader(content.splitlines()) if any(cell.strip() for cell in row)]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    if "name" not in header:
        if any(len(row) != 1 for row in rows):
            raise DataFileError(f"a label file with several columns needs a header with 'name'; got {header}.")
        return [Label(row[0].strip()) for row in rows]
    records = [dict(zip(header, (cell.strip() for cell in row), strict=False)) for row in rows[1:]]
    return [Label(record["name"], record.get("description") or None) for record in records]


def _from_structure(value: Any) -> Any:
    if isinstance(value, dict):
        return {_name(name): description for name, description in value.items()}
    if not isinstance(value, list):
        raise DataFileError(f"labels are a list or a mapping, got {type(value).__name__}.")
    return [_from_record(entry) if isinstance(entry, dict) else _name(entry) for entry in value]


def _from_record(entry: dict[str, Any]) -> Label:
    unknown = set(entry) - {"name", "description"}
    if "name" not in entry or unknown:
        raise DataFileError(f"a label has a 'name' and perhaps a 'description', got {entry}.")
    return Label(_name(entry["name"]), entry.get("description") or None)


def _name(value: Any) -> Any:
    """YAML reads `no`, `on` and `1` as other things than text; say so instead of guessing."""
    if value is not None and not isinstance(value, str):
        raise LabelError(f"the label {value!r} was read as {type(value).__name__}, not text. Put it in quotes.")
    return value
