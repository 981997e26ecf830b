"""The first sheet of an Excel file, row by row, as text."""

import importlib
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setscore.datasets.files import UNPACKED
from setscore.errors import DataFileError, MissingExtraError, SetScoreError, brief, plural
from setscore.storage import megabytes, one_line

MOST_ROWS = 1_048_576  # that Excel has


class OtherSheetsWarning(UserWarning):
    """A workbook has more than the sheet that is read."""


@contextmanager
def open_workbook(path: Path) -> Iterator[Iterator[tuple[str, ...]]]:
    """Rows of cells, the header among them; empty rows are left out, and a row may be shorter than others."""
    try:
        excel = importlib.import_module("openpyxl")
    except ImportError as error:
        raise MissingExtraError(f"the Excel file {path.name}", "excel") from error
    try:
        _check_size(path)
        book = excel.load_workbook(path, read_only=True, data_only=True)
        try:
            yield _rows(book, path)
        finally:
            book.close()
    except Exception as error:  # of many kinds: the parts of a damaged file are missing, cut or of other types
        if isinstance(error, SetScoreError | MemoryError):
            raise
        raise DataFileError(
            f"{path} cannot be read as an Excel file ({one_line(error)}). Save it as .xlsx, without a password."
        ) from error


def _check_size(path: Path) -> None:
    """An .xlsx is a ZIP file, and openpyxl holds one of its parts whole: the texts that occur more than once."""
    with zipfile.ZipFile(path) as file:
        if sum(part.file_size for part in file.infolist()) > UNPACKED:
            raise DataFileError(f"{path} is larger than {megabytes(UNPACKED)} unpacked. Save it as CSV.")


def _rows(book: Any, path: Path) -> Iterator[tuple[str, ...]]:
    sheets = book.worksheets
    if not sheets:
        raise DataFileError(f"{path} has no sheet with cells.")
    if others := [sheet.title for sheet in sheets[1:] if any(next(_cells(sheet), ()))]:
        warnings.warn(
            f"{path.name} has {len(others)} more {plural(len(others), 'sheet')}, such as {brief(others[0])}; only the"
            f" first, {brief(sheets[0].title)}, is read.",
            OtherSheetsWarning,
            stacklevel=2,
        )
    for number, cells in enumerate(_cells(sheets[0])):
        if number > MOST_ROWS:
            raise DataFileError(f"{path} has more rows than the {MOST_ROWS:,} of an Excel sheet.")
        if any(cells):
            yield cells


def _cells(sheet: Any) -> Iterator[tuple[str, ...]]:
    """Every row as text, numbers and dates too, as a CSV file would have them."""
    sheet.reset_dimensions()  # programs other than Excel write wrong ones, and columns would be lost
    return (tuple(_text(cell) for cell in row) for row in sheet.iter_rows(values_only=True))


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
