"""The documentation is run: code prints what the page says, commands work, links lead somewhere, the pages build.

`tests/documents.py` says how pages are run, and writes what they print now.
"""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from documents import (
    LANGUAGES,
    PAGES,
    README,
    ROOT,
    blocks,
    commands,
    difference,
    is_run,
    name,
    run_page,
    shown_commands,
    tidy,
)  # fmt: skip
from sphinx.util.inventory import InventoryFile

import setscore
from docs import public_names
from setscore.cli import app

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


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


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"], ids=name)
def test_commands_and_their_options_exist(page: Path) -> None:
    known = {
        command: {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for command, found in typer.main.get_command(app).commands.items()
    }
    for line in shown_commands(page):
        command = line.split()[1]
        assert command in known, line
        assert set(re.findall(r"(?<= )--[a-z-]+", line)) <= known[command] | {"--help"}, line


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run_as_they_stand(example: Path, tmp_path: Path) -> None:
    source = example.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(source)), "the docstring says what one learns"
    assert len(source.splitlines()) < 40
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert len(done.stdout.splitlines()) < 40
    assert not list(tmp_path.iterdir()), "an example leaves no files behind"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as HTML; a warning fails."""
    folder = tmp_path_factory.mktemp("documentation")
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    done = subprocess.run(
        [*build, "-d", folder / "doctrees", ROOT / "docs", folder / "html"], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def inventory(built: Path) -> set[str]:
    """Every Python name that the built documentation knows."""
    found = InventoryFile.loads((built / "objects.inv").read_bytes(), uri="")
    return {name for kind, names in found.data.items() if kind.startswith("py:") for name in names}


def test_documentation_builds_without_warnings_and_can_be_searched_offline(built: Path) -> None:
    assert (built / "index.html").exists()
    assert "shortlist" in (built / "searchindex.js").read_text(encoding="utf-8")
    loaded = re.findall(
        r'(?:src|href)="(https?://[^"]+\.(?:js|css))', (built / "index.html").read_text(encoding="utf-8")
    )
    assert loaded == []


def public_modules() -> list[str]:
    """Modules that have `__all__`, and those beside them that the page lists."""
    package = Path(setscore.__file__).parent
    inits = [path for path in package.rglob("*.py") if re.search(r"^__all__", path.read_text(encoding="utf-8"), re.M)]
    names = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__") for path in inits
    }
    return sorted(names | set(LISTED))


API = ROOT / "docs" / "reference" / "api.md"
(LISTED,) = [block.content.split() for block in blocks(API) if block.language == "{public-names}"]
ELSEWHERE = {"setscore.store.folder"}  # what it has is public in setscore.store


@pytest.mark.parametrize("module", [name for name in public_modules() if name not in ELSEWHERE])
def test_every_public_name_is_listed(module: str, inventory: set[str]) -> None:
    found = public_names.public(importlib.import_module(module))
    assert found
    assert [one for one in found if f"{module}.{one}" not in inventory] == []


def test_every_public_name_says_what_it_is() -> None:
    for module in map(importlib.import_module, LISTED):
        silent = [one for one in public_names.public(module) if not public_names.sentence(getattr(module, one))]
        assert silent == [], module.__name__


def test_readme_gives_the_test_command_of_ci() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    run = [line for line in script.splitlines() if line.strip() and not line.startswith(("#", "set ", "cd "))]
    shown = [line.partition("#")[0].strip() for block in blocks(README) for line in commands(block.content)]
    needed = [".ci/browser", "make", "wait"]  # at once, what the tests need and their environment
    assert [line.split()[0] for line in run] == [*needed, "make"]
    assert run[-1] in shown


def test_the_demo_ends_with_three_next_steps() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\t$(BIN)/python examples/demo.py\n" in makefile
    source = (ROOT / "examples" / "demo.py").read_text(encoding="utf-8")
    assert re.findall(r"^  (\d)\. ", source, re.MULTILINE) == ["1", "2", "3"]


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
