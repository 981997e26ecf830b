"""Texts with a title, a headline, a keyword or a heading: the title is a label that applies to its text.

No label is said not to apply: training draws those from the other titles of the same source.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recipes.sources.rows import Row

LONGEST = 12  # words; a longer title is a sentence


def convert(record: Mapping[str, Any]) -> Row | None:
    """A title task of Super-NaturalInstructions: each output is one title of the input."""
    titles = dict.fromkeys(_clean(output) for output in record["output"])
    labels = tuple((title,) for title in titles if 0 < len(title.split()) <= LONGEST)
    document = record["input"].removeprefix("Fact:").removeprefix("Abstract:").removeprefix("Paragraph:").strip()
    return Row(record["task"], document, "topic", labels) if labels and document else None


def _clean(title: str) -> str:
    return " ".join(title.replace("-", " ").split()).strip(" .\"'")


def headings(lines: Iterable[str], *, source: str, words: tuple[int, int] = (25, 220)) -> Iterator[Row]:
    """Paragraphs of an encyclopedia in WikiText's form, with the headings above them as labels.

    A heading such as "History" says little, so only the article's title and headings of two words or more are labels.
    """
    above: dict[int, str] = {}
    for line in lines:
        text = line.strip()
        if text.startswith("= ") and text.endswith(" ="):
            depth = text.split().index(next(part for part in text.split() if part != "="))
            above = {level: name for level, name in above.items() if level < depth}
            above[depth] = plain(text.strip("= "))
        elif words[0] <= len(text.split()) <= words[1]:
            names = [name for level, name in above.items() if level == 1 or len(name.split()) > 1]
            labels = tuple((name,) for name in names if len(name.split()) <= LONGEST)
            yield Row(source, plain(text), "topic", labels)


def plain(text: str) -> str:
    """WikiText's spacing undone as far as a lower-casing WordPiece tokenizer can tell the difference."""
    return (
        text.replace("<unk>", "").replace(" @-@ ", "-").replace(" @,@ ", ",").replace(" @.@ ", ".").replace("  ", " ")
    )
