"""Rows in batches: what happens when memory runs out."""

import weakref

import pytest

pytest.importorskip("torch")

import torch

from setscore.backbones import running
from setscore.backbones.asking import Question, Row
from setscore.errors import BackboneError


class TestOutOfMemory:
    """Memory is made to run out above a number of tokens."""

    def rows(self):
        return [Row((1,) * n, tuple(Question(10 * n + i, (2,) * (i + 1), (0,)) for i in range(4))) for n in (9, 5, 3)]

    def run(self, rows, limit, budget=1000, error=torch.OutOfMemoryError):
        asked, tried = [], []

        def compute(batch):
            tokens = sum(row.tokens for row in batch)
            tried.append(tokens)
            if tokens > limit:
                raise error("DefaultCPUAllocator: can't allocate memory")
            return [question.query for row in batch for question in row.questions]

        for numbers in running.in_batches(rows, budget, compute):
            asked += numbers
        return asked, tried

    @pytest.mark.parametrize("limit", [1000, 30, 18, 13])
    @pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError, MemoryError])
    def test_nothing_is_lost_or_done_twice(self, limit, error):
        rows = self.rows()
        asked, tried = self.run(rows, limit, error=error)
        assert sorted(asked) == sorted(question.query for row in rows for question in row.questions)
        assert len(asked) == len(set(asked))
        assert len([tokens for tokens in tried if tokens > limit]) <= 4  # the budget stays small

    def test_a_single_question_that_does_not_fit_is_an_error(self):
        with pytest.raises(BackboneError, match="no memory for a single question of 10 tokens"):
            self.run([Row((1,) * 9, (Question(0, (2,), (0,)),))], 5)

    def test_what_a_failed_batch_held_is_free_before_the_next_one(self):
        """A traceback keeps the variables of its frames; with them in memory the smaller batch would fail too."""
        held = []

        def compute(batch):
            assert all(reference() is None for reference in held)
            half_made = torch.zeros(3)
            held.append(weakref.ref(half_made))
            if len(batch) > 1:
                raise torch.OutOfMemoryError("no more")
            return len(batch)

        assert sum(running.in_batches(self.rows(), 1000, compute)) == 3

    def test_other_errors_are_not_swallowed(self):
        def compute(_):
            raise RuntimeError("shapes do not fit")

        with pytest.raises(RuntimeError, match="shapes do not fit"):
            list(running.in_batches(self.rows(), 100, compute))
