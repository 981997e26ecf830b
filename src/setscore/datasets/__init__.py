"""Reading labels and documents."""

from setscore.datasets.documents import Columns, Row, read_documents, read_stream, text_rows
from setscore.datasets.labels import parse_labels, read_labels

__all__ = ["Columns", "Row", "parse_labels", "read_documents", "read_labels", "read_stream", "text_rows"]
