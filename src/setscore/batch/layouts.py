"""How predictions are written: a row for each row that was read, as Parquet, JSONL or CSV.

id             of the row
labels         that apply, the most probable first; joined by | in CSV
probabilities  of every label, in the order of the inventory and empty where it was not asked: one list (an object
               in JSONL), or a column a label
log_odds       the same of the answers themselves, where they are wanted
truncated      whether only the beginning was read
undecided      labels too near to their threshold, where the calibration has a margin
error          why this row has nothing else
regime         what the probabilities rest on
identity       of everything that made them: the same in all rows of a batch
"""

import csv
import importlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from setscore.batch.folders import Sealing
from setscore.datasets.remote import located
from setscore.errors import MissingExtraError, SetScoreError, unknown_name
from setscore.predictions import Prediction

SPREADS = ("list", "columns")
DIGITS = 6  # of probabilities and log-odds in texts
GROUP = 2**20  # values of a Parquet file between two row groups: they are held in memory


@dataclass(frozen=True)
class Layout:
    """What is written of each row.

    form      "parquet", "jsonl" or "csv"
    spread    probabilities as one "list", or in "columns", one a label
    log_odds  whether log-odds are written too
    """

    form: str = "parquet"
    spread: str = "list"
    log_odds: bool = False

    def __post_init__(self) -> None:
        if self.form not in WRITERS:
            raise SetScoreError(unknown_name("output format", self.form, WRITERS))
        if self.spread not in SPREADS:
            raise SetScoreError(f"probabilities are written as {' or '.join(SPREADS)}, got {self.spread!r}.")
        if self.form == "csv" and self.spread == "list":
            raise SetScoreError("CSV has no lists; write probabilities as columns, or JSONL or Parquet.")

    @classmethod
    def of(cls, out: str, form: str | None = None, spread: str | None = None, *, log_odds: bool = False) -> "Layout":
        """What is not given goes by the ending of `out`: Parquet for a folder, a column a label in CSV."""
        form = form or ending_of(out) or "parquet"
        return cls(form, spread or ("columns" if form == "csv" else "list"), log_odds)

    def values(self) -> Iterator[tuple[str, str, Callable[[Prediction], Mapping[str, float]]]]:
        """What numbers are written: their name, what stands before a label's name in columns, and where they are."""
        yield "probabilities", "", lambda prediction: prediction.probabilities
        if self.log_odds:
            yield "log_odds", "log_odds ", lambda prediction: prediction.log_odds


@dataclass(frozen=True)
class Head:
    """What all rows have in common."""

    layout: Layout
    label_names: tuple[str, ...]
    abstains: bool
    identity: str = ""

    def __post_init__(self) -> None:
        if twice := next((name for name, count in Counter(self.columns()).items() if count > 1), None):
            raise SetScoreError(
                f"the label {twice!r} has the name of another column. Write probabilities as a list, in JSONL or"
                " Parquet."
            )

    def columns(self) -> list[str]:
        numbers = [
            column
            for name, before, _ in self.layout.values()
            for column in ([name] if self.layout.spread == "list" else [before + label for label in self.label_names])
        ]
        doubtful = ["undecided"] if self.abstains else []
        return ["id", "labels", *numbers, "truncated", *doubtful, "error", "regime", "identity"]

    def row(self, prediction: Prediction) -> dict[str, Any]:
        """All but the numbers."""
        failed = prediction.error is not None
        row: dict[str, Any] = {
            "id": prediction.id,
            "labels": None if failed else prediction.labels,
            "truncated": None if failed else prediction.truncated,
            "error": prediction.error,
            "regime": prediction.regime,
            "identity": self.identity,
        }
        return row | ({"undecided": prediction.undecided} if self.abstains else {})

    def numbers(self, prediction: Prediction, number: Callable[[float], Any]) -> dict[str, Any]:
        """A column a label."""
        return {
            before + label: None if (value := found.get(label)) is None else number(value)
            for _, before, of in self.layout.values()
            for found in [of(prediction)]
            for label in self.label_names
        }


