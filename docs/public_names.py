"""The directive `public-names`: tables of the public names of modules, made from their docstrings.

The content names modules, one a line. Each becomes a heading with a table: a name with its parameters, and the first
sentence of its docstring. A constant shows what it holds. Nothing is kept by hand, so nothing can be stale.
"""

import importlib
import inspect
import re
from types import ModuleType
from typing import Any, get_args

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.util.docutils import SphinxDirective

PARAMETERS = 5  # of a function, shown at most
HELD = 12  # names in a constant, shown at most


def public(module: ModuleType) -> list[str]:
    """`__all__`, or the functions and classes that a module defines under a plain name; sorted."""
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    found = getattr(module, "__all__", {name for name in own if not name.startswith("_")})
    return sorted({name for name in found if not name.startswith("__")}, key=str.lower)


def signature(name: str, value: Any) -> str:
    """A function with its first parameters; a class or a constant by its name."""
    if not inspect.isroutine(inspect.unwrap(value)):
        return name
    names = list(inspect.signature(value).parameters)
    return f"{name}({', '.join(names[:PARAMETERS])}{', ...' if len(names) > PARAMETERS else ''})"


def sentence(value: Any) -> str:
    """The first sentence of a docstring, or what a constant holds."""
    if isinstance(value, str | int | float):
        return repr(value)
    if get_args(value) or isinstance(value, dict | tuple | list | set | frozenset):
        held = [str(one) for one in get_args(value) or value]
        return f"{', '.join(held[:HELD])}{', ...' if len(held) > HELD else ''}"
    told = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s|:\s*$", told)[0]


class PublicNames(SphinxDirective):
    """Sections with a table each, and an entry for every name in the index of the documentation."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return [self._section(name) for name in filter(None, map(str.strip, self.content))]

    def _section(self, name: str) -> nodes.Node:
        module = importlib.import_module(name)
        section = nodes.section(ids=[nodes.make_id(name)], names=[name])
        section += nodes.title(name, "", nodes.literal(name, name))
        rows = [self._row(module, one) for one in public(module)]
        group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (2, 3)), cols=2)
        group += nodes.tbody("", *rows)
        section += nodes.table("", group)
        return section

    def _row(self, module: ModuleType, name: str) -> nodes.Node:
        value, whole = getattr(module, name), f"{module.__name__}.{name}"
        target = nodes.make_id(f"name-{whole}")
        domain = self.env.domains.python_domain
        assert isinstance(domain, PythonDomain)
        if whole not in domain.objects:  # described in full above, perhaps
            domain.note_object(whole, "data", target)
        shown = nodes.literal("", signature(name, value))
        first = nodes.entry("", nodes.paragraph("", "", shown, ids=[target]))
        parts = re.split(r"`+([^`]*)`+", sentence(value))
        texts = [nodes.literal("", part) if place % 2 else nodes.Text(part) for place, part in enumerate(parts)]
        return nodes.row("", first, nodes.entry("", nodes.paragraph("", "", *texts)))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True}
