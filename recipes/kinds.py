"""Training examples drawn from the store.

An example is one document with its questions, a text with masked tokens, or a list of labels with masked answers.
Kinds and shares stand in config.yaml. Every draw comes from one seeded generator per worker.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recipes.questions import LEAST_DOCUMENT, Cosines, Question, Questions, pick
from recipes.sources.inference import BOOLQ, SNLI
from recipes.sources.rows import FAMILIES
from recipes.sources.written import SOURCE as WRITTEN
from recipes.store import Ints, Store
from recipes.tutored import Tutored
from recipes.twins import Twins
from recipes.vocabulary import Vocabulary


@dataclass
class Example:
    """Tokens of one example and what is to be learned at which offset."""

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    slots: list[tuple[int, float]] = field(default_factory=list)  # offset, probability of yes (nan: ask the teacher)
    group: list[int] = field(default_factory=list)  # slots of which exactly one is yes; that one first
    same: list[tuple[int, int]] = field(default_factory=list)  # slots that ask the same in other words
    paired: list[tuple[int, int]] = field(default_factory=list)  # a number that the twin's example has too, slot
    masked: list[tuple[int, int, float]] = field(default_factory=list)  # offset, token, weight
    length: int = 0  # tokens that could have been masked
    final: bool = False  # answers stand as they are, though they are no plain yes or no: a tutor's
    embedding: int = -1  # document number; pool phrases follow the documents

    def add(self, tokens: Sequence[int], segment: int, start: int) -> None:
        self.tokens += tokens
        self.segments += [segment] * len(tokens)
        self.positions += range(start, start + len(tokens))


class Examples:
    """An endless stream of examples."""

    def __init__(
        self,
        store: Store,
        cosines: Cosines,
        words: Vocabulary,
        config: Mapping[str, Any],
        seed: Sequence[int],
        *,
        tutored: Tutored | None = None,
    ) -> None:
        self.store, self.words, self.config, self.said = store, words, config, tutored
        self.random = np.random.default_rng(seed)
        self.questions = Questions(store, cosines, words, config, self.random)
        self.columns: int = config["columns"]
        self.by_source = [np.flatnonzero(store.row_source == n) for n in range(len(store.sources))]
        self.kinds: dict[str, Callable[[int], Example | None]] = {
            "labels": self.labels,
            "asks": self.asks,
            "titles": self.titles,
            "phrases": self.phrases,
            "told": self.told,
            "answers": self.answers,
            "running": self.running,
            "lists": self.lists,
            "written": self.written,
            "tutored": self.tutored,
            "snli": self.labels,
            "boolq": self.asks,
        }
        self.twins = Twins(store, self.questions, config["written"], self.random, tutored=tutored)
        self.waiting: list[Example] = []  # the twin of what was yielded last
        self.pairs = 0  # questions that were put to both of two twins
        self.rows = {kind: self._rows(kind) for kind in self.kinds}

    def __iter__(self) -> Iterator[Example]:
        names = [kind for kind in self.kinds if len(self.rows[kind][0])]
        shares = np.array([self.config["kinds"].get(kind, 0) for kind in names], dtype=float).cumsum()
        while True:
            kind = names[int(np.searchsorted(shares, self.random.random() * shares[-1], side="right"))]
            rows, chances = self.rows[kind]
            row = int(rows[np.searchsorted(chances, self.random.random() * chances[-1], side="right")])
            if (example := self.kinds[kind](row)) is not None and len(example.tokens) <= self.columns:
                yield example
            yield from self.waiting
            self.waiting = []
            if self.random.random() < 0.15:
                yield self.phrase()

    def _rows(self, kind: str) -> tuple[Ints, npt.NDArray[np.float64]]:
        """The rows that a kind can use and their cumulative weight: by family, and by the root of the source's size."""
        store = self.store
        if kind == "tutored":  # numbers of what the tutor answered
            return np.arange(count := len(self.said.document) if self.said else 0), np.arange(1.0, count + 1)
        yes, no, asks = (np.diff(x.offsets) for x in (store.row_yes, store.row_no, store.row_asks))
        long = np.diff(store.documents.offsets)[store.row_document] >= LEAST_DOCUMENT
        books = np.array([source in ("books", "wikitext") for source in store.sources])[store.row_source]
        own = {
            "written": np.array([source.startswith(WRITTEN) for source in store.sources])[store.row_source],
            "snli": np.array([source == SNLI for source in store.sources])[store.row_source],
            "boolq": np.array([source == BOOLQ for source in store.sources])[store.row_source],
        }
        if kind in own:  # twins are drawn together, so each of them half as often
            rows = np.flatnonzero(own[kind])
            return rows, np.where(store.row_twin[rows] < 0, 1.0, 0.5).cumsum()
        fits = {
            "labels": (yes + no > 0) & (no + (yes == 0) > 0),
            "lists": (no > 0),
            "asks": asks > 0,
            "titles": (yes > 0) & (no == 0),
            "phrases": long,
            "told": yes + no > 0,
            "answers": store.row_answer >= 0,
            "running": long & (books | (np.arange(len(long)) % 4 == 0)),
        }[kind]
        rows = np.flatnonzero(fits & ~np.any(list(own.values()), axis=0))
        sizes = np.bincount(store.row_source[rows], minlength=len(store.sources))
        family = np.array([self.config["families"][name] for name in FAMILIES])
        if kind in ("phrases", "running", "answers"):
            return rows, np.arange(1, len(rows) + 1, dtype=float)
        weights = family[store.row_family[rows]] / np.sqrt(sizes[store.row_source[rows]])
        return rows, weights.cumsum()

    # What the kinds are made of

    def _document(self, tokens: Sequence[int], prefix: Sequence[int] | None = None) -> Example:
        example = Example()
        words = self.words
        if prefix is None:
            prefix = words.document if self.random.random() < 0.9 else []
            tokens = self._noisy(tokens)
        example.add([words.begin, *prefix, *tokens, words.end], 1, 0)
        return example

    def _of_row(self, row: int) -> Example:
        return self._of_document(int(self.store.row_document[row]))

    def _of_document(self, document: int) -> Example:
        """A document of the store, its embedding to be kept."""
        example = self._document(self.store.documents[document].tolist())
        example.embedding = document
        return example

    def _noisy(self, tokens: Sequence[int]) -> Sequence[int]:
        """Now and then up to a fifth of the tokens masked, so that no document is learned by heart."""
        if self.random.random() >= self.config["noise"]:
            return tokens
        hidden = self.random.random(len(tokens)) < 0.2 * self.random.random()
        return [self.words.mask if gone else token for token, gone in zip(tokens, hidden, strict=True)]

    def _some(self, values: Ints, most: int) -> Ints:
        return self.random.permutation(values)[:most]

    def _asked(
        self,
        example: Example,
        questions: list[Question],
        group: Sequence[int] = (),
        same: Sequence[tuple[int, int]] = (),
        paired: Sequence[int] = (),
    ) -> Example:
        """The example with as many questions as fit, the first ones numbered by `paired`.

        With exact attention only one, which the document sees.
        """
        words, start = self.words, len(example.tokens)
        order = range(len(questions))
        if exact := self.random.random() < self.config["exact"]:
            order = [int(self.random.integers(len(questions)))]  # type: ignore[assignment]
            example.embedding, group = -1, ()
        places: dict[int, int] = {}
        for number in order:
            question, answer = questions[number]
            tokens = [*question, words.mask, words.end]
            if len(example.tokens) + len(tokens) > self.columns:
                continue
            places[number] = len(example.slots)
            example.slots.append((len(example.tokens) + len(question), answer))
            example.add(tokens, 1 if exact else 2 + len(places), start)
        if group and all(number in places for number in group):
            example.group = [places[number] for number in group]
        example.same = [(places[one], places[other]) for one, other in same if one in places and other in places]
        example.paired = [(pair, places[number]) for number, pair in enumerate(paired) if number in places]
        return example

    # The kinds

    def labels(self, row: int) -> Example | None:
        """A document of a labelled source: labels that apply, others of the same set that do not, some phrases."""
        store = self.store
        document, yes, no = int(store.row_document[row]), store.row_yes[row], store.row_no[row]
        tokens = store.documents[document].tolist()
        joined = len(no) > 3 and self.random.random() < self.config["joined"]
        if joined:
            other = pick(self.random, self.by_source[int(store.row_source[row])])
            tokens = tokens[:150] + store.documents[int(store.row_document[other])].tolist()[:150]
            yes = np.union1d(yes, store.row_yes[other])
            no = np.setdiff1d(no, yes)
        yes, no = self._some(yes, 3), self._some(no, 6)
        questions = self.questions.labels(row, yes, no)
        single = len(yes) == 1 and len(no) > 1
        if not joined and self.random.random() < 0.6:
            questions += self.questions.phrases(document, 3)
        if not questions:
            return None
        example = self._document(tokens)
        example.embedding = -1 if joined else document
        return self._asked(example, questions, range(1 + len(no)) if single else ())

    def asks(self, row: int) -> Example | None:
        store = self.store
        document, pairs = int(store.row_document[row]), store.row_asks[row].reshape(-1, 2)
        text, answer = pairs[self.random.integers(len(pairs))]
        questions = [(store.texts[int(text)].tolist(), float(answer))]
        if self.random.random() < 0.3:
            questions += self.questions.phrases(document, 2)
        example = self._of_row(row)
        return self._asked(example, questions)

    def titles(self, row: int) -> Example | None:
        """A text with its title (or its answer); titles of other texts of the source do not apply."""
        store = self.store
        document, yes = int(store.row_document[row]), self._some(store.row_yes[row], 2)
        others = self.random.choice(self.by_source[int(store.row_source[row])], 4)
        drawn = [pick(self.random, store.row_yes[int(other)]) for other in others if len(store.row_yes[int(other)])]
        no = np.setdiff1d(np.array(drawn, dtype=np.int64), store.row_yes[row])
        questions = self.questions.labels(row, yes, no)
        if self.random.random() < 0.5:
            questions += self.questions.phrases(document, 2)
        questions += self.questions.unlikely(row)
        example = self._of_row(row)
        return self._asked(example, questions, range(1 + len(no)) if len(yes) == 1 and len(no) > 1 else ())

    def phrases(self, row: int) -> Example | None:
        example, document = self._of_row(row), int(self.store.row_document[row])
        questions = self.questions.phrases(document, 8) + self.questions.unlikely(row) + self.questions.unknown()
        return self._asked(example, questions) if questions else None

    def told(self, row: int) -> Example | None:
        """A document of a labelled source, however short, with labels of any set."""
        questions, same = self.questions.told(row, 6)
        return self._asked(self._of_row(row), questions, same=same) if questions else None

    def written(self, row: int) -> Example | None:
        """A written row with labels known to apply and not to; its twin, if it has one, comes next."""
        drawn, shared = self.twins.draw(row)
        paired = range(self.pairs, self.pairs + shared)
        self.pairs += shared
        found = []
        for one, (questions, same) in drawn:
            found.append(self._asked(self._of_row(one), questions, same=same, paired=paired))
            found[-1].final = self.said is not None
        first, *self.waiting = found
        return first

    def tutored(self, number: int) -> Example | None:
        """A document with labels about which a tutor was asked."""
        assert self.said is not None
        document, answers = self.said[number]
        questions, same = self.twins.asked(answers)
        example = self._of_document(document)
        example.final = True
        return self._asked(example, questions, same=same)

    def phrase(self) -> Example:
        """A phrase on its own, for its embedding."""
        number = int(self.random.integers(len(self.store.pool)))
        example = self._document(self.store.texts[int(self.store.pool[number])].tolist(), prefix=[])
        example.embedding = len(self.store.documents) + number
        return example

    def _mask(self, example: Example, start: int, stop: int) -> None:
        """Masked diffusion: t uniform on (0, 1], every token masked with probability t, weight 1 / t (LLaDA, Eq. 3)."""
        t = 1 - self.random.random()
        for offset in start + np.flatnonzero(self.random.random(stop - start) < t):
            example.masked.append((int(offset), example.tokens[offset], 1 / t))
            example.tokens[offset] = self.words.mask
        example.length = stop - start

    def running(self, row: int) -> Example | None:
        example = self._document(self.store.documents[int(self.store.row_document[row])].tolist(), prefix=[])
        self._mask(example, 1, len(example.tokens) - 1)
        return example

    def answers(self, row: int) -> Example | None:
        store, words = self.store, self.words
        answer = store.texts[int(store.row_answer[row])].tolist()
        example = self._document(store.documents[int(store.row_document[row])].tolist())
        start = len(example.tokens)
        example.add([*words.answer, *answer, words.end], 1 if self.random.random() < 0.5 else 2, start)
        self._mask(example, start + len(words.answer), len(example.tokens))
        return example

    def lists(self, row: int) -> Example | None:
        """All labels of a set in one prompt, some answers given and the others asked for: behind each label, or as the
        paper has it, behind all of them in order.
        """
        store, words = self.store, self.words
        inline = self.random.random() < self.config["inline"]
        yes, no = self._some(store.row_yes[row], 3), self._some(store.row_no[row], 24 if inline else 9)
        labels = [(pick(self.random, store.labels[int(n)]), 1.0) for n in yes]
        labels += [(pick(self.random, store.labels[int(n)]), 0.0) for n in no]
        labels = [labels[n] for n in self.random.permutation(len(labels))]
        prefix = words.inline_prefix if inline else words.list_prefix
        example = self._document(store.documents[int(store.row_document[row])].tolist()[:300], prefix)
        start, asked = len(example.tokens), self.random.random(len(labels)) < 1 - self.random.random()
        answers = [
            words.mask if ask else words.yes if answer else words.no
            for ask, (_, answer) in zip(asked, labels, strict=True)
        ]
        tokens, places = words.listed([store.texts[text].tolist() for text, _ in labels], answers, inline=inline)
        example.slots += [
            (start + place, answer) for ask, place, (_, answer) in zip(asked, places, labels, strict=True) if ask
        ]
        example.add([*tokens, words.end], 1 if self.random.random() < 0.5 else 2, start)
        return example if example.slots else None
