"""Reading labels, documents and datasets."""

from setscore.datasets.dataset import Dataset, draw_rows
from setscore.datasets.documents import (
    DOCUMENT_FILES,
    Columns,
    InputRow,
    count_documents,
    read_documents,
    read_stream,
    text_rows,
)
from setscore.datasets.files import MissingFilesError
from setscore.datasets.labels import read_labels
from setscore.datasets.language import likely_not_english
from setscore.datasets.own import load_files, parse_labels
from setscore.datasets.registry import DATASETS, development_slices, find_source, load_dataset, paper_slices
from setscore.datasets.source import Home, Source, card

__all__ = [
    "DATASETS",
    "DOCUMENT_FILES",
    "Columns",
    "Dataset",
    "Home",
    "InputRow",
    "MissingFilesError",
    "Source",
    "card",
    "count_documents",
    "development_slices",
    "draw_rows",
    "find_source",
    "likely_not_english",
    "load_dataset",
    "load_files",
    "paper_slices",
    "parse_labels",
    "read_documents",
    "read_labels",
    "read_stream",
    "text_rows",
]
