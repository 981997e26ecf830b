"""Sphinx configuration."""

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from setscore import __version__

sys.path.insert(0, str(Path(__file__).parent))  # public_names

project = "SetScore"
author = "The SetScore developers"
copyright = "The SetScore developers, Apache-2.0"  # noqa: A001
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "public_names"]
html_theme = "furo"
html_title = f"SetScore {release}"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
default_role = "code"  # docstrings put code between single backticks
autodoc_typehints = "none"
autodoc_member_order = "bysource"
exclude_patterns = ["_build"]

# Two spaces or more inside a line, or at its start: a small table or a formula, to be shown as it is written.
LAID_OUT = re.compile(r"(^|\S) {2,}\S")


def show_as_written(  # noqa: PLR0917  Sphinx calls it so
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings are plain text; paragraphs that are laid out in columns become literal blocks."""
    paragraphs = "\n".join(lines).strip().split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        if any(LAID_OUT.search(line) for line in paragraph.splitlines()):
            paragraphs[number] = "::\n\n" + "\n".join(f"    {line}" for line in paragraph.splitlines())
    lines[:] = [*"\n\n".join(paragraphs).splitlines(), ""]


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", show_as_written)
