"""Descriptions of software packages, from astronomy to spreadsheets: technical texts, each with one line for its title.

The file is Translation-en of a Debian release, as the mirrors have it: stanzas with `Description-en:`, one line, and
below it indented paragraphs with lone dots between them.
"""

from collections.abc import Iterable, Iterator

from recipes.sources.rows import Row

FIELD = "Description-en: "
LEAST = 12  # words of a description
# Beginnings of paragraphs that tell of the packaging, not of the software
PACKAGING = ("this package", "this is the", "this metapackage", "this is a transitional", "this is a dependency")


def descriptions(lines: Iterable[str], *, source: str) -> Iterator[Row]:
    """One row for every first paragraph that is new: the packages of one project share it."""
    seen: set[str] = set()
    title, texts = "", list[str]()
    for line in [*lines, FIELD]:
        if line.startswith(" "):
            texts.append(line.strip())
        elif line.startswith(FIELD):
            if (row := _row(title, texts, source)) and (first := row.document[:80]) not in seen:
                seen.add(first)
                yield row
            title, texts = line.removeprefix(FIELD).strip(), []


def _row(title: str, lines: list[str], source: str) -> Row | None:
    """What is said of the project, without what is in this package of it."""
    paragraphs = [text.strip() for text in " ".join(lines).split(" . ")]
    document = " ".join(text for text in paragraphs if not text.lower().startswith(PACKAGING))
    if len(document.split()) < LEAST:
        return None
    whole, _, _ = title.partition(" (")  # "name - what it is (which part)", or "what it is - which part"
    title = max(whole.split(" - "), key=lambda part: len(part.split()))
    return Row(source, document, "topic", ((title,),) if len(title.split()) > 1 else ())
