"""What is checked of every command line: the values of options, and that nothing is written over what is read."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from setscore.errors import SetScoreError, brief

DECIMAL_COMMA = re.compile(r"[+-]?(0?,\d+|\d+,\d{1,2})")  # not 1,000, which may be a thousand
OUTPUTS = ("out", "output", "json", "mistakes", "curve")


class Guarded(TyperCommand):
    """A command that ends before it begins where an output is one of its inputs, or another output: hand-made labels
    would be lost. Where an option cannot have a value, the value is told as well."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        written = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if error.param is not None:
                values, *_ = self.make_parser(ctx).parse_args(written)
                error.message = _with_value(error.message, values.get(error.param.name))
            raise

    def invoke(self, ctx: Any) -> Any:
        check_outputs(dict(_files(ctx.params)), {str(one.name): one.opts[0] for one in self.params})
        return super().invoke(ctx)


def _with_value(message: str, value: Any) -> str:
    """What is allowed, and what was given; a number with a decimal comma is spelt with a point."""
    if not isinstance(value, str):
        return message
    told = message if brief(value) in message else f"{message.partition(', unable')[0]}, got {brief(value)}."
    decimal = DECIMAL_COMMA.fullmatch(value) and ("number" in message or "float" in message)
    return f"{told} Write {float(value.replace(',', '.'))}." if decimal else told


def check_outputs(files: Mapping[str, Path], options: Mapping[str, str]) -> None:
    """`files` by parameter, `options` as they are written on the command line; `batch` checks its parts itself."""
    outputs = [name for name in OUTPUTS if name in files and options[name].startswith("-")]
    for name in outputs:
        for other, read in files.items():
            if other not in outputs and files[name].exists() and files[name].samefile(read):
                raise SetScoreError(f"{options[name]} is the file that is read, {read}. Name another one.")
    for first, second in combinations(outputs, 2):
        if files[first].absolute() == files[second].absolute():
            raise SetScoreError(f"{options[first]} and {options[second]} are the same file, {files[first]}. Name two.")


def _files(params: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Outputs, and whatever else on the command line names a file that is there."""
    for name, value in params.items():
        if isinstance(value, str | Path):
            with suppress(OSError, ValueError):  # a text too long for a name, or with a NUL
                if name in OUTPUTS or Path(value).is_file():
                    yield name, Path(value)
