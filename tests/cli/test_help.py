"""The help: commands in two groups, each with an example that its own options would take."""

import re
import shlex

import pytest
from commands import invoke

from setscore.cli import RESEARCH, USE


def test_commands_are_grouped():
    code, out, _ = invoke("--help")
    use, _, research = out.partition("─ Use ─")[2].partition("─ Research ─")
    assert code == 0
    for group, names in ((use, USE), (research, RESEARCH)):
        assert [name for name in names if not re.search(rf"│ {name} ", group)] == []
    assert "classify" not in research


@pytest.mark.parametrize("name", [*USE, *RESEARCH])
def test_every_command_shows_examples_with_options_that_it_has(name):
    code, out, _ = invoke(name, "--help")
    usage, _, listed = out.partition("╭─")
    examples = [line.strip() for line in usage.splitlines() if f"setscore {name}" in line and "Usage" not in line]
    known = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", listed))
    assert code == 0
    assert examples
    for example in examples:
        own = example[example.index(f"setscore {name}") :].partition(" | ")[0].partition(" > ")[0]
        assert {part for part in shlex.split(own) if part.startswith("-") and part != "-"} <= known, example
