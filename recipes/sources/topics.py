"""Topics written by hand, worded as people word labels, where phrases found by counting are not.

Which of them fit a document is not decided here: the untouched sentence encoder's cosine answers that, softly, in
training.
"""

import random
from collections.abc import Collection, Sequence
from pathlib import Path

import yaml

from recipes.overlap import normal


def load_topics(path: Path, forbidden: Collection[str]) -> tuple[list[list[str]], list[str]]:
    """The topics of each area of the file, and those left out: their words stand in one of the `forbidden` wordings."""
    read = yaml.safe_load(path.read_text())
    areas = list(read.values()) if isinstance(read, dict) else [None]
    if not all(isinstance(area, list) and all(isinstance(topic, str) for topic in area) for area in areas):
        raise SystemExit(f"{path} must be areas with a list of topics each, as in `weather: [storms, fog]`.")
    wordings = [f" {wording} " for wording in forbidden]
    out = {topic for area in areas for topic in area if any(f" {normal(topic)} " in wording for wording in wordings)}
    return [[topic for topic in area if topic not in out] for area in areas], sorted(out)


def with_pairs(areas: Sequence[Sequence[str]], *, pairs: int, seed: int) -> list[str]:
    """Every topic, and for each of them up to `pairs` times "it and another" of its area, drawn by the seed."""
    generator, found = random.Random(seed), set[str]()
    for area in areas:
        found.update(area)
        for topic in area:
            others = [other for other in area if other != topic]
            drawn = generator.sample(others, min(pairs, len(others)))
            found.update(f"{topic} and {other}" for other in drawn if " and " not in topic + other)
    return sorted(found)
