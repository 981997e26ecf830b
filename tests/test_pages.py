"""The documentation as a whole: short, in four parts, reachable, spelt right, and not stale."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from documents import PAGES, README, ROOT, blocks, name, tokens

pytest.importorskip("pydantic")
pytest.importorskip("pyarrow")

from benchmarks.pages import all_pages, pictures, readme, weights

DOCS = ROOT / "docs"
INDEX = DOCS / "index.md"
WRITTEN = [page for page in PAGES if page != README and page.parent.name != "results"]  # by people
PARTS = ["Tutorial", "How-to guides", "Explanation", "Reference"]
MOST_PAGES, MOST_WORDS, README_LINES = 15, 18_000, 130
PROSE = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
CODE = ("src", "benchmarks", "recipes", "examples")
NO_TEXT = {".pyc", ".onnx", ".jsonl"}  # .jsonl is data
NAMED = re.compile(r"(?<![\w-])docs/(?!s\b)([\w./-]*\w)(?:#([\w-]+))?")  # docs/s is a speed
NUMBERS_OF_NAMES = re.compile(r"Python 3\.11|Apache-2\.0|version 0\.\d|Micro-F1")


def targets(page: Path) -> Iterator[tuple[Path, str]]:
    """Where the relative links and the entries of tables of contents lead: a file, and perhaps a place in it."""
    for token in tokens(page):
        for child in token.children or ():
            target = str(child.attrGet("href") or child.attrGet("src") or "")
            if target and not re.match(r"[a-z]+:", target):
                path, _, place = target.partition("#")
                yield ((page.parent / path).resolve() if path else page, place)
    for block in blocks(page):
        if block.language == "{toctree}":
            entries = [line for line in block.content.splitlines() if line and not line.startswith(":")]
            yield from (((page.parent / f"{entry}.md").resolve(), "") for entry in entries)


def places(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    found, rest = set(), tokens(page)
    for token, after in pairwise(rest):
        if token.type == "heading_open":
            found.add(re.sub(r"[^\w\- ]", "", after.content.lower().replace("`", "")).replace(" ", "-"))
    return found


def test_pages_and_words_are_few():
    words = {name(page): len(page.read_text(encoding="utf-8").split()) for page in WRITTEN}
    assert len(WRITTEN) <= MOST_PAGES
    assert sum(words.values()) <= MOST_WORDS, words
    assert len(README.read_text(encoding="utf-8").splitlines()) <= README_LINES


def test_the_index_has_four_parts():
    captions = re.findall(r"^:caption: (.*)$", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert captions == PARTS
    assert "## Which of these am I?" in INDEX.read_text(encoding="utf-8")


def test_every_page_is_reached_from_the_index_in_two_clicks():
    once = {path for path, _ in targets(INDEX) if path.suffix == ".md"}
    twice = once | {path for page in once for path, _ in targets(page) if path.suffix == ".md"}
    assert [name(page) for page in PAGES if page not in (README, INDEX) and page.resolve() not in twice] == []


@pytest.mark.parametrize("page", PROSE, ids=name)
def test_links_lead_to_files_and_headings(page):
    missing = [str(path) for path, _ in targets(page) if not path.exists()]
    assert missing == []
    lost = [f"{path.name}#{place}" for path, place in targets(page) if place and place not in places(path)]
    assert lost == []


def lost_pages(text: str) -> list[str]:
    """What a text names below docs/ and is not there, and pages that it names by a title, which nobody can check."""
    lost = [named[0] for named in NAMED.finditer(text) if not (DOCS / named[1]).exists()]
    named = [(DOCS / path, place) for path, place in NAMED.findall(text) if place]
    lost += [f"{path.name}#{place}" for path, place in named if path.exists() and place not in places(path)]
    return lost + re.findall(r"\(docs, [^)]*\)", text)


def test_pages_that_code_names_are_there():
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = {name(path): path.read_text(encoding="utf-8") for path in files if path.suffix not in NO_TEXT}
    assert {file: lost for file, text in texts.items() if (lost := lost_pages(text))} == {}


def test_a_page_that_is_gone_is_found():
    there = "docs/results/gpu.md, docs/pictures, docs/how-to/labels.md#word-a-description and 3 docs/s."
    assert lost_pages(there) == []
    gone = "See docs/calibration.md. Or docs/how-to/labels.md#colours (docs, Calibration)."
    assert lost_pages(gone) == ["docs/calibration.md", "labels.md#colours", "(docs, Calibration)"]


def test_nothing_is_misspelt():
    pytest.importorskip("codespell_lib", reason="codespell is in the extra `test`")
    done = subprocess.run([sys.executable, "-m", "codespell_lib"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout


# What is made from results


def test_nothing_is_stale():
    assert all_pages.stale() == []


def test_every_number_of_the_readme_is_made_from_results():
    """Numbers stand in the blocks that are made, in code and its output, or in the name of something."""
    text = readme.BLOCK.sub("", README.read_text(encoding="utf-8"))
    text = NUMBERS_OF_NAMES.sub("", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL))
    assert re.findall(r".*\d.*", text) == []
    found = {block[1] for block in readme.BLOCK.finditer(README.read_text(encoding="utf-8"))}
    assert found == set(readme.BLOCKS)


def test_other_weights_and_other_numbers_are_seen(monkeypatch):
    found = readme.results()
    first = {**found["everyday-small"], "measured": {**found["everyday-small"]["measured"], "identity": "another"}}
    (problem, *_) = readme.stale({"everyday-small": first})
    assert problem.startswith("benchmarks/results/everyday-small.json was not measured with the weights and numbers")
    small = found["everyday-small"]["measured"]
    other = small | {"zero_shot": small["zero_shot"] | {"competition": 0.123}}
    assert readme.is_current(small)
    assert not readme.is_current(other)
    text = README.read_text(encoding="utf-8")
    assert readme.written(text, found) == text
    fewer = {**found["cpu"], "cores": 63}
    assert "on 63 cores" in readme.written(text, {**found, "cpu": fewer})


def test_a_page_of_earlier_weights_says_so():
    now = weights.stated("setscore-mini", weights.shipped("setscore-mini"))
    assert "no longer ships" not in now
    before = "Weights: `setscore-mini` 000000000000."
    assert weights.refreshed(f"a\n{before}\nb").startswith(
        "a\nWeights: `setscore-mini` 000000000000, which this version"
    )
    assert weights.refreshed(weights.refreshed(before)) == weights.refreshed(before)
    assert weights.refreshed(now) == now


def test_the_learning_curve_has_a_line_for_each_set_and_their_mean():
    found = {
        "0 not fitting": {"a": [10.0, 1], "b": [30.0, 2]},
        "5 fit": {"a": [20.0, 1], "b": [60.0, 2]},
        "5 linear": {"a": [0.0, 0], "b": [0.0, 0]},
    }
    sizes, curves = pictures.curve_of(found)
    assert (sizes, curves) == ([0, 5], {"a": [10.0, 20.0], "b": [30.0, 60.0], "mean": [20.0, 40.0]})


def test_pictures_can_be_read_in_light_and_dark():
    for picture in pictures.FOLDER.glob("*.svg"):
        text = picture.read_text(encoding="utf-8")
        assert "prefers-color-scheme: dark" in text
        assert "<title>" in text
