"""Running text in passages of a few sentences, for the masked-diffusion objective."""

from collections.abc import Iterable, Iterator

from sources.rows import Row


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
