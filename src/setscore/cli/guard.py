"""No command writes over a file that it reads: hand-made labels would be lost."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from setscore.errors import SetScoreError

OUTPUTS = ("out", "output", "json", "mistakes", "curve")


class Guarded(TyperCommand):
    """A command that ends before it begins where an output is one of its inputs, or another output."""

    def invoke(self, ctx: Any) -> Any:
        check_outputs(dict(_files(ctx.params)), {str(one.name): one.opts[0] for one in self.params})
        return super().invoke(ctx)


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
