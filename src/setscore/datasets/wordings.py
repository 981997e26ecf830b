"""Other wordings of labels from a file, to be compared with those in use."""

from pathlib import Path
from typing import Any

from setscore.datasets.labels import name_of
from setscore.datasets.yaml_values import LIMITS, parse_yaml
from setscore.errors import DataFileError, LabelError, brief, unknown_name
from setscore.records import LabelSet, text_problem
from setscore.storage import decoded, one_line, parse_json, read_limited

WORDING_FILES = (".yaml", ".yml", ".json")


def read_wordings(path: str | Path, labels: LabelSet) -> dict[str, tuple[str, ...]]:
    """By label, the descriptions that it could have: a mapping of names to lists of texts, in YAML or JSON."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WORDING_FILES:
        raise DataFileError(f"a file of wordings ends in {', '.join(WORDING_FILES)}; got {path}.")
    try:
        with path.open("rb") as file:
            content = decoded(read_limited(file, LIMITS))
        value = parse_json(content) if suffix == ".json" else parse_yaml(content)
    except OSError as error:
        raise DataFileError(f"the file of wordings {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataFileError(f"the file of wordings {path} is broken: {one_line(error)}") from error
    if not isinstance(value, dict) or not value:
        raise DataFileError(
            f"{path}: wordings are lists of texts by the name of a label, got {brief(value)}. Write the name and a"
            " colon, and below it each wording after a dash."
        )
    return {name: _texts(path, name, texts, labels) for name, texts in value.items()}


def _texts(path: Path, name: Any, texts: Any, labels: LabelSet) -> tuple[str, ...]:
    try:
        known = name_of(name) in labels.names
    except LabelError as error:  # `no` and `1` are no texts in YAML
        raise LabelError(f"{path}: {error}") from error
    if not known:
        raise LabelError(f"{path}: {unknown_name('label', str(name), labels.names)}")
    if not isinstance(texts, list) or not texts or any(text_problem(text) for text in texts):
        raise DataFileError(
            f"{path}: the wordings of {name!r} are a list of texts, got {brief(texts)}. Write each after a dash, in"
            " quotes where YAML reads something else than a text."
        )
    return tuple(texts)
