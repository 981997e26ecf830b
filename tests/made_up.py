"""Small datasets in official formats, for tests of everything that comes after loading."""

import json
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


def write_ecthr(folder: Path, documents: int = 30, split: str = "dev") -> Path:
    """ECtHR cases of a few words, with violated and alleged articles."""
    rng = np.random.default_rng(7)
    names = ("2", "3", "5", "6", "8", "9", "10", "11", "14", "P1-1")
    rows = []
    for row in range(documents):
        alleged = sorted(set(rng.integers(len(names), size=2).tolist()))
        words = " and ".join(f"article {names[article]}" for article in alleged)
        articles = [names[article] for article in alleged]
        text = f"The applicant of case {split} {row} complained under {words}."
        rows.append({"id": f"{split}-{row}", "text": text, "violated": articles[:1], "alleged": articles})
    (folder / "ecthr").mkdir(parents=True, exist_ok=True)
    (folder / "ecthr" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