class Writer(Protocol):
    """Writes predictions to an open file."""

    def __init__(self, file: Sealing, head: Head) -> None: ...
    def write(self, predictions: Sequence[Prediction]) -> None: ...
    def close(self) -> None: ...


class JsonLines:
    """An object a line."""

    def __init__(self, file: Sealing, head: Head) -> None:
        self._file, self._head = file, head

    def write(self, predictions: Sequence[Prediction]) -> None:
        lines = (json.dumps(self._object(prediction), ensure_ascii=False) for prediction in predictions)
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        pass

    def _object(self, prediction: Prediction) -> dict[str, Any]:
        head, row = self._head, self._head.row(prediction)
        if head.layout.spread == "columns":
            row |= head.numbers(prediction, _rounded)
        elif prediction.error is None:
            row |= {
                name: {label: _rounded(value) for label, value in of(prediction).items()}
                for name, _, of in head.layout.values()
            }
        return {name: row.get(name) for name in head.columns()}


class Csv:
    """A header, then a row a line."""

    def __init__(self, file: Sealing, head: Head) -> None:
        self._file, self._head = file, head
        self._put([head.columns()])

    def write(self, predictions: Sequence[Prediction]) -> None:
        self._put(map(self._cells, predictions))

    def close(self) -> None:
        pass

    def _cells(self, prediction: Prediction) -> list[str]:
        row = self._head.row(prediction) | self._head.numbers(prediction, lambda value: f"{value:.{DIGITS}f}")
        return [_cell(row[name]) for name in self._head.columns()]

    def _put(self, rows: Iterable[Sequence[str]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode())


class Parquet:
    """Columns. Numbers are 32-bit floats; whatever was decided was decided before."""

    def __init__(self, file: Sealing, head: Head) -> None:
        self._arrow, parquet = arrow(), importlib.import_module("pyarrow.parquet")
        self._head, self._schema = head, self._schema_of(head)
        self._waiting: list[Any] = []
        self._values = 0
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, predictions: Sequence[Prediction]) -> None:
        self._waiting.append(self._batch(predictions))
        self._values += len(predictions) * len(self._schema) * max(1, len(self._head.label_names))
        if self._values >= GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(self._arrow.Table.from_batches(self._waiting, self._schema))
        self._waiting, self._values = [], 0

    def _batch(self, predictions: Sequence[Prediction]) -> Any:
        rows = [self._head.row(prediction) for prediction in predictions]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
        for name, before, of in self._head.layout.values():
            found = [of(prediction) for prediction in predictions]
            if self._head.layout.spread == "list":
                columns[name] = [
                    None if prediction.error is not None else [one.get(label) for label in self._head.label_names]
                    for prediction, one in zip(predictions, found, strict=True)
                ]
            else:
                columns |= {before + label: [one.get(label) for one in found] for label in self._head.label_names}
        return self._arrow.RecordBatch.from_pydict(columns, schema=self._schema)

    def _schema_of(self, head: Head) -> Any:
        pa = self._arrow
        kinds = {
            "id": pa.string(),
            "labels": pa.list_(pa.string()),
            "truncated": pa.bool_(),
            "undecided": pa.list_(pa.string()),
            "error": pa.string(),
            "regime": pa.string(),
            "identity": pa.string(),
        }
        lists = {name for name, _, _ in head.layout.values()} if head.layout.spread == "list" else set()
        number = pa.float32()
        fields = [
            pa.field(name, pa.list_(number) if name in lists else kinds.get(name, number)) for name in head.columns()
        ]
        about = {"setscore.labels": json.dumps(head.label_names), "setscore.identity": head.identity}
        return pa.schema(fields, metadata=about)


WRITERS: dict[str, type[Writer]] = {"parquet": Parquet, "jsonl": JsonLines, "csv": Csv}


def ending_of(out: str) -> str | None:
    """ "csv" of out.csv; None of a folder."""
    form = located(out).suffix.lower().removeprefix(".")
    return form if form in WRITERS else None


def arrow() -> Any:
    """pyarrow."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("Parquet", "batch") from error


def _rounded(value: float) -> float:
    return round(value, DIGITS)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else "|".join(value)
