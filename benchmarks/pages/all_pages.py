"""Everything that is made from committed results: the numbers of README.md, pages of docs/results, pictures.

    python benchmarks/pages/all_pages.py            # writes them
    python benchmarks/pages/all_pages.py --check    # writes nothing; says what is stale, and fails if anything is

`python tests/documents.py` rewrites what the pages' own code and commands print; `make pages` does both.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import ROOT, options
from benchmarks.pages import board, pictures, readme, studies
from benchmarks.pages.weights import refreshed


def made() -> dict[Path, str]:
    """Every file that is made here, and what it should hold."""
    files = {
        readme.README: readme.written(readme.README.read_text(encoding="utf-8"), readme.results()),
        studies.PAGE: studies.page(),
        board.PAGE: board.page(board.results()),
    }
    files |= {pictures.FOLDER / f"{name}.svg": draw() for name, draw in pictures.PICTURES.items()}
    for page in sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts):
        files.setdefault(page, refreshed(page.read_text(encoding="utf-8")))
    return files


def stale() -> list[str]:
    """What no longer fits, as sentences."""
    changed = [
        f"{path.relative_to(ROOT).as_posix()} is not what the results make of it; run `make pages`."
        for path, content in made().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != content
    ]
    return [*changed, *readme.stale(readme.results()), *board.stale()]


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is stale")
    if parser.parse_args(given).check:
        problems = stale()
        print("\n".join(problems) or "nothing is stale")
        raise SystemExit(bool(problems))
    for path, content in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
