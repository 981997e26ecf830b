"""Questions about labels and phrases, worded in different ways, each with the answer to learn.

The answer is a probability of yes. Where only a teacher has one it is not a number, and train.py asks the teacher.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recipes.sources.rows import FAMILIES
from recipes.store import PLACE, Ints, Store
from recipes.vocabulary import Vocabulary

LEAST_DOCUMENT = 12  # tokens; on a shorter text the sentence encoder's cosine says little

Question = tuple[list[int], float]  # tokens, probability of yes


@dataclass(frozen=True)
class Cosines:
    """For every document some phrases of the pool, best first, and their cosine with it."""

    phrases: Ints  # [documents, K] numbers in the pool
    values: npt.NDArray[np.float16]


def pick(random: np.random.Generator, values: Ints) -> int:
    return int(values[random.integers(len(values))])


class Questions:
    """Draws questions with the generator of its examples."""

    def __init__(
        self,
        store: Store,
        cosines: Cosines,
        words: Vocabulary,
        config: Mapping[str, Any],
        random: np.random.Generator,
    ) -> None:
        self.store, self.cosines, self.words, self.config, self.random = store, cosines, words, config, random
        self.family_labels = {name: self._family_labels(name) for name in FAMILIES}
        silent = ("topic", "statement")  # a statement is about its own text
        self.untopical = [name for name in FAMILIES if name not in silent and len(self.family_labels[name])]
        self.topical = self._topical()
        calm = tuple(config["calm"])
        self.calm = np.array([source.startswith(calm) for source in store.sources])

    def _family_labels(self, family: str) -> Ints:
        rows = np.flatnonzero(self.store.row_family == FAMILIES.index(family))
        found = [self.store.row_yes[int(row)] for row in rows] + [self.store.row_no[int(row)] for row in rows]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int32)

    def _topical(self) -> npt.NDArray[np.bool_]:
        """Which phrases of the pool are left to the cosine: not the wordings of labels that name no topic.

        The sentence encoder knows what a text is about; whether it insults somebody it does not know.
        """
        store, named = self.store, np.zeros(len(self.store.texts), dtype=bool)
        for family in FAMILIES:
            if family != "topic":
                for label in self.family_labels[family]:
                    named[store.labels[int(label)]] = True
        for label in self.family_labels["topic"]:
            named[store.labels[int(label)]] = False
        return ~named[store.pool]

    def labels(self, row: int, yes: Ints, no: Ints) -> list[Question]:
        """The labels that apply and those that do not, in wordings that suit the row."""
        texts = [(self._label(label, no), 1.0) for label in yes] + [(self._label(label, no), 0.0) for label in no]
        return [(self._about(row, text), answer) for text, answer in texts]

    def phrases(self, document: int, count: int) -> list[Question]:
        """Phrases of the pool with the answer that the sentence encoder's cosine suggests."""
        if self.store.documents.offsets[document + 1] - self.store.documents.offsets[document] < LEAST_DOCUMENT:
            return []
        usable = np.flatnonzero(self.topical[self.cosines.phrases[document]])
        cosine, found = self.config["cosine"], list[Question]()
        for k in self.random.permutation(usable)[:count]:
            wording = self._wording("topic")
            text = self.store.texts[int(self.store.pool[self.cosines.phrases[document, k]])].tolist()
            logit = (float(self.cosines.values[document, k]) - cosine["centre"]) / cosine["width"]
            found.append((fill(wording, text), 1 / (1 + float(np.exp(-logit)))))
        return found

    def unlikely(self, row: int) -> list[Question]:
        """On an encyclopedia article or a news text: insults and feelings, which it almost surely does not express."""
        if not self.calm[self.store.row_source[row]]:
            return []
        return [
            (self._of_family(family), float(chance))
            for family, (share, chance) in self.config["unlikely"].items()
            if len(self.family_labels[family]) and self.random.random() < share
        ]

    def unknown(self) -> list[Question]:
        """Labels that name no topic, of any document: only a teacher can say whether they apply."""
        if not self.untopical or self.random.random() >= self.config["unknown"]:
            return []
        family = self._untopical()
        return [(self._of_family(family), math.nan) for _ in range(2)]

    def told(self, row: int, count: int) -> tuple[list[Question], list[tuple[int, int]]]:
        """Labels of any set that name no topic, half of them of the row's family if that is one: for a teacher.

        Some of them are written labels in two wordings; which questions mean the same is the second value.
        """
        own, found, same = FAMILIES[int(self.store.row_family[row])], list[Question](), list[tuple[int, int]]()
        while len(found) < count and self.untopical:
            if len(self.family_labels["written"]) and self.random.random() < self.config["wordings"]:
                label = pick(self.random, self.family_labels["written"])
                texts = self.random.permutation(self.store.labels[label])[:2]
                if len(texts) == 2:
                    same.append((len(found), len(found) + 1))
                found += [(self.about("written", self.store.texts[int(text)].tolist()), math.nan) for text in texts]
                continue
            kept = own in self.untopical and self.random.random() < 0.5
            found.append((self._of_family(own if kept else self._untopical()), math.nan))
        return found, same

    def about(self, family: str, text: Sequence[int]) -> list[int]:
        """A question about a label's text, in one of the family's wordings."""
        return fill(self._wording(family), text)

    def _untopical(self) -> str:
        return self.untopical[int(self.random.integers(len(self.untopical)))]

    def _of_family(self, family: str) -> list[int]:
        """A question about any label of the family."""
        text = self._text(pick(self.random, self.family_labels[family]))
        return self.about(family, text)

    def _about(self, row: int, text: Sequence[int]) -> list[int]:
        """A question about a label's text: now and then the row's own, else one of its family."""
        own = self.store.row_questions[row]
        if len(own) and self.random.random() < 0.4:
            return fill(self.store.texts[pick(self.random, own)], text)
        return self.about(FAMILIES[int(self.store.row_family[row])], text)

    def _wording(self, family: str) -> Ints:
        """How a question of the family is worded: half of the time in the package's default way, the first."""
        wordings = self.store.family_questions[FAMILIES.index(family)]
        return self.store.texts[int(wordings[0]) if self.random.random() < 0.5 else pick(self.random, wordings)]

    def _label(self, label: int, no: Ints) -> list[int]:
        """A label's text; now and then "this or that", where that does not apply and changes no answer."""
        texts = [self._text(label)]
        if len(no) and self.random.random() < self.config["either"]:
            texts.insert(int(self.random.integers(2)), self._text(pick(self.random, no)))
        return texts[0] if len(texts) == 1 else [*texts[0], *self.words.either, *texts[1]]

    def _text(self, label: int) -> list[int]:
        texts = self.store.labels[int(label)]
        return self.store.texts[pick(self.random, texts)].tolist()  # type: ignore[no-any-return]


def fill(wording: Ints, text: Sequence[int]) -> list[int]:
    """The wording with the text where the label belongs."""
    place = int(np.flatnonzero(wording == PLACE)[0])
    return [*wording[:place].tolist(), *text, *wording[place + 1 :].tolist()]
