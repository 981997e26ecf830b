"""Sphinx configuration."""

from setscore import __version__

project = "SetScore"
author = "The SetScore developers"
copyright = "The SetScore developers, Apache-2.0"  # noqa: A001
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"SetScore {release}"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_typehints = "description"
exclude_patterns = ["_build"]
suppress_warnings = ["myst.xref_missing"]
