"""The command `setscore`. Commands are thin: they read, call the classifier, and print.

How a command ends is decided here: 0, done; 1, some rows failed, the others were written; 2, a mistake to mend, such as
an unknown option, a file that cannot be read or a disk that is full; 70, a mistake of ours; 130, interrupted.
"""

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from setscore import __version__
from setscore.cli.attention import compare_attention
from setscore.cli.baseline import baseline
from setscore.cli.batch import batch
from setscore.cli.calibrate import calibrate
from setscore.cli.classify import classify
from setscore.cli.compare import compare
from setscore.cli.console import errors, literal, open_streams, remark, settle_streams, tell_warnings
from setscore.cli.datasets import datasets
from setscore.cli.diagnose import diagnose
from setscore.cli.ensemble import ensemble
from setscore.cli.estimate import estimate
from setscore.cli.evaluate import evaluate
from setscore.cli.guard import Guarded
from setscore.cli.headroom import headroom
from setscore.cli.models import models
from setscore.cli.report import report
from setscore.cli.reproduce import reproduce
from setscore.cli.run import run
from setscore.cli.serve import serve_command
from setscore.cli.shortlist import shortlist
from setscore.cli.suggest import suggest
from setscore.cli.sweep import sweep
from setscore.errors import SetScoreError

MISTAKE, OURS, INTERRUPTED = 2, 70, 130

USE: dict[str, Callable[..., None]] = {
    "classify": classify,
    "batch": batch,
    "estimate": estimate,
    "suggest": suggest,
    "calibrate": calibrate,
    "evaluate": evaluate,
    "diagnose": diagnose,
    "serve": serve_command,
    "models": models,
}
RESEARCH: dict[str, Callable[..., None]] = {
    "run": run,
    "reproduce": reproduce,
    "sweep": sweep,
    "report": report,
    "compare": compare,
    "headroom": headroom,
    "compare-attention": compare_attention,
    "shortlist": shortlist,
    "ensemble": ensemble,
    "baseline": baseline,
    "datasets": datasets,
}
WITHOUT_ARGUMENTS = ("models", "datasets", "serve")  # do something when called bare; the others show their help


class Commands(TyperGroup):
    """All commands, and what becomes of their errors."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        return _ended(partial(super().make_context, *arguments, **options))

    def invoke(self, ctx: Any) -> Any:
        return _ended(partial(super().invoke, ctx))


def _ended(command: Callable[[], Any]) -> Any:
    """What a command returns; an error is told and becomes a status."""
    try:
        result = command()
        sys.stdout.flush()  # what cannot be written is told while it can be
        return result
    except SetScoreError as error:
        _tell("error:", str(error))
        raise typer.Exit(MISTAKE) from error
    except BrokenPipeError as error:  # the reader of our output has seen enough
        raise typer.Exit(0) from error
    except OSError as error:
        what = "standard output cannot be written" if error.filename is None else str(error.filename)
        _tell("error:", f"{what}: {error.strerror or error}.")
        raise typer.Exit(MISTAKE) from error
    except KeyboardInterrupt as error:
        remark("interrupted.")
        raise typer.Exit(INTERRUPTED) from error


def _tell(what: str, text: str) -> None:
    errors.print(f"[bold red]{what}[/] {literal(text)}", soft_wrap=True)  # [MASK] in a message is just text


app = typer.Typer(
    name="setscore",
    cls=Commands,
    help="Training-free multi-label text classification with masked-diffusion language models.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"setscore {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Training-free multi-label text classification with masked-diffusion language models."""


def _register(panel: str, commands: Mapping[str, Callable[..., None]]) -> None:
    for name, command in commands.items():
        bare = name in WITHOUT_ARGUMENTS
        app.command(name, cls=Guarded, rich_help_panel=panel, no_args_is_help=not bare)(command)


_register("Use", USE)
_register("Research", RESEARCH)


def main() -> None:
    """Runs a command."""
    open_streams()
    if not os.environ.get("COLUMNS", "1").strip("0"):
        del os.environ["COLUMNS"]  # rich would print no help for a width of 0
    tell_warnings()
    try:
        app()
    except Exception as error:
        if os.environ.get("SETSCORE_DEBUG") == "1":
            traceback.print_exc()
        about = " ".join(f"{type(error).__name__}: {error}".split())
        _tell("internal error:", f"{about}, please report it. SETSCORE_DEBUG=1 shows where it happened.")
        sys.exit(OURS)
    finally:
        settle_streams()
