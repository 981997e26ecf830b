"""The documentation is run: code prints what the page says, commands work, links lead somewhere, the pages build.

A page is run from top to bottom in a folder of its own that holds a copy of examples/.

    ```python   runs; the blocks of a page share their names
    ```bash     each line runs if its commands are in RUN, is passed over if they are in SKIPPED, and else fails
    ```text     directly after one of these: what it prints

`python tests/test_documents.py` writes what is printed now into the pages. Read the difference before keeping it.
"""

import ast
import contextlib
import importlib
import inspect
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from commands import invoke
from markdown_it import MarkdownIt
from markdown_it.token import Token

from setscore.cli import app
from setscore.errors import TruncationWarning

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

RUN = {"setscore", "cat", "echo", "head", "printf"}
SKIPPED = {"make", "pip install", "sphinx-build", "python -m recipes.export"}
LANGUAGES = {"python", "bash", "text", "yaml", "json", "{toctree}", "{eval-rst}", "{literalinclude}"}
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


@pytest.mark.filterwarnings("ignore::setscore.errors.TruncationWarning")  # a page may show what truncation does
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_and_commands_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    for block, printed in run_page(page, tmp_path):
        if block.output is not None:
            problem = difference(block.output.content, printed)
            assert problem is None, f"{name(page)}:{block.line}: {problem}; it printed\n{tidy(printed)}"
        elif block.language == "python":
            assert not printed, f"{name(page)}:{block.line} prints, but no ```text shows it:\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_block_escapes_these_tests(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_commands_and_their_options_exist(page: Path) -> None:
    known = {
        command: {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for command, found in typer.main.get_command(app).commands.items()
    }
    for line in shown_commands(page):
        command = line.split()[1]
        assert command in known, line
        assert set(re.findall(r"(?<= )--[a-z-]+", line)) <= known[command] | {"--help"}, line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_to_files(page: Path) -> None:
    inline = [child for token in tokens(page) for child in token.children or ()]
    targets = [str(child.attrGet("href") or child.attrGet("src") or "") for child in inline]
    relative = [target.partition("#")[0] for target in targets if target and not re.match(r"[a-z]+:|#", target)]
    assert [target for target in relative if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run_as_they_stand(example: Path, tmp_path: Path) -> None:
    source = example.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(source)), "the docstring says what one learns"
    assert len(source.splitlines()) < 40
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir()), "an example leaves no files behind"


def test_documentation_builds_without_warnings(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    done = subprocess.run(
        [*build, "-d", tmp_path / "doctrees", ROOT / "docs", tmp_path / "html"], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").exists()


LISTED = re.compile(r"^\| `(\w+)(?:\(([^)]*)\))?` \|", re.MULTILINE)


def listed(module: str) -> dict[str, str | None]:
    """Names in the table of docs/api.md whose head is `module`, and the parameters shown."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    _, head, rest = page.partition(f"\n| `{module}` |")
    assert head, f"docs/api.md has no table of {module}"
    return {match[1]: match[2] for match in LISTED.finditer(rest.partition("\n\n")[0])}


def public(module: ModuleType) -> set[str]:
    """`__all__`, or the functions and classes that a module defines under a plain name."""
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    return set(getattr(module, "__all__", {name for name in own if not name.startswith("_")}))


@pytest.mark.parametrize("name", ["metrics", "datasets", "experiments", "experiments.report", "experiments.yardsticks",
                                  "experiments.pictures", "calibration", "experiments.comparison",
                                  "experiments.diagnosis", "experiments.scored", "experiments.evaluation",
                                  "experiments.saved", "experiments.protocol",
                                  "experiments.deciding", "experiments.posteriors", "experiments.sweeping", "scorers",
                                  "theory", "fitting", "persistence", "predictions", "store", "encoders", "shortlist",
                                  "backbones.cached", "batch"])  # fmt: skip
def test_every_public_name_is_listed(name: str) -> None:
    module = importlib.import_module(f"setscore.{name}")
    rows = listed(module.__name__)
    directives = set(re.findall(rf":: {re.escape(module.__name__)}\.(\w+)", (ROOT / "docs" / "api.md").read_text()))
    assert public(module) - rows.keys() - directives == set()
    for shown, parameters in rows.items():
        value = getattr(module, shown)
        assert (parameters is not None) == inspect.isroutine(inspect.unwrap(value)), shown
        if parameters:
            wanted = parameters.split(", ")
            assert list(inspect.signature(value).parameters)[: len(wanted)] == wanted


def test_readme_gives_the_test_command_of_ci() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    run = [line for line in script.splitlines() if line.strip() and not line.startswith(("#", "set ", "cd "))]
    shown = [line.partition("#")[0].strip() for block in blocks(README) for line in commands(block.content)]
    assert [line.split()[0] for line in run] == [".ci/browser", "make"]  # what the tests need, and the tests
    assert run[1] in shown


def test_makefile_has_every_target_that_the_pages_name() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    shell_blocks = [block for page in PAGES for block in blocks(page) if block.language == "bash"]
    lines = [line for block in shell_blocks for line in commands(block.content)]
    assert {line.split()[1] for line in lines if line.startswith("make ")} <= set(targets)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("[1.   0.66]\n", "[0.99 0.67]\n", True),
        ("oil 0.91\n", "oil   0.99\n", True),
        ("oil 0.91\n", "oil 0.71\n", False),
        ("oil 91%  ████\n", "oil 89%  ███\n", True),
        ("oil 91%\n", "oil 71%\n", False),
        ("[-0.04]\n", "[ 0.02]\n", True),
        ("2 of 3\n", "1 of 3\n", False),
        ("['oil']\n", "['gas']\n", False),
        ("oil 0.91\n", "oil 0.91 0.91\n", False),
    ],
)
def test_outputs_are_compared_with_the_stated_tolerance(expected: str, printed: str, same: bool) -> None:
    assert (difference(expected, printed) is None) == same


@pytest.mark.parametrize("line", ["rm -rf x", "setscore models | tee x", "gitx", "python -c pass"])
def test_unknown_commands_fail(line: str) -> None:
    with pytest.raises(AssertionError, match="neither in RUN nor in SKIPPED"):
        is_run(line)


@pytest.mark.parametrize(
    ("line", "runs"),
    [("setscore models", True), ("echo 'a; b' | setscore classify -l a > out.csv", True), ("make test  # all", False)],
)
def test_known_commands_run_or_are_passed_over(line: str, runs: bool) -> None:
    assert is_run(line) == runs


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


if __name__ == "__main__":
    warnings.simplefilter("ignore", TruncationWarning)
    for changed in filter(rewrite, PAGES):
        print(f"{name(changed)} was changed")
