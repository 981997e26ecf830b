"""Label inventories from files."""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from setscore.datasets.yaml_values import LIMITS as YAML
from setscore.datasets.yaml_values import parse_yaml
from setscore.errors import DataFileError, LabelError, SetScoreError, brief
from setscore.records import LABEL_FILES, Label, LabelSet
from setscore.storage import ROW, decoded, listed, near_file, one_line, parse_json, read_limited


def read_labels(path: str | Path) -> LabelSet:
    """From a file:

    .txt          a name a line
    .csv          columns `name` and, if there are any, `description` and `parent`; one column needs no header
    .yaml, .json  a list of names, a mapping from names to descriptions, or a list of {name, description, parent}
    """
    path = Path(path)
    suffix = path.suffix.lower()
    try:
        with path.open("rb") as file:
            content = decoded(read_limited(file, YAML if suffix in (".yaml", ".yml") else ROW))
        return LabelSet.of(_parse(suffix, content))
    except OSError as error:
        raise DataFileError(f"the label file {path} cannot be read: {error.strerror}.{near_file(path)}") from error
    except SetScoreError as error:
        raise type(error)(f"{path}: {error}") from error
    except (ValueError, csv.Error) as error:
        raise DataFileError(f"the label file {path} is broken: {one_line(error)}") from error


def _parse(suffix: str, content: str) -> Any:
    if suffix == ".txt":
        return _from_lines([line.strip() for line in content.splitlines() if line.strip()])
    if suffix == ".csv":
        return _from_csv(content)
    if suffix in (".yaml", ".yml"):
        return _from_structure(parse_yaml(content))
    if suffix == ".json":
        return _from_structure(parse_json(content))
    raise DataFileError(f"a label file ends in {', '.join(LABEL_FILES)}; got {suffix or 'no ending'!r}.")


def _from_lines(names: list[str]) -> list[str]:
    """Names; lines that all look like `name: description` would be asked as they stand."""
    if len(names) > 1 and all(": " in name for name in names):
        raise DataFileError(
            f"every line is like {brief(names[0])}, and a .txt file holds names alone. Call it .yaml for names with"
            " descriptions."
        )
    return names


def _from_csv(content: str) -> list[Label]:
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    rows = [row for row in reader if any(cell.strip() for cell in row)]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    if "name" not in header:
        if any(len(row) != 1 for row in rows):
            raise DataFileError(f"a label file with several columns needs a header with 'name'; got {brief(header)}.")
        return [Label(row[0].strip()) for row in rows]
    unknown = [name for name in header if name not in ("", "name", "description", "parent")]
    if unknown:
        raise DataFileError(f"a label file has the columns name, description and parent; got {listed(unknown)} too.")
    if twice := next((name for name, count in Counter(header).items() if name and count > 1), None):
        raise DataFileError(f"the header has the column {twice!r} twice. Remove one of them.")
    wide = next((row for row in rows if any(cell.strip() for cell in row[len(header) :])), None)
    if wide:
        raise DataFileError(
            f"{brief(wide)} has more cells than the header {header}. Put a text that contains commas in quotes."
        )
    records = [dict(zip(header, (cell.strip() for cell in row), strict=False)) for row in rows[1:]]
    return [
        Label(record.get("name", ""), record.get("description") or None, record.get("parent") or None)
        for record in records
    ]


def _from_structure(value: Any) -> list[Label]:
    if isinstance(value, dict):
        if str(value.get("format", "")).startswith("setscore.classifier/"):
            raise DataFileError("this is a saved classifier, which has labels of its own: it goes with --classifier.")
        return [_from_pair(name_of(name), entry) for name, entry in value.items()]
    if value is None:
        raise DataFileError("the file is empty. Labels are a list, or a mapping of names to descriptions.")
    if not isinstance(value, list):
        raise DataFileError(
            f"labels are a list or a mapping, got {type(value).__name__}. Write a dash before each name, or name:"
            " description."
        )
    return [_from_record(entry) if isinstance(entry, dict) else Label(name_of(entry)) for entry in value]


def _from_pair(name: Any, entry: Any) -> Label:
    """A name with its description, or with a mapping of description and parent."""
    if not isinstance(entry, dict):
        return Label(name, _text(entry, "description", name))
    if unknown := [key for key in entry if key not in ("description", "parent")]:
        raise DataFileError(f"label {brief(name)} has a description and perhaps a parent, got {listed(unknown)} too.")
    return Label(name, _text(entry.get("description"), "description", name), _text(entry.get("parent"), "parent", name))


def _from_record(entry: dict[Any, Any]) -> Label:
    if "name" not in entry or not entry.keys() <= {"name", "description", "parent"}:
        raise DataFileError(f"a label has a 'name' and perhaps a 'description' and a 'parent', got {brief(entry)}.")
    return _from_pair(name_of(entry["name"]), {key: value for key, value in entry.items() if key != "name"})


def name_of(value: Any) -> Any:
    """YAML reads `no`, `on` and `1` as other things than text; say so instead of guessing."""
    if value is not None and not isinstance(value, str):
        raise LabelError(f"the label {brief(value)} was read as {type(value).__name__}, not text. Put it in quotes.")
    return value


def _text(value: Any, what: str, name: Any) -> str | None:
    """A description or a parent, None where it is left empty. `no` is no empty one, though YAML reads it as False."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise LabelError(
            f"the {what} of label {brief(name)} was read as {type(value).__name__} ({brief(value)}), not text."
            " Put it in quotes, or leave it empty for none."
        )
    return value
