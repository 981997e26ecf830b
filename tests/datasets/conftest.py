"""Small files in official formats, made where a test needs them."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Writes `content` into the data folder, compressed if the ending says so; `cut` bytes are lost at the end."""

    def write(name: str, content: str | bytes, ending: str = "", cut: int = 0) -> Path:
        path = tmp_path / f"{name}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = COMPRESS[ending](content.encode() if isinstance(content, str) else content)
        path.write_bytes(data[: len(data) - cut])
        return path

    return write


@pytest.fixture
def put_parquet(tmp_path: Path) -> Callable[..., Path]:
    """Writes columns as a Parquet file into the data folder."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(name: str, columns: dict[str, list[Any]], folder: Path = tmp_path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.table(columns), path)
        return path

    return write


@pytest.fixture
def put_workbook(tmp_path: Path) -> Callable[..., Path]:
    """Writes sheets of rows as an Excel file into the data folder; the first is called "first"."""
    excel = pytest.importorskip("openpyxl")

    def write(name: str, first: list[list[Any]], **others: list[list[Any]]) -> Path:
        book = excel.Workbook()
        book.remove(book.active)
        for title, rows in {"first": first, **others}.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        path = tmp_path / name
        book.save(path)
        return path

    return write
