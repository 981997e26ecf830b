"""A user's own documents with labels as a Dataset, and the inventory as users write it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from setscore.datasets.dataset import SHOWN, Dataset, Entry, Ids, left_out, written
from setscore.datasets.files import MissingColumnError, csv_rows, ending, jsonl_rows, parquet_rows
from setscore.datasets.formats import open_table
from setscore.datasets.labels import read_labels
from setscore.errors import DataFileError, LabelError, SetScoreError, brief, counted, plural
from setscore.records import LABEL_FILES, BoolArray, LabelSet, text_problem
from setscore.storage import listed, near_file

Rows = Iterable[tuple[int, str, Mapping[str, Any]]]
WITH_FIELDS = (".jsonl", ".json")  # rows name their own fields; in the others a header does


def _table_rows(path: Path, columns: Sequence[str]) -> Rows:
    """Rows of the other formats that `setscore classify` reads; one that cannot be read is an error."""
    with open_table(path) as table:
        if table.header is not None and (absent := [column for column in columns if column not in table.header]):
            raise MissingColumnError(path, absent, "its first row has", table.header)
        for record in table.records:
            where = f"row {record.number} of {path}"
            if record.problem is not None:
                raise DataFileError(f"{where} {record.problem}.")
            yield record.number, where, record.values


READERS: dict[str, Callable[[Path, list[str]], Rows]] = {
    ".csv": csv_rows,
    ".tsv": _table_rows,
    ".jsonl": lambda path, _: jsonl_rows(path),
    ".json": _table_rows,
    ".parquet": lambda path, columns: parquet_rows([path], columns),
    ".xlsx": _table_rows,
}
BLANK = "(blank)"  # the group of rows whose cell is empty


@dataclass(frozen=True)
class _Columns:
    """Where a row keeps what. Without an `id` the column "id" is taken where there is one."""

    text: str
    labels: str
    id: str | None
    group: str | None

    @property
    def required(self) -> list[str]:
        return [column for column in (self.text, self.labels, self.id, self.group) if column is not None]


def load_files(
    texts_file: str | Path,
    labels: str | Path | LabelSet,
    *,
    text_column: str = "text",
    labels_column: str = "labels",
    id_column: str | None = None,
    group_column: str | None = None,
    separator: str | None = None,
    ignore_unknown: bool = False,
    name: str = "",
    split: str = "",
) -> Dataset:
    """A dataset from a file of documents (as `READERS` names them) and an inventory or its file (`read_labels`).

    The labels of a document are a list of names, or one text with the names between `separator`s; an empty one means
    none. Without a `separator` it is `|` in a text that has one, as `setscore classify` writes them, and else a comma;
    a text that is the name of a label is that label. Ids come from `id_column`, without one from the column "id" where
    there is one; where an id is missing, the row's number stands in, as "row 7" where others have ids, which is noted.
    `group_column` holds the groups to measure by. A column that is named must be there. Texts may be compressed (.xz,
    .gz).

    A row without a usable text is left out and named in `notes`, and rows that `setscore classify` could not read and
    marked so, with an "error" and without a text, are counted there. A row without labels that can be read is an error,
    and so is a label outside the inventory, which may be a slip of the pen; `ignore_unknown` leaves such labels out and
    notes them. One that differs from exactly one label only in capitals is that label, which is noted.
    """
    path = Path(texts_file)
    if separator == "":
        raise SetScoreError("the separator of labels is empty. Give the text between two labels, such as ',' or '|'.")
    suffix = ending(path)
    if suffix not in READERS:
        raise DataFileError(f"a file of labelled documents ends in {', '.join(READERS)}; got {path.name!r}.")
    if not path.is_file():
        raise DataFileError(f"the file {path} does not exist.{near_file(path)}")
    inventory = labels if isinstance(labels, LabelSet) else read_labels(labels)
    columns = _Columns(text_column, labels_column, id_column, group_column)
    names = partial(split_names, separator=separator, known=frozenset(inventory.names))
    try:
        rows = list(READERS[suffix](path, columns.required))
    except MissingColumnError as error:
        if not {text_column, labels_column} & set(error.absent):
            raise
        remedy = "Name yours with --text-column and --labels-column, in Python text_column and labels_column."
        if set(inventory.names) & set(error.there):
            remedy = "A column for each label is not read: write a document's labels into one column, as in a|b."
        raise DataFileError(f"{error} {remedy}") from error
    read = [row for row in rows if not _marked(row[2], columns)]
    header = None if suffix in WITH_FIELDS or not rows else tuple(rows[0][2])
    found, blank = _entries(read, columns, names, Ids(columns.id or "id", header))
    entries, notes = _distinct(found)
    if marked := len(rows) - len(read):
        notes += (f"{counted(marked, 'row')} with an error of `setscore classify` in place of a text left out.",)
    if blank:
        notes += (left_out(blank, len(rows)),)
    if not entries:
        raise DataFileError(f"{path} holds no documents. {notes[-1] if blank else ''}".strip())
    found, respelt = _as_in_the_inventory(found, inventory.names)
    try:
        gold, ignored = _gold(found, inventory, separator, ignore_unknown=ignore_unknown)
    except LabelError as error:
        raise LabelError(f"{path}: {error}") from error
    texts, ids = tuple(entry.text for entry in entries), tuple(entry.id for entry in entries)
    groups = () if group_column is None else tuple(entry.group for entry in entries)
    return Dataset(name or path.name, split, texts, ids, inventory, gold, notes + respelt + ignored, groups)


def parse_labels(text: str) -> LabelSet:
    """The inventory: from the name of a file, or names separated by commas."""
    if Path(text).suffix.lower() in LABEL_FILES or ("," not in text and _is_file(text)):
        return read_labels(text)
    if "," not in text and re.search(r"\.[A-Za-z]{2,5}$", text):
        raise LabelError(f"{brief(text)} looks like a file; a label file ends in {', '.join(LABEL_FILES)}.")
    if "," not in text and (sign := re.search("[;|]", text)):
        raise LabelError(
            f"{brief(text)} would be one label: labels are separated by commas, not by {sign[0]!r}. A name that holds"
            " it can stand in a file."
        )
    return LabelSet.of([name.strip() for name in text.split(",")] if text.strip() else [])


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # a name longer than a file may have
        return False


def split_names(text: str, *, separator: str | None = None, known: frozenset[str]) -> list[str]:
    """The names of labels in one text."""
    if separator is None:
        if text.strip() in known:  # a name may hold a comma
            return [text.strip()]
        bars = "|" in text and not any("|" in name for name in known)
        separator = "|" if bars else ","
    return [part.strip() for part in text.split(separator) if part.strip()]


def _as_in_the_inventory(
    entries: Mapping[int, Entry], names: Sequence[str]
) -> tuple[dict[int, Entry], tuple[str, ...]]:
    """Gold labels spelt as the one label from which they differ only in capitals, and a note that counts those."""
    known, alike = frozenset(names), Counter(name.casefold() for name in names)
    only = {name.casefold(): name for name in names if alike[name.casefold()] == 1}
    spelt = {
        label: label if label in known else only.get(label.casefold(), label)
        for entry in entries.values()
        for label in entry.labels
    }
    made = {n: replace(entry, labels=tuple(spelt[label] for label in entry.labels)) for n, entry in entries.items()}
    changed = [label for entry in entries.values() for label in entry.labels if spelt[label] != label]
    if not changed:
        return made, ()
    differ = f"{counted(len(changed), 'gold label')} {plural(len(changed), 'differs', 'differ')}"
    first = f"{brief(changed[0])} was read as {brief(spelt[changed[0]])}"
    return made, (
        f"{differ} from a label only in capitals and {plural(len(changed), 'counts', 'count')} as it: {first}.",
    )


def _gold(
    entries: Mapping[int, Entry], inventory: LabelSet, separator: str | None, *, ignore_unknown: bool
) -> tuple[BoolArray, tuple[str, ...]]:
    """Gold labels [n, m], and a note on those outside the inventory; an error, unless they are to be ignored."""
    known = frozenset(inventory.names)
    rows = [number for number, entry in entries.items() if not known.issuperset(entry.labels)]
    if not rows:
        return inventory.indicator([entry.labels for entry in entries.values()]), ()
    outside = [label for number in rows for label in entries[number].labels if label not in known]
    hint = _hint(set(outside), inventory.names, separator)
    places = f"{plural(len(rows), 'row')} {', '.join(map(str, rows[:SHOWN]))}{', …' if len(rows) > SHOWN else ''}"
    if not ignore_unknown:
        try:
            inventory.indicator([entries[number].labels for number in rows])
        except LabelError as error:
            remedy = (
                "Add what is missing to the labels, mend the rows, or leave such gold labels out (--ignore-unknown)."
            )
            raise LabelError(f"{error} See {places}.{hint} {remedy}") from error
    names = list(dict.fromkeys(outside))
    shown = listed(names, SHOWN)
    note = f"{counted(len(outside), 'gold label')} outside the inventory left out: {shown}, in {places}.{hint}"
    inside = [[label for label in entry.labels if label in known] for entry in entries.values()]
    return inventory.indicator(inside), (note,)


def _hint(unknown: set[str], names: Sequence[str], separator: str | None) -> str:
    """What may be the matter if gold labels are unknown: capitals, or the sign between labels; else nothing."""
    plain = {name.casefold(): name for name in names}
    if near := next((label for label in sorted(unknown) if label.casefold() in plain), None):
        one = brief(plain[near.casefold()])
        return f" {brief(near)} differs from more than one label only in capitals, as from {one}."
    sign = separator or "|"
    for name in names:
        parts = {part.strip() for part in name.split(sign)}
        if len(parts) > 1 and (parts & unknown or any(sign in label for label in unknown)):
            return (
                f" The label {brief(name)} has {sign!r} in its name, so {sign!r} cannot separate labels in one text."
                " Rename it, give the labels as a list (.jsonl), or separate them with a sign that occurs in no name"
                " (--separator)."
            )
    other = next((sign for sign in ",|;/" if sign != separator and any(sign in label for label in unknown)), None)
    return f" Is {other!r} the sign between labels? Then give it as the separator (--separator)." if other else ""


def has_gold(texts_file: str | Path, text_column: str = "text", labels_column: str = "labels") -> bool:
    """Whether a file of documents has a column of labels: a .txt has none, another tells by its header or first row."""
    path = Path(texts_file)
    suffix = ending(path)
    if suffix == ".txt":
        return False
    if suffix not in READERS or suffix == ".parquet" or not path.is_file():
        return True  # loading it tells
    _, _, row = next(iter(READERS[suffix](path, [text_column])), (0, "", {labels_column: ""}))
    return labels_column in row


def _marked(row: Mapping[str, Any], columns: _Columns) -> bool:
    """Whether `setscore classify` could not read this row: it wrote an error and neither text nor labels."""
    return bool(written(row.get("error"))) and not any(written(row.get(key)) for key in (columns.text, columns.labels))


def _entries(
    rows: Rows, columns: _Columns, split: Callable[[str], list[str]], ids: Ids
) -> tuple[dict[int, Entry], dict[int, str]]:
    """The documents by the number of their row, and what is wrong with other rows' texts.

    A row whose labels cannot be read is an error that names all of them: guessing there would change what is measured.
    """
    entries: dict[int, Entry] = {}
    blank: dict[int, str] = {}
    problems: list[str] = []
    for number, where, row in rows:
        name, _ = ids.name(number, row.get(columns.id or "id"))
        entry = _entry(row, name, columns, split)
        if isinstance(entry, Entry):
            entries[number] = entry
        elif columns.text in row and (problem := text_problem(row[columns.text])):
            blank[number] = problem
        else:
            problems.append(f"{where} {entry}")
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise DataFileError(f"{counted(len(problems), 'row')} cannot be used: {'; '.join(problems[:5])}{more}.")
    return entries, blank


def _entry(row: Mapping[str, Any], name: str, columns: _Columns, split: Callable[[str], list[str]]) -> Entry | str:
    """The document of a row, or what is wrong with it."""
    if absent := [column for column in columns.required if column not in row]:
        return f"has no field {', '.join(absent)}; it has {listed(map(str, row), quoted=False) or 'none'}"
    text, labels = row[columns.text], row[columns.labels]
    if problem := text_problem(text):
        return problem
    if isinstance(labels, str):
        labels = split(labels)
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return f"has the labels {brief(labels)}, which are neither a list of names nor one text"
    group = "" if columns.group is None else written(row[columns.group]).strip() or BLANK
    return Entry(name, text, tuple(labels), group)


def _distinct(entries: Mapping[int, Entry]) -> tuple[list[Entry], tuple[str, ...]]:
    """Entries with different ids, and a note if they had not: a repeated id gets the number of its row behind it."""
    seen: set[str] = set()
    made: list[Entry] = []
    again: list[str] = []
    for number, entry in entries.items():
        if entry.id in seen:
            again.append(f"{brief(entry.id)} in row {number}")
            entry = replace(entry, id=f"{entry.id} (row {number})")  # noqa: PLW2901
        seen.add(entry.id)
        made.append(entry)
    notes = []
    if unnamed := [entry.id for number, entry in entries.items() if entry.id == f"row {number}"]:
        have, named = plural(len(unnamed), "has", "have"), plural(len(unnamed), "it is", "they are")
        notes.append(f"{counted(len(unnamed), 'row')} {have} no id; {named} named by number, as {unnamed[0]!r}.")
    if again:
        count = f"{counted(len(again), 'row')} {plural(len(again), 'repeats', 'repeat')}"
        notes.append(f"{count} an id, the first is {again[0]}; all rows are kept.")
    return made, tuple(notes)
