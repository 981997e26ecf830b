"""YAML as data: no objects, no key twice, and aliases count as often as they are used."""

from typing import Any

import yaml

from setscore.errors import brief
from setscore.storage import MIB, Limits, one_line, too_deep, unique

LIMITS = Limits(size=16 * MIB, nodes=1_000_000)


def parse_yaml(text: str, limits: Limits = LIMITS) -> Any:
    """The value of a YAML text. What is broken, too much or ambiguous is a ValueError of one short line."""
    loader = None
    try:
        loader = _Loader(text, limits)
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        said = ", ".join(part for part in (error.context, error.problem) if part)
        hint = ". Put a text that holds a colon in quotes" if "mapping values are not allowed" in said else ""
        raise ValueError(one_line(ValueError(said + where + hint))) from error
    except yaml.YAMLError as error:
        raise ValueError(one_line(error)) from error
    except (AttributeError, LookupError, ArithmeticError) as error:  # `!!bool maybe`: PyYAML trusts a tag
        raise ValueError(f"a value is not what its tag says ({type(error).__name__}: {one_line(error)})") from error
    finally:
        if loader is not None:
            loader.dispose()


class _Loader(yaml.SafeLoader):
    """Reads as `yaml.safe_load` does, within limits.

    An alias costs a few bytes and stands for all that its anchor holds, so nine of nine of nine become a number that
    no one can walk through or print. Each node's extent (its nodes and levels, aliases written out) is known as soon
    as the node is composed, from those of its children; the first node that is too large ends the reading.
    """

    def __init__(self, text: str, limits: Limits) -> None:
        super().__init__(text)
        self._limits = limits
        self._open = 0  # levels that are being composed
        self._extents: dict[int, tuple[int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        alias: Any = self.peek_event() if self.check_event(yaml.AliasEvent) else None  # type: ignore[no-untyped-call]
        self._open += 1
        if self._open > self._limits.depth:
            raise too_deep(self._limits)
        node = super().compose_node(parent, index)
        self._open -= 1
        if alias is not None and id(node) not in self._extents:
            raise ValueError(f"the alias {brief(alias.anchor)} refers to itself")
        if alias is None and node is not None:
            self._extents[id(node)] = self._measured(node)
        return node

    def _measured(self, node: yaml.Node) -> tuple[int, int]:
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            children = [one for pair in node.value for one in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        nodes = 1 + sum(self._extents[id(child)][0] for child in children)
        depth = 1 + max((self._extents[id(child)][1] for child in children), default=0)
        if nodes > self._limits.nodes:
            raise ValueError(f"it holds more than {self._limits.nodes:,} values, aliases written out")
        if depth > self._limits.depth:
            raise too_deep(self._limits)
        return nodes, depth

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        unique([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        return dict(super().construct_mapping(node, deep=deep))
