"""The layers of the design, enforced: a module imports only from lower layers, and never in a circle."""

import ast
import graphlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import setscore

ROOT = Path(setscore.__file__).parent

LAYERS = (
    ("errors", "identifiers", "records", "predictions"),
    ("named", "prompts", "storage", "metrics", "competition", "logistic", "theory", "datasets", "estimators", "store"),
    ("encoders", "backbones"),
    ("shortlist", "scorers"),
    ("calibration", "ensemble", "readout"),
    ("fitting", "persistence", "suggesting"),
    ("classifier",),
    ("pipelines", "baselines"),
    ("experiments",),
    ("cli", "batch", "server"),
)
# Values check themselves when they are made, so records raises errors; errors itself imports nothing. Predictions are
# made of records. The embedded backbone's weights are a sentence encoder too. What is fitted is a value that is saved.
# Every reader of files keeps to the limits of storage. Commands are the edge of the edge: they call batches and start
# the server.
ALLOWED_WITHIN_A_LAYER = {
    ("records", "errors"),
    ("records", "identifiers"),
    ("predictions", "errors"),
    ("predictions", "records"),
    ("encoders", "backbones"),
    ("datasets", "storage"),
    ("store", "storage"),
    ("persistence", "fitting"),
    ("cli", "batch"),
    ("cli", "server"),
    ("suggesting", "fitting"),
}


@dataclass(frozen=True)
class Import:
    """`how`: "load" when the module loads, "call" inside a function, "types" for type checkers, "registry" by name."""

    source: str
    target: str
    line: int
    how: str


def modules_of(root: Path) -> dict[str, Path]:
    """Every module below `root` by its dotted name, which begins with the folder's name."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imports_of(modules: dict[str, Path], package: str, homes: dict[str, str]) -> list[Import]:
    """Every import of one module of the package by another."""
    found = []
    for source, path in modules.items():
        folder = source if path.name == "__init__.py" else source.rpartition(".")[0]
        for node, how in _walk(ast.parse(path.read_text(encoding="utf-8")), "load"):
            for name in _names(node, folder):
                target = _module(name, modules, package, homes)
                if target is not None and target != source:
                    found.append(Import(source, target, getattr(node, "lineno", 0), how))
    return found


def _walk(node: ast.AST, how: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        inner = how
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and how == "load":
            inner = "call"
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            inner = "types"
        yield child, "registry" if isinstance(child, ast.Constant) else inner
        yield from _walk(child, inner)


def _names(node: ast.AST, folder: str) -> list[str]:
    """What a statement imports, dotted; a string that is exactly a module's name is an entry of a registry."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        parents = folder.split(".")
        base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
        base = ".".join(part for part in (base, node.module) if part)
        return [f"{base}.{alias.name}" for alias in node.names]
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.count(".")
        and node.value.isascii()
    ):
        return [node.value]
    return []


def _module(name: str, modules: dict[str, Path], package: str, homes: dict[str, str]) -> str | None:
    """The module a dotted name belongs to. A lazy name of the package counts as its home, so nothing hides there."""
    head, _, last = name.rpartition(".")
    if head == package and last in homes:
        return homes[last]
    if name in modules:
        return name
    if head in modules:
        return head
    return None


def violations(modules: dict[str, Path], imports: list[Import], package: str) -> list[str]:
    """What breaks the layers, as sentences."""
    layer = {name: number for number, names in enumerate(LAYERS) for name in names}
    unlisted = sorted({_part(module) for module in modules if module != package} - layer.keys())
    problems = [f"{package}.{part} has no layer; list it in LAYERS of {Path(__file__).name}." for part in unlisted]
    for entry in imports:
        source, target = _part(entry.source), _part(entry.target)
        if package in (entry.source, entry.target) or source == target or {source, target} & set(unlisted):
            continue
        where = f"{entry.source}:{entry.line} ({entry.how}) imports {entry.target}"
        if layer[source] < layer[target]:
            problems.append(f"{where}, but layer {layer[source]} is below layer {layer[target]}.")
        if layer[source] == layer[target] and (source, target) not in ALLOWED_WITHIN_A_LAYER:
            problems.append(f"{where}, but both are in layer {layer[source]}.")
    return problems


def _part(module: str) -> str:
    """errors of setscore.errors, cli of setscore.cli.output."""
    return module.split(".")[1] if "." in module else module


