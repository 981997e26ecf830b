"""Where commands print: results to standard output, everything else to standard error."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

results = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def progress() -> Progress:
    """On standard error, gone when done, and silent when nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
