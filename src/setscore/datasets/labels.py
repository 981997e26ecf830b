"""Label inventories from files and from the command line."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import yaml

from setscore.errors import DataFileError, LabelError, SetScoreError
from setscore.records import Label, LabelSet

LABEL_FILES = (".txt", ".csv", ".yaml", ".yml", ".json")


def parse_labels(text: str) -> LabelSet:
    """From the name of a file, or names separated by commas."""
    if Path(text).suffix.lower() in LABEL_FILES or ("," not in text and Path(text).is_file()):
        return read_labels(text)
    if "," not in text and re.search(r"\.[A-Za-z]{2,5}$", text):
        raise LabelError(f"{text!r} looks like a file; a label file ends in {', '.join(LABEL_FILES)}.")
    return LabelSet.of([name.strip() for name in text.split(",")] if text.strip() else [])


def read_labels(path: str | Path) -> LabelSet:
    """From a file:

    .txt          a name a line
    .csv          columns `name` and, if there are any, `description` and `parent`; one column needs no header
    .yaml, .json  a list of names, a mapping from names to descriptions, or a list of {name, description, parent}
    """
    path = Path(path)
    try:
        return LabelSet.of(_parse(path.suffix.lower(), path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise DataFileError(f"the label file {path} cannot be read: {error.strerror}.") from error
    except SetScoreError as error:
        raise type(error)(f"{path}: {error}") from error
    except (ValueError, RecursionError, yaml.YAMLError, csv.Error) as error:
        raise DataFileError(f"the label file {path} is broken: {error}") from error


def _parse(suffix: str, content: str) -> Any:
    if suffix == ".txt":
        return [line.strip() for line in content.splitlines() if line.strip()]
    if suffix == ".csv":
        return _from_csv(content)
    if suffix in (".yaml", ".yml"):
        return _from_structure(yaml.load(content, Loader=_YamlLoader))
    if suffix == ".json":
        return _from_structure(json.loads(content, object_pairs_hook=_unique))
    raise DataFileError(f"a label file ends in {', '.join(LABEL_FILES)}; got {suffix or 'no ending'!r}.")


def _from_csv(content: str) -> list[Label]:
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    rows = [row for row in reader if any(cell.strip() for cell in row)]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    if "name" not in header:
        if any(len(row) != 1 for row in rows):
            raise DataFileError(f"a label file with several columns needs a header with 'name'; got {header}.")
        return [Label(row[0].strip()) for row in rows]
    unknown = [name for name in header if name not in ("", "name", "description", "parent")]
    if unknown:
        raise DataFileError(
            f"a label file has the columns name, description and parent; got {', '.join(map(repr, unknown))} too."
        )
    wide = next((row for row in rows if any(cell.strip() for cell in row[len(header) :])), None)
    if wide:
        raise DataFileError(f"{wide} has more cells than the header {header}. Put a text that holds commas in quotes.")
    records = [dict(zip(header, (cell.strip() for cell in row), strict=False)) for row in rows[1:]]
    return [
        Label(record.get("name", ""), record.get("description") or None, record.get("parent") or None)
        for record in records
    ]


def _from_structure(value: Any) -> Any:
    if isinstance(value, dict):
        return {_name(name): description for name, description in value.items()}
    if value is None:
        raise DataFileError("there is nothing in it. Labels are a list, or a mapping of names to descriptions.")
    if not isinstance(value, list):
        raise DataFileError(f"labels are a list or a mapping, got {type(value).__name__}.")
    return [_from_record(entry) if isinstance(entry, dict) else _name(entry) for entry in value]


def _from_record(entry: dict[str, Any]) -> Label:
    unknown = set(entry) - {"name", "description", "parent"}
    if "name" not in entry or unknown:
        raise DataFileError(f"a label has a 'name' and perhaps a 'description' and a 'parent', got {entry}.")
    description = entry.get("description")
    return Label(_name(entry["name"]), None if description == "" else description, entry.get("parent") or None)


def _name(value: Any) -> Any:
    """YAML reads `no`, `on` and `1` as other things than text; say so instead of guessing."""
    if value is not None and not isinstance(value, str):
        raise LabelError(f"the label {value!r} was read as {type(value).__name__}, not text. Put it in quotes.")
    return value


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A mapping of `pairs`; both readers would keep only the last of equal keys, in silence."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise LabelError(f"{twice!r} stands twice in one mapping. Remove one of them.")
    return dict(pairs)


class _YamlLoader(yaml.SafeLoader):
    """Reads YAML as `safe_load` does, but does not lose a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _unique([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        return dict(super().construct_mapping(node, deep=deep))
