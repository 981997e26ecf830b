"""Texts with labels that nobody has judged for them: a tutor, a larger language model, answers (recipes/tutor).

A label set that was judged for some texts is asked of other texts of the same sources, where it is most likely to mean
something. A written text is asked about labels of other rows: half of them of the same writer. Of running and
labelled texts topics are asked, by area, some near each other and some far.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recipes.sources.judged import NAME as JUDGED
from recipes.sources.rows import Label, Row
from recipes.sources.written import Record, convert, kept_apart

NAME = "tutored"


def rows(
    general: Sequence[Row],
    judged: Sequence[Record],
    written: Sequence[Row],
    areas: Sequence[Sequence[str]],
    settings: Mapping[str, Any],
) -> Iterator[Row]:
    """Texts of label sets that are kept apart are left out, and so are those sets."""
    generator = random.Random(settings["seed"])
    apart = {record["text"] for record in judged if kept_apart(record)}
    free = [row for row in general if row.document not in apart]
    yield from _sets(free, [convert(each) for each in judged if not kept_apart(each)], settings, generator)
    yield from _writers(written, settings, generator)
    yield from _topics(free, areas, settings, generator)


def _sets(
    general: Sequence[Row], judged: Sequence[Row], settings: Mapping[str, Any], generator: random.Random
) -> Iterator[Row]:
    """Judged label sets with texts that were judged for other sets, and with texts of the same sources."""
    source_of, texts = dict[str, str](), defaultdict[str, dict[str, None]](dict)
    for row in general:
        source_of.setdefault(row.document, row.source)
        texts[row.source][row.document] = None
    labels, own = defaultdict[str, dict[Label, None]](dict), defaultdict[str, dict[str, None]](dict)
    for row in judged:
        labels[row.name] |= dict.fromkeys((*row.yes, *row.no))
        own[row.name][row.document] = None
    others = {source: list(found) for source, found in texts.items()}
    for name, asked in labels.items():
        sources = sorted({source_of[text] for text in own[name]})
        for _ in range(settings["texts"]):
            text = generator.choice(others[generator.choice(sources)])
            if text not in own[name]:
                yield Row(f"{NAME}-{JUDGED}", text, "written", asked=_some(list(asked), settings["labels"], generator))


def _writers(written: Sequence[Row], settings: Mapping[str, Any], generator: random.Random) -> Iterator[Row]:
    """Written texts with labels of other rows."""
    of_writer = defaultdict[str, list[Label]](list)
    for row in written:
        of_writer[row.source] += [*row.yes, *row.no]
    everything = [label for labels in of_writer.values() for label in labels]
    for row in written:
        own = {*row.yes, *row.no}
        for _ in range(settings["written"]):
            near = generator.choices(of_writer[row.source], k=settings["labels"] * 2 // 3)
            far = generator.choices(everything, k=settings["labels"] - len(near))
            asked = tuple(label for label in dict.fromkeys([*near, *far]) if label not in own)
            if asked:
                yield Row(f"{NAME}-written", row.document, "written", asked=asked)


def _topics(
    general: Sequence[Row], areas: Sequence[Sequence[str]], settings: Mapping[str, Any], generator: random.Random
) -> Iterator[Row]:
    """Longer texts with topics: some of one area, some of any, and their own titles or those of their neighbours."""
    long = list({row.document: row for row in general if len(row.document.split()) >= settings["least_words"]}.values())
    named = [label for row in long if row.family == "topic" for label in row.yes]
    for row in generator.sample(long, min(settings["topics"], len(long))) if areas else ():
        area = generator.choice(areas)
        asked = [(topic,) for topic in generator.sample(area, min(3, len(area)))]
        asked += [(generator.choice(generator.choice(areas)),) for _ in range(3)]
        asked += generator.choices(named, k=2) + [label for label in row.yes if row.family == "topic"][:2]
        yield Row(f"{NAME}-topics", row.document, "topic", asked=tuple(dict.fromkeys(asked)))


def _some(labels: list[Label], most: int, generator: random.Random) -> tuple[Label, ...]:
    return tuple(generator.sample(labels, min(most, len(labels))))
