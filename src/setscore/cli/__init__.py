"""The command `setscore`. Commands are thin: they read, call the classifier, and print."""

import sys

import typer

from setscore import __version__
from setscore.cli.classify import classify
from setscore.cli.console import errors
from setscore.cli.models import models
from setscore.errors import SetScoreError

app = typer.Typer(
    name="setscore",
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


app.command(no_args_is_help=True)(classify)
app.command()(models)


def main() -> None:
    """Runs a command. Exit code 0: done; 1: some rows failed, the others were written; 2: a mistake to mend."""
    try:
        app()
    except SetScoreError as error:
        errors.print(f"[bold red]error:[/] {error}", highlight=False, markup=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        sys.exit(0)
