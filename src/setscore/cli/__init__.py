"""The command `setscore`. Commands are thin: they read, call the classifier, and print."""

import io
import sys

import typer

from setscore import __version__
from setscore.cli.attention import compare_attention
from setscore.cli.baseline import baseline
from setscore.cli.calibrate import calibrate
from setscore.cli.classify import classify
from setscore.cli.compare import compare
from setscore.cli.console import errors, literal, tell_warnings
from setscore.cli.datasets import datasets
from setscore.cli.diagnose import diagnose
from setscore.cli.ensemble import ensemble
from setscore.cli.evaluate import evaluate
from setscore.cli.headroom import headroom
from setscore.cli.models import models
from setscore.cli.shortlist import shortlist
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
app.command(no_args_is_help=True)(calibrate)
app.command(no_args_is_help=True)(evaluate)
app.command(no_args_is_help=True)(compare)
app.command(no_args_is_help=True)(headroom)
app.command(no_args_is_help=True)(diagnose)
app.command("compare-attention", no_args_is_help=True)(compare_attention)
app.command(no_args_is_help=True)(shortlist)
app.command(no_args_is_help=True)(ensemble)
app.command(no_args_is_help=True)(baseline)
app.command()(datasets)
app.command()(models)


def main() -> None:
    """Runs a command. Exit code 0: done; 1: some rows failed, the others were written; 2: a mistake to mend."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # files and pipes get UTF-8, whatever the locale says
    tell_warnings()
    try:
        app()
    except SetScoreError as error:
        errors.print(f"[bold red]error:[/] {literal(str(error))}", soft_wrap=True)  # [MASK] in a message is just text
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        sys.exit(0)
