"""Runs the documentation: every block of code and every command of a page, and what they print.

A page is run from top to bottom in a folder of its own that holds a copy of examples/.

    ```python   runs; the blocks of a page share their names
    ```bash     each line runs if its commands are in RUN, is passed over if they are in SKIPPED, and else fails
    ```text     directly after one of these: what it prints

`python tests/documents.py` writes what is printed now into all pages, or into those that are named. Read the difference
before keeping it. `make pages` does that and makes the pages of results again.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run as a file
    sys.path.insert(0, str(Path(__file__).parent))

from commands import invoke
from markdown_it import MarkdownIt
from markdown_it.token import Token

from setscore.errors import TruncationWarning

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]

RUN = {"setscore", "cat", "echo", "head", "printf"}
SKIPPED = {"make", "pip install", "sphinx-build", "python -m recipes.export"}
LANGUAGES = {"python", "bash", "text", "yaml", "json", "{toctree}", "{eval-rst}", "{literalinclude}", "{public-names}"}
WIDTH = 120  # columns of the terminal that commands believe to have
TOLERANCE = 0.1  # of numbers with a decimal point and, as 10 points, of percentages: int8 may differ between machines

NUMBER = re.compile(r"-?\d+\.\d*%?|\d+%")  # numpy prints 1.0 as "1."
BAR = re.compile(r"█+")


@dataclass(frozen=True)
class Block:
    """A fenced block of code, the line its content starts at (the first is 0), and the ```text that follows it."""

    language: str
    content: str
    line: int
    output: Token | None


def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))


def blocks(page: Path) -> Iterator[Block]:
    found = tokens(page)
    for token, after in zip(found, [*found[1:], None], strict=True):
        if token.type == "fence":
            output = after if after and after.type == "fence" and after.info == "text" else None
            yield Block(token.info.split(" ")[0], token.content, token.map[0] + 1, output)


def commands(block: str) -> list[str]:
    """The lines of a shell block, those that end in a backslash joined."""
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


def is_run(line: str) -> bool:
    """Whether a line is run (True) or passed over (False); a command that nobody listed is an error."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&")
    lexer.whitespace_split = True
    groups: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|;&"):
            groups.append([])
        else:
            groups[-1].append(word)
    if all(words[0] in RUN for words in groups):
        return True
    if any(f"{line.strip()} ".startswith(f"{start} ") for start in SKIPPED):
        return False
    raise AssertionError(f"{line!r} is neither in RUN nor in SKIPPED")


def shell(line: str, folder: Path) -> str:
    """What a line prints; anything but exit code 0 fails. A line that only calls `setscore` runs in this process."""
    if re.fullmatch(r"setscore( [^|<>;&$`*?#]*)?", line.strip()):
        code, out, err = invoke(*shlex.split(line)[1:], folder=folder, COLUMNS=str(WIDTH))
        assert code == 0, f"{line}\nexit code {code}\n{out}{err}"
        return out
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": search, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, f"{line}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def run_page(page: Path, folder: Path) -> Iterator[tuple[Block, str]]:
    """Every block that runs, with what it printed."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            code = compile("\n" * block.line + block.content, str(page), "exec")  # tracebacks show the page's lines
            with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.chdir(folder):
                exec(code, names)
            yield block, printed.getvalue()
        elif block.language == "bash":
            yield block, "".join(shell(line, folder) for line in commands(block.content) if is_run(line))


def shown_commands(page: Path) -> Iterator[str]:
    """Every command line that a page shows, in a block of any kind or within a sentence, whether it is run or not."""
    found = tokens(page)
    inline = [child.content for token in found for child in token.children or () if child.type == "code_inline"]
    for text in [*inline, *(token.content for token in found if token.type in ("fence", "code_block"))]:
        yield from (line for line in commands(text.replace("$ ", "")) if re.match(r"setscore [a-z]", line))


def tidy(printed: str) -> str:
    """Lines without the blanks at their ends and without empty lines around them."""
    return "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n") + "\n"


def difference(expected: str, printed: str) -> str | None:
    """What tells two outputs apart: words must be equal, numbers near; white space and lengths of bars do not count."""

    def words(text: str) -> list[str]:
        return BAR.sub(" ", NUMBER.sub(" # ", text)).split()

    def numbers(text: str) -> list[float]:
        return [float(n.rstrip("%")) / (100 if n.endswith("%") else 1) for n in NUMBER.findall(text)]

    if words(expected) != words(printed):
        return "other words"
    far = [(a, b) for a, b in zip(numbers(expected), numbers(printed), strict=True) if abs(a - b) > TOLERANCE + 1e-9]
    return f"other numbers: {far}" if far else None


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def rewrite(page: Path) -> bool:
    """Puts what is printed now into the page; says whether that changed it."""
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as folder:
        done = list(run_page(page, Path(folder)))
    for block, printed in reversed(done):
        if block.output is not None:
            first, last = block.output.map
            lines[first + 1 : last - 1] = [tidy(printed)]
    page.write_text("".join(lines), encoding="utf-8")
    return "".join(lines) != text


def refresh(pages: Sequence[Path]) -> bool:
    """Rewrites pages, says what was changed, and whether all of them ran; one that fails leaves the others alone."""
    whole = True
    for page in pages:
        try:
            if rewrite(page):
                print(f"{name(page)} was changed", flush=True)
        except Exception:
            whole = False
            traceback.print_exc()
            print(f"{name(page)} stays as it is, because something in it fails", file=sys.stderr, flush=True)
    return whole


if __name__ == "__main__":
    warnings.simplefilter("ignore", TruncationWarning)
    raise SystemExit(not refresh([Path(given).resolve() for given in sys.argv[1:]] or PAGES))
