"""Running text in passages of a few sentences, for the masked-diffusion objective."""

from collections.abc import Iterable, Iterator

from recipes.sources.rows import Row


def passages(lines: Iterable[str], *, source: str, words: int = 180) -> Iterator[Row]:
    """Whole lines gathered until a passage has `words` words; headings and rules (`#`, `--`) end a passage."""
    gathered: list[str] = []
    for line in lines:
        text = line.strip()
        if text.startswith(("#", "--", "= ")):
            gathered = []
            continue
        gathered += text.split()
        if len(gathered) >= words:
            yield Row(source, " ".join(gathered[: 2 * words]))
            gathered = []


def held_out(rows: list[Row], most: int = 300) -> tuple[list[Row], list[Row]]:
    """The rows for training, and the last ones (a tenth, at most `most`) that only sanity.py reads."""
    count = min(most, len(rows) // 10)
    return rows[: len(rows) - count], rows[len(rows) - count :]
