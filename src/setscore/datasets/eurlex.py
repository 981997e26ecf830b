"""EURLEX: acts of the European Union with EuroVoc microthesauri."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setscore.datasets.dataset import Dataset, Entry, assemble
from setscore.datasets.files import class_names, field, find, jsonl_rows, parquet_rows, read_bytes, require, shards
from setscore.datasets.source import HUB_UNCHECKED, Home, Source, descriptions
from setscore.errors import DataFileError
from setscore.records import Label, LabelSet
from setscore.storage import decoded, one_line, parse_json

FILES = {"train": "train.jsonl", "validation": "dev.jsonl", "test": "test.jsonl"}

# LexGLUE stores concept identifiers: the 127 microthesauri of EuroVoc count up from 100163. It leaves 27 rare ones out.
FIRST = 100163
LEFT_OUT = (
    *range(100164, 100168), 100178, 100181, 100182, 100188, 100203, *range(100208, 100212), 100213,
    *range(100216, 100220), 100225, 100228, 100236, 100251, 100267, *range(100286, 100290),
)  # fmt: skip
RENAMED = {"international balance": "international security"}  # one microthesaurus, two releases of EuroVoc


def concepts() -> dict[str, str]:
    """Names of the 127 microthesauris' concept identifiers."""
    return {str(FIRST + position): name for position, name in enumerate(descriptions("eurlex"))}


def lexglue_labels() -> LabelSet:
    """The inventory of LexGLUE: 100 microthesauri in the order of its label numbers."""
    return _described([name for concept, name in concepts().items() if int(concept) not in LEFT_OUT])


def read(folder: Path, split: str) -> Dataset:
    """From JSONL (id, text, labels) with labels.json, or the Parquet files of LexGLUE."""
    if parts := shards(folder, split):
        labels = lexglue_labels()
        return assemble("eurlex", split, list(_parquet(parts, labels, split)), labels, origin=parts[0])
    path = require(folder, FILES[split], f"{split}-*.parquet")
    inventory = find(folder, "labels.json")
    labels = _described(_names(inventory)) if inventory else lexglue_labels()
    note = f"{path.name} is a local file; whether its documents are those of LexGLUE cannot be told from it."
    return assemble("eurlex", split, list(_jsonl(path, split)), labels, origin=path, notes=[note])


def _jsonl(path: Path, split: str) -> Iterator[Entry]:
    named = concepts()
    for number, where, row in jsonl_rows(path):
        names = [str(label) for label in field(row, "labels", list, where)]
        identifier = str(row.get("id") or f"{split}-{number}")
        yield Entry(identifier, field(row, "text", str, where), tuple(named.get(name, name) for name in names))


def _parquet(paths: list[Path], labels: LabelSet, split: str) -> Iterator[Entry]:
    for number, where, row in parquet_rows(paths, ("text", "labels")):
        names = class_names(field(row, "labels", list, where), labels.names, where)
        yield Entry(f"{split}-{number}", field(row, "text", str, where), names)


def _names(path: Path) -> list[str]:
    try:
        names: Any = parse_json(decoded(read_bytes(path)))
    except DataFileError:
        raise
    except ValueError as error:
        raise DataFileError(f"{path} is not valid JSON, perhaps it is cut off: {one_line(error)}") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataFileError(f"{path} must hold a list of label names.")
    return names


def _described(names: list[str]) -> LabelSet:
    known = descriptions("eurlex")
    return LabelSet(tuple(Label(name, known.get(RENAMED.get(name, name))) for name in names), "description")


SOURCE = Source(
    name="eurlex",
    title="EURLEX",
    folder="eurlex",
    origin="EUR-Lex, annotated by the EU Publications Office; LexGLUE, Chalkidis et al. 2022",
    licence="CC BY 4.0",
    labels=100,
    cardinality="5.3 (the paper's test slice, as printed)",
    sizes={"train": 55000, "validation": 5000, "test": 5000},
    test_size=800,
    read=read,
    homes=(Home("coastalcph/lex_glue", "eurlex/{split}-*.parquet"),),
    obtain="the Parquet files from huggingface.co/datasets/coastalcph/lex_glue, folder eurlex",
    differs=(
        "The paper names EURLEX57K (45k / 6k / 6k, level-1 concepts) but loads LexGLUE, which has 55k / 5k / 5k and the"
        " 100 most frequent level-2 concepts; LexGLUE is what is read here.",
        "LexGLUE stores concept identifiers; here a label's name is the EuroVoc microthesaurus.",
    ),
    unchecked=(HUB_UNCHECKED,),
)
