"""Questions about written rows (sources/written.py): known answers, many of them hard, in changing wordings.

Twins are asked together: what applies to one of them only is put to both in the very same words. Beside its own labels
a row gets some of other rows, which hardly ever apply: else a model that reads nothing but hard ones would forget how
seldom a label applies. What a tutor answered is asked in the same way.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recipes.questions import Question, Questions
from recipes.store import Ints, Store
from recipes.tutored import Tutored

Shared = Sequence[tuple[int, list[int]]]  # labels with the tokens of the question about them
Asked = tuple[list[Question], list[tuple[int, int]]]  # questions, and which of them mean the same


class Twins:
    """Draws the questions of written rows; settings are `written` of config.yaml."""

    def __init__(
        self,
        store: Store,
        questions: Questions,
        settings: Mapping[str, Any],
        random: np.random.Generator,
        *,
        tutored: Tutored | None = None,
    ) -> None:
        self.store, self.questions, self.settings, self.random = store, questions, settings, random
        self.tutored = tutored

    def draw(self, row: int) -> tuple[list[tuple[int, Asked]], int]:
        """The row with what is asked of it, and its twin if it has one; how many first questions both get."""
        twin = int(self.store.row_twin[row])
        if twin < 0:
            return [(row, self._of_row(row, self._answers(row), ()))], 0
        ours, theirs = self._answers(row), self._answers(twin)
        flipped = [label for label, answer in ours.items() if theirs.get(label, answer) != answer]
        shared = [(label, self._question(self._wordings(label)[0])) for label in self._some(flipped)]
        both = ((row, ours), (twin, theirs))
        return [(one, self._of_row(one, answers, shared)) for one, answers in both], len(shared)

    def _of_row(self, row: int, answers: Mapping[int, float], shared: Shared) -> Asked:
        """Answers given by hand, moved by the share `softened` towards the tutor's where it was asked."""
        others, share = self._of_others(answers), self.settings["softened"]
        if self.tutored is not None and share:
            said = self.tutored.about(int(self.store.row_document[row]))
            answers = {
                label: (1 - share) * answer + share * said.get(label, answer) for label, answer in answers.items()
            }
        return self.asked(answers, shared, others)

    def asked(self, answers: Mapping[int, float], shared: Shared = (), others: Sequence[int] = ()) -> Asked:
        """Questions about labels with these probabilities, `shared` before all; `others` hardly ever apply."""
        most = self.settings["labels"]
        found: list[Question] = [(question, answers[label]) for label, question in shared]
        same: list[tuple[int, int]] = []
        known = {label for label, _ in shared}
        for label in self._some([label for label in answers if label not in known]):
            if len(found) >= most:
                break
            wordings = self._wordings(label)
            again = len(wordings) > 1 and len(found) + 1 < most and self.random.random() < self.settings["both"]
            if again:
                same.append((len(found), len(found) + 1))
            found += [(self._question(text), answers[label]) for text in wordings[: 1 + again]]
        for label in others:
            found.append((self._question(self._wordings(label)[0]), float(self.settings["chance"])))
        return found, same

    def _answers(self, row: int) -> dict[int, float]:
        yes, no = self.store.row_yes[row], self.store.row_no[row]
        return {int(label): 0.0 for label in no} | {int(label): 1.0 for label in yes}

    def _of_others(self, answers: Mapping[int, float]) -> list[int]:
        labels = self.questions.family_labels["written"]
        drawn = self.random.choice(labels, self.settings["others"]) if len(labels) else ()
        return [int(label) for label in drawn if int(label) not in answers]

    def _wordings(self, label: int) -> Ints:
        """A label's wordings in random order, the short name, its first, before all others in a share of the draws."""
        name, others = self.store.labels[label][:1], self.store.labels[label][1:]
        others = self.random.permutation(others)
        if self.random.random() < self.settings["short"] or not len(others):
            return np.concatenate([name, others])
        return np.insert(others, int(self.random.integers(1, len(others) + 1)), name)

    def _question(self, text: int) -> list[int]:
        return self.questions.about("written", self.store.texts[int(text)].tolist())

    def _some(self, labels: list[int]) -> list[int]:
        return [labels[n] for n in self.random.permutation(len(labels))]