def cycle(imports: list[Import], package: str) -> list[str] | None:
    """A circle of imports, or None. Registry entries are loaded by name when asked for, long after loading."""
    graph: dict[str, set[str]] = {}
    for entry in imports:
        if entry.how != "registry" and package not in (entry.source, entry.target):
            graph.setdefault(entry.source, set()).add(entry.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return None


MODULES = modules_of(ROOT)
IMPORTS = imports_of(MODULES, "setscore", setscore._HOMES)


def test_modules_import_only_from_lower_layers():
    assert len(IMPORTS) > 40  # the parser sees the package
    assert violations(MODULES, IMPORTS, "setscore") == []


def test_there_are_no_import_cycles():
    assert cycle(IMPORTS, "setscore") is None


def test_the_exceptions_are_still_needed():
    assert {(_part(entry.source), _part(entry.target)) for entry in IMPORTS} >= ALLOWED_WITHIN_A_LAYER


def test_every_kind_of_import_is_seen():
    seen = {(entry.source, entry.target, entry.how) for entry in IMPORTS}
    assert ("setscore.classifier", "setscore.scorers", "load") in seen
    assert ("setscore", "setscore.classifier", "types") in seen
    assert ("setscore.backbones", "setscore.backbones.mini", "registry") in seen


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"errors.py": "from pkg.prompts import X"},
            "pkg.errors:1 (load) imports pkg.prompts, but layer 0 is below layer 1.",
        ),
        (
            {"prompts.py": "def f():\n    import pkg.classifier"},
            "pkg.prompts:2 (call) imports pkg.classifier, but layer 1",
        ),
        (
            {"prompts.py": "if TYPE_CHECKING:\n    from pkg import cli"},
            "pkg.prompts:2 (types) imports pkg.cli, but layer 1",
        ),
        ({"prompts.py": "HOMES = {'a': 'pkg.cli.out'}"}, "pkg.prompts:1 (registry) imports pkg.cli.out, but layer 1"),
        ({"prompts.py": "from pkg import Lazy"}, "pkg.prompts:1 (load) imports pkg.classifier, but layer 1"),
        ({"prompts.py": "from .cli.out import y"}, "pkg.prompts:1 (load) imports pkg.cli.out, but layer 1"),
        ({"server.py": "from pkg.cli import two"}, "pkg.server:1 (load) imports pkg.cli.two, but both are in layer 9."),
        (
            {"prompts.py": "from pkg.storage import x"},
            "pkg.prompts:1 (load) imports pkg.storage, but both are in layer 1.",
        ),
        (
            {"errors.py": "from pkg.records import x"},
            "pkg.errors:1 (load) imports pkg.records, but both are in layer 0.",
        ),
        ({"novel.py": ""}, "pkg.novel has no layer; list it in LAYERS of test_layers.py."),
    ],
)
def test_the_checker_finds_a_violation(tmp_path, files, expected):
    modules, imports = _made_up(tmp_path, files)
    problems = violations(modules, imports, "pkg")
    assert len(problems) == 1
    assert problems[0].startswith(expected)


def test_the_checker_accepts_what_is_allowed(tmp_path):
    files = {
        "records.py": "from pkg.errors import x",
        "classifier.py": "from pkg import __version__\nfrom pkg.prompts import Template\nimport numpy",
        "cli/out.py": "from . import two\nfrom pkg import Lazy",
    }
    modules, imports = _made_up(tmp_path, files)
    assert violations(modules, imports, "pkg") == []
    assert cycle(imports, "pkg") is None
    assert len(imports) == 5


@pytest.mark.parametrize("second", ["from pkg.cli import out", "def f():\n    from pkg.cli.out import x"])
def test_the_checker_finds_a_cycle_within_a_package(tmp_path, second):
    files = {"cli/out.py": "from pkg.cli.two import x", "cli/two.py": second}
    modules, imports = _made_up(tmp_path, files)
    assert violations(modules, imports, "pkg") == []
    assert set(cycle(imports, "pkg")) == {"pkg.cli.out", "pkg.cli.two"}


def _made_up(folder: Path, files: dict[str, str]) -> tuple[dict[str, Path], list[Import]]:
    """A tree with one file for each name that the cases use, empty unless given."""
    names = ["__init__", "errors", "records", "prompts", "storage", "classifier", "server"]
    empty = dict.fromkeys([*(f"{name}.py" for name in names), "cli/__init__.py", "cli/out.py", "cli/two.py"], "")
    for name, content in (empty | files).items():
        path = folder / "pkg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    modules = modules_of(folder / "pkg")
    return modules, imports_of(modules, "pkg", {"Lazy": "pkg.classifier"})


def test_every_lazy_name_resolves_and_type_checkers_see_the_same():
    for name, home in setscore._HOMES.items():
        assert getattr(setscore, name) is getattr(importlib.import_module(home), name)
    declared = {
        alias.name: node.module
        for node, how in _walk(ast.parse(MODULES["setscore"].read_text(encoding="utf-8")), "load")
        if isinstance(node, ast.ImportFrom) and how == "types"
        for alias in node.names
    }
    assert declared == setscore._HOMES
    assert set(dir(setscore)) == {"__version__", *setscore._HOMES}
    with pytest.raises(AttributeError, match="module 'setscore' has no attribute 'Classifier'"):
        _ = setscore.Classifier


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import setscore", ["torch", "sklearn", "onnxruntime", "numpy", "scipy", "tokenizers"]),
        ("from setscore import SetScoreClassifier", ["torch", "sklearn", "pandas", "onnxruntime", "typer"]),
        ("from setscore.cli import main", ["torch", "sklearn", "pandas", "onnxruntime", "pyarrow", "fastapi"]),
        (
            "from setscore import SetScoreClassifier; SetScoreClassifier(['oil', 'tea']).classify(['Oil rose.'])",
            ["torch", "sklearn", "pandas"],
        ),
    ],
)
def test_imports_stay_cheap(tmp_path, statement, absent):
    # A stand-in for torch, so that importing it would show on machines without it too.
    (tmp_path / "torch.py").write_text("__version__ = '0'\n")
    code = f"{statement}\nimport sys\nprint([name for name in {absent} if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT.parent)])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_files_stay_short():
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    assert lines["setscore.classifier"] <= 370
    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_only_the_command_line_prints():
    printing = {name for name, path in MODULES.items() if _prints(path.read_text(encoding="utf-8"))}
    assert {name for name in printing if _part(name) != "cli"} == set()
    assert _prints("def f():\n    print(1)")
    assert not _prints("console.print(1)  # print(")


def _prints(code: str) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    return any(isinstance(call, ast.Name) and call.id == "print" for call in calls)
