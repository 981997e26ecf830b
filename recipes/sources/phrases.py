"""Phrases that could be labels: what general texts talk about, one to three words, found by counting.

A candidate is a run of words between stop words and punctuation. Which of them fit a document is not decided here: the
untouched sentence encoder's cosine answers that, softly, in training.
"""

import re
from collections import Counter
from collections.abc import Iterable

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

_WORD = re.compile(r"[a-z][a-z'-]+|[^a-z\s]")


def count_phrases(documents: Iterable[str], *, longest: int = 3) -> Counter[str]:
    """In how many documents each candidate stands."""
    counts: Counter[str] = Counter()
    for text in documents:
        run: list[str] = []
        found: set[str] = set()
        for word in [*_WORD.findall(text.lower()), "."]:
            if word[0].isalpha() and word not in ENGLISH_STOP_WORDS and len(word) > 2:
                run.append(word)
                continue
            found.update(
                " ".join(run[i:j]) for i in range(len(run)) for j in range(i + 1, min(len(run), i + longest) + 1)
            )
            run = []
        counts.update(found)
    return counts


def common_phrases(counts: Counter[str], *, least: int, most: int, keep: int) -> list[str]:
    """The `keep` most frequent of those in `least` to `most` documents, at least half of them longer than one word."""
    fitting = [(n, phrase) for phrase, n in counts.items() if least <= n <= most]
    ranked = [phrase for _, phrase in sorted(fitting, key=lambda item: (-item[0], item[1]))]
    several = [phrase for phrase in ranked if " " in phrase][: keep // 2]
    # a word in -ly or -ed is an adverb or a verb and would make a poor label
    single = [phrase for phrase in ranked if " " not in phrase and not phrase.endswith(("ly", "ed"))]
    single = single[: keep - len(several)]
    return sorted(several + single)
