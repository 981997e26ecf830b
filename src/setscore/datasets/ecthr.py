"""ECtHR: facts of cases before the European Court of Human Rights, with articles of the Convention.

Task A asks which articles were violated (the paper's task, named "ecthr"), task B which were alleged to be ("ecthr-b").
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from setscore.datasets.dataset import Dataset, Entry, assemble
from setscore.datasets.files import class_names, field, jsonl_rows, parquet_rows, require, shards
from setscore.datasets.source import HUB_UNCHECKED, Home, Source, described
from setscore.records import LabelSet

FILES = {"train": "train.jsonl", "validation": "dev.jsonl", "test": "test.jsonl"}
TASKS = {"ecthr": ("violated", "ecthr_a"), "ecthr-b": ("alleged", "ecthr_b")}  # field here, folder in LexGLUE


def read(folder: Path, split: str, *, name: str) -> Dataset:
    """From JSONL (id, text, violated, alleged), or the Parquet files of LexGLUE in its folder ecthr_a or ecthr_b."""
    labels = described("ecthr")
    articles, task = TASKS[name]
    if parts := shards(folder if folder.name == task else folder / task, split):
        return assemble(name, split, list(_parquet(parts, labels, split)), labels, origin=parts[0])
    path = require(folder, FILES[split], f"{task}/{split}-*.parquet")
    note = f"{path.name} is a local file; whether its documents are those of LexGLUE cannot be told from it."
    return assemble(name, split, list(_jsonl(path, articles, split)), labels, origin=path, notes=[note])


def _jsonl(path: Path, articles: str, split: str) -> Iterator[Entry]:
    for number, where, row in jsonl_rows(path):
        names = tuple(str(article) for article in field(row, articles, list, where))
        yield Entry(str(row.get("id") or f"{split}-{number}"), _joined(row, where), names)


def _parquet(paths: list[Path], labels: LabelSet, split: str) -> Iterator[Entry]:
    for number, where, row in parquet_rows(paths, ("text", "labels")):
        names = class_names(field(row, "labels", list, where), labels.names, where)
        yield Entry(f"{split}-{number}", _joined(row, where), names)


def _joined(row: dict[str, object], where: str) -> str:
    """The facts: a text, or the list of paragraphs that LexGLUE has."""
    text = field(row, "text", (str, list), where)
    return text if isinstance(text, str) else "\n".join(str(paragraph) for paragraph in text)


def _source(name: str, task: str, differs: tuple[str, ...]) -> Source:
    config = TASKS[name][1]
    return Source(
        name=name,
        title=f"ECtHR, task {task}",
        folder="ecthr",
        origin="HUDOC of the European Court of Human Rights; LexGLUE, Chalkidis et al. 2021 and 2022",
        licence="CC BY 4.0",
        labels=10,
        cardinality="1.7 (the paper's test slice, as printed)" if task == "A" else "not published",
        sizes={"train": 9000, "validation": 1000, "test": 1000},
        test_size=1000,
        read=partial(read, name=name),
        homes=(Home("coastalcph/lex_glue", f"{config}/{{split}}-*.parquet"),),
        obtain=f"the folder {config} with its Parquet files from huggingface.co/datasets/coastalcph/lex_glue",
        differs=("LexGLUE gives the facts as a list of paragraphs; they are joined by line breaks.", *differs),
        unchecked=(HUB_UNCHECKED,),
    )


SOURCE = _source("ecthr", "A", ())
SOURCE_B = _source("ecthr-b", "B", ("The paper uses task A only.",))
