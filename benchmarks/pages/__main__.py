"""Everything that is made from committed results: the numbers of README.md, pages of docs/results, pictures.

python -m benchmarks.pages            # writes them
python -m benchmarks.pages --check    # writes nothing; says what is stale, and fails if anything is
"""

from collections.abc import Sequence
from pathlib import Path

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
    for page in sorted((ROOT / "docs" / "results").glob("*.md")):
        files.setdefault(page, refreshed(page.read_text(encoding="utf-8")))
    return files


def stale() -> list[str]:
    """What no longer fits, as sentences."""
    changed = [
        f"{path.relative_to(ROOT).as_posix()} is not what the results make of it; run python -m benchmarks.pages."
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
