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


def write_jigsaw(folder: Path, documents: int = 2200) -> Path:
    """The labelled rows of the challenge; the package splits them 80/10/10 itself."""
    names = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
    lines = [",".join(("id", "comment_text", *names))]
    for row in range(documents):
        gold = [int(row % (place + 3) == 0) for place in range(len(names))]
        said = " and ".join(name for name, yes in zip(names, gold, strict=True) if yes) or "nothing bad"
        lines.append(",".join((f"c{row}", f"Comment {row} is {said}.", *map(str, gold))))
    (folder / "jigsaw").mkdir(parents=True, exist_ok=True)
    (folder / "jigsaw" / "train.csv").write_text("\n".join(lines) + "\n")
    return folder


def write_reuters(folder: Path, train: int = 260, test: int = 24) -> Path:
    """Stories as SGML, of the training and the test part of ModApte."""
    topics, stories = ("earn", "acq", "grain", "crude"), []
    for row in range(train + test):
        part = "TRAIN" if row < train else "TEST"
        gold = topics[row % 4 : row % 4 + 1 + row % 2]
        named = "".join(f"<D>{topic}</D>" for topic in gold)
        stories.append(
            f'<REUTERS TOPICS="YES" LEWISSPLIT="{part}" NEWID="{row}"><TOPICS>{named}</TOPICS><TEXT><TITLE>About'
            f" {' and '.join(gold)}</TITLE><BODY>Story {row}.</BODY></TEXT></REUTERS>\n"
        )
    (folder / "reuters").mkdir(parents=True, exist_ok=True)
    (folder / "reuters" / "reut2-000.sgm").write_text("".join(stories), encoding="latin-1")
    return folder


def write_eurlex(folder: Path, documents: int = 30, split: str = "dev") -> Path:
    """Acts with an inventory that is smaller than the paper's shortlist, so that no encoder is needed."""
    names = ("agricultural policy", "trade policy", "fisheries", "taxation", "energy policy")
    rows = [
        {"id": f"{split}-{row}", "text": f"Act {row} on {names[row % 5]} and {names[(row + 2) % 5]}.",
         "labels": [names[row % 5], names[(row + 2) % 5]]}
        for row in range(documents)
    ]  # fmt: skip
    (folder / "eurlex").mkdir(parents=True, exist_ok=True)
    (folder / "eurlex" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "eurlex" / "labels.json").write_text(json.dumps(names))
    return folder


def write_aapd(folder: Path, documents: int = 30, split: str = "val") -> Path:
    """Abstracts line by line, and their codes."""
    codes = ("cs.IT", "math.IT", "cs.LG", "cs.AI", "stat.ML")
    chosen = [(codes[row % 5], codes[(row + 1) % 5]) for row in range(documents)]
    (folder / "aapd").mkdir(parents=True, exist_ok=True)
    texts = "".join(f"Abstract {row} about {' and '.join(pair)}.\n" for row, pair in enumerate(chosen))
    (folder / "aapd" / f"text_{split}").write_text(texts)
    (folder / "aapd" / f"label_{split}").write_text("".join(f"{' '.join(pair)}\n" for pair in chosen))
    return folder
