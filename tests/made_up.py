"""Small datasets in official formats, for tests of everything that comes after loading."""

from pathlib import Path

import numpy as np

WORDS = ("joy", "anger", "fear")


def write_goemotions(folder: Path, documents: int = 60, split: str = "dev") -> Path:
    """GoEmotions files with three labels. A text mostly holds the words of its labels; every seventh says others."""
    rng = np.random.default_rng(5)
    lines = []
    for row in range(documents):
        gold = sorted(set(rng.integers(len(WORDS), size=1 + row % 2).tolist()))
        said = [(label + 1) % 3 for label in gold] if row % 7 == 0 else gold
        text = f"Some {' and '.join(WORDS[label] for label in said)} in number {row}."
        lines.append(f"{text}\t{','.join(map(str, gold))}\t{split}{row}\n")
    (folder / "goemotions").mkdir(parents=True, exist_ok=True)
    (folder / "goemotions" / f"{split}.tsv").write_text("".join(lines))
    (folder / "goemotions" / "labels.txt").write_text("\n".join(WORDS))
    return folder
