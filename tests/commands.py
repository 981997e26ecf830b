"""Runs `setscore` as a user does: the installed command in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).parent / "setscore"
# A wide screen without colours wherever the tests run, so that messages are not wrapped or cut up by escape codes.
PLAIN = {"COLUMNS": "200", "NO_COLOR": "1", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"} | PLAIN


def setscore(*arguments, stdin: bytes = b"", folder: Path | None = None, **environment: str):
    """Runs the command. No mistake of a user may ever show a traceback, so that is checked here once for all."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], input=stdin, capture_output=True, cwd=folder, env=ENVIRONMENT | environment
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return done.returncode, out, err
